import { describe, expect, it } from 'vitest'
import { ioInMemory } from '../../../test/cli/io-in-memory.js'
import { retryPolicy, tokenBudget } from '../../retry/index.js'
import { readPolicyFile } from './policy-file.js'

const raise = (): never => {
  throw new Error('oh no')
}

describe('readPolicyFile', () => {
  it('reads the data of a policy, whole or in part', async () => {
    const whole = retryPolicy({ name: 'own', attempts: 4, attemptTimeout: '2s' }).toJSON()
    const io = ioInMemory()
    io.files.set('whole.json', JSON.stringify(whole))
    io.files.set('part.json', '{ "attempts": 2 }')
    expect(await readPolicyFile('whole.json', io)).toEqual(whole)
    const part = await readPolicyFile('part.json', io)
    expect(part).toMatchObject({ attempts: 2, attemptTimeoutMs: 1000, backoff: { kind: 'full' } })
    expect(part.budget).toEqual(tokenBudget().data)
  })

  it.each(['null', 'false'])('has no budget where it is %s', async (none) => {
    const io = ioInMemory()
    io.files.set('own.json', `{ "budget": ${none} }`)
    expect(await readPolicyFile('own.json', io)).not.toHaveProperty('budget')
  })

  it('takes the policy of a module as it is: without a budget if it has none', async () => {
    const io = ioInMemory()
    io.modules.set('own.mjs', { default: retryPolicy({ budget: false }) })
    expect(await readPolicyFile('own.mjs', io)).not.toHaveProperty('budget')
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
    ['throws.mjs', 'throws.mjs: cannot be loaded: oh no'],
    ['other.mjs', 'other.mjs: the default export is not a policy'],
  ])('says what is wrong with %s', async (path, message) => {
    const io = ioInMemory()
    io.files.set('broken.json', '{')
    io.files.set('list.json', '[]')
    io.modules.set('other.mjs', { default: { attempts: 3 } })
    io.modules.set('throws.mjs', { default: { toJSON: raise } })
    await expect(readPolicyFile(path, io)).rejects.toThrowError(message)
  })
})
