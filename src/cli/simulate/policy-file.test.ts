import { describe, expect, it } from 'vitest'
import { ioInMemory } from '../../../test/cli/io-in-memory.js'
import { retryPolicy } from '../../retry/index.js'
import { readPolicyFile } from './policy-file.js'

describe('readPolicyFile', () => {
  it('reads the data of a policy, whole or in part; a budget that is not there is none', async () => {
    const whole = retryPolicy({ name: 'own', attempts: 4, attemptTimeout: '2s' }).toJSON()
    const io = ioInMemory()
    io.files.set('whole.json', JSON.stringify(whole))
    io.files.set('part.json', '{ "attempts": 2 }')
    expect(await readPolicyFile('whole.json', io)).toEqual(whole)
    const part = await readPolicyFile('part.json', io)
    expect(part).toMatchObject({ attempts: 2, attemptTimeoutMs: 1000, backoff: { kind: 'full' } })
    expect(part.budget).toBeUndefined()
  })

  it.each(['policy.mjs', 'policy.js'])('asks the default export of %s', async (path) => {
    const policy = retryPolicy({ attempts: 7 })
    const io = ioInMemory()
    io.modules.set(path, { default: policy })
    expect(await readPolicyFile(path, io)).toEqual({ ...policy.toJSON(), attemptTimeoutMs: 1000 })
  })

  it.each([
    ['absent.json', 'absent.json: cannot be read: ENOENT'],
    ['absent.mjs', 'absent.mjs: cannot be loaded: ENOENT'],
    ['broken.json', 'broken.json: not JSON'],
    ['list.json', 'list.json: a policy is an object'],
    ['other.mjs', 'other.mjs: the default export is not a policy'],
  ])('says what is wrong with %s', async (path, message) => {
    const io = ioInMemory()
    io.files.set('broken.json', '{')
    io.files.set('list.json', '[]')
    io.modules.set('other.mjs', { default: { attempts: 3 } })
    await expect(readPolicyFile(path, io)).rejects.toThrowError(message)
  })
})
