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
    ['stray.json', 'stray.json: a policy has no retryPolicy'],
    ['throws.mjs', 'throws.mjs: cannot be loaded: oh no'],
    ['other.mjs', 'other.mjs: the default export is not a policy'],
  ])('says what is wrong with %s', async (path, message) => {
    const io = ioInMemory()
    io.files.set('broken.json', '{')
    io.files.set('list.json', '[]')
    io.files.set('stray.json', '{ "attempts": 2, "retryPolicy": {} }')
    io.modules.set('other.mjs', { default: { attempts: 3 } })
    io.modules.set('throws.mjs', { default: { toJSON: raise } })
    await expect(readPolicyFile(path, io)).rejects.toThrowError(message)
  })
})

describe('a gRPC service config', () => {
  const retrying = {
    maxAttempts: 4,
    initialBackoff: '0.1s',
    maxBackoff: '1s',
    backoffMultiplier: 2,
    retryableStatusCodes: ['UNAVAILABLE'],
  }
  const config = {
    loadBalancingConfig: [],
    methodConfig: [
      { name: [{ service: 'shop.Ping' }], timeout: '1s' },
      { name: [], retryPolicy: { ...retrying, maxAttempts: 5 } },
      {
        name: [{ service: 'shop.Orders', method: 'Place' }, { service: 'shop.Carts' }],
        retryPolicy: retrying,
        timeout: '2.5s',
      },
      { name: [{ service: 'shop.Orders' }], hedgingPolicy: { maxAttempts: 3, hedgingDelay: '0.05s' } },
    ],
    retryThrottling: { maxTokens: 20, tokenRatio: 0.25 },
  }
  const read = (data: object, method?: string) => {
    const io = ioInMemory()
    io.files.set('grpc.json', JSON.stringify(data))
    return readPolicyFile('grpc.json', io, method)
  }

  it('has the policy of the first method with one, unless another is named', async () => {
    const place = {
      name: 'shop.Orders/Place',
      attempts: 4,
      backoff: { kind: 'grpc', baseMs: 100, capMs: 1000, multiplier: 2 },
      budget: { kind: 'token', maxTokens: 20, tokenRatio: 0.25 },
      deadlineMs: 2500,
      attemptTimeoutMs: 1000,
    }
    expect(await read(config)).toMatchObject(place)
    expect(await read(config, '/shop.Orders/Place')).toMatchObject(place)
    expect(await read(config, 'shop.Carts/Empty')).toMatchObject({ ...place, name: 'shop.Carts/Empty' })
    expect(await read(config, 'shop.Orders/Find')).toMatchObject({ attempts: 3, hedgeAfterMs: 50 })
    expect(await read(config, 'shop.Ping/Ping')).toMatchObject({ attempts: 1, deadlineMs: 1000 })
  })

  it('has no budget without throttling, as in gRPC, and may be for every method', async () => {
    const all = { methodConfig: [{ name: [{}], retryPolicy: retrying }] }
    const policy = await read(all)
    expect(policy).toMatchObject({ name: 'every method', attempts: 4 })
    expect(policy).not.toHaveProperty('budget')
    expect(await read(all, 'any.Service/Method')).toMatchObject({ name: 'any.Service/Method', attempts: 4 })
  })

  const bad = { methodConfig: [{ name: [{}], retryPolicy: { ...retrying, maxAttempts: 1 } }] }
  const late = { methodConfig: [{ name: [{}], retryPolicy: retrying, timeout: '2 seconds' }] }
  it.each([
    ['a value that A6 refuses', bad, undefined, /^grpc\.json: .*methodConfig\[0\]\.retryPolicy\.maxAttempts/],
    ['only throttling', { retryThrottling: config.retryThrottling }, undefined, /: no method has a retry policy$/],
    ['a method that it does not name', config, 'shop.Stock/Find', /: the method is not in the service config$/],
    ['a timeout that is none', late, undefined, /: the timeout of the method is no duration such as 1\.5s$/],
  ])('is refused with %s', async (_name, data, method, message) => {
    const error = expect.objectContaining({ code: 'POLICY_INVALID', message: expect.stringMatching(message) })
    await expect(read(data, method)).rejects.toThrowError(error)
  })

  it('is the only file that has methods', async () => {
    await expect(read({ attempts: 2 }, 'a.B/C')).rejects.toThrowError('grpc.json: --method needs a gRPC service config')
  })
})
