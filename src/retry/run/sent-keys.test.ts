import { describe, expect, it } from 'vitest'
import { answers, serversOfTest } from '../../../test/retry/sockets.js'
import { httpClient } from '../../http/client/index.js'
import { deriveKey, mintKey, withIntent } from '../../identity/index.js'
import { constantDelay } from '../backoff.js'
import { keyed, repeatable } from '../guard.js'
import { retryPolicy } from '../policy.js'
import { tokenBudget } from '../target/budget.js'
import { SentKeys } from './sent-keys.js'

const server = serversOfTest()
const refused = { code: 'KEY_PER_ATTEMPT', details: { attempt: 2 } }

describe('keys of one call', () => {
  it('stay the same for each target, and more may follow one that is known', () => {
    const keys = new SentKeys()
    keys.demandSame('POST /a', 'a1', 1)
    keys.demandSame('POST /a', 'a2', 1)
    keys.demandSame('POST /b', 'b1', 1)
    keys.demandSame('POST /a', 'a2', 2)
    keys.demandSame('POST /a', 'a3', 2)
    keys.demandSame('POST /c', 'c1', 2)
    expect(() => keys.demandSame('POST /b', 'b2', 2)).toThrow(expect.objectContaining(refused))
    expect(() => keys.demandSame(undefined, 'c1', 2)).not.toThrow()
  })

  it('follow one that is known where the target is not, as in a policy inside another one', () => {
    const keys = new SentKeys()
    keys.demandSame(undefined, 'first', 1)
    keys.demandSame(undefined, 'first', 2)
    expect(() => keys.demandSame(undefined, 'second', 2)).not.toThrow()
    expect(() => keys.demandSame(undefined, 'third', 3)).toThrow(expect.objectContaining({ code: 'KEY_PER_ATTEMPT' }))
  })

  it('are looked at up to a limit', () => {
    const keys = new SentKeys()
    for (let index = 0; index < 2_000; index += 1) keys.demandSame('POST /a', `a${index}`, 1)
    for (let index = 0; index < 200; index += 1) keys.demandSame(`POST /${index}`, 'x', 1)
    expect(() => keys.demandSame('POST /a', 'another', 2)).not.toThrow()
    expect(() => keys.demandSame('POST /199', 'another', 2)).not.toThrow()
  })
})

describe('a key for each attempt', () => {
  const budget = tokenBudget({ maxTokens: 1_000 })
  const policy = retryPolicy({ attempts: 3, backoff: constantDelay(1), budget })
  const client = httpClient({ policy: { backoff: constantDelay(1) } })
  const busy = async () => {
    const sink = await server(answers(500))
    const check = (response: Response) => {
      if (!response.ok) throw Object.assign(new Error('not ok'), { status: response.status })
      return response
    }
    return { ...sink, origin: sink.origin, requests: () => sink.requests, check }
  }
  const post = { method: 'POST', body: '{}' }

  it('is refused by keyed, before anything is sent', () => {
    expect(() => keyed((() => mintKey()) as never)).toThrow(expect.objectContaining({ code: 'KEY_PER_ATTEMPT' }))
  })

  it.each<[string, (origin: string) => Promise<Response>]>([
    ['the option key', (origin) => client.fetch(origin, { ...post, key: mintKey() })],
    ['the header', (origin) => client.fetch(origin, { ...post, headers: { 'Idempotency-Key': mintKey() } })],
    ['a guard', (origin) => client.fetch(origin, { ...post, guard: keyed(mintKey()) })],
    [
      'a derived key',
      (origin) => withIntent({ key: mintKey() }, () => client.fetch(origin, { ...post, key: deriveKey('capture') })),
    ],
    ['a step', (origin) => withIntent({ key: mintKey() }, () => client.fetch(origin, { ...post, step: 'capture' }))],
  ])('is refused by the client: %s', async (_name, send) => {
    const { origin, requests, check } = await busy()
    const call = policy.run(keyed(mintKey()), async () => check(await send(origin)))
    await expect(call).rejects.toMatchObject(refused)
    expect(requests()).toHaveLength(1)
  })

  it('is refused where the client mints it for an origin that honours keys, and is none where keys mean nothing', async () => {
    const { origin, requests, check } = await busy()
    const honouring = httpClient({ honoursKeys: [origin], policy: { backoff: constantDelay(1) } })
    const guard = repeatable('sets the same state')
    await expect(policy.run(guard, async () => check(await honouring.fetch(origin, post)))).rejects.toMatchObject(
      refused,
    )
    expect(requests()).toHaveLength(1)
    await expect(policy.run(guard, async () => check(await client.fetch(origin, post)))).rejects.toThrow('not ok')
    expect(requests()).toHaveLength(4)
  })

  it('is refused in a policy inside another one', async () => {
    const inner = retryPolicy({ attempts: 3, backoff: constantDelay(1) })
    let calls = 0
    const body = () =>
      inner.run(keyed(mintKey()), () => {
        calls += 1
        throw Object.assign(new Error('not ok'), { status: 500 })
      })
    await expect(policy.run(repeatable('so it seems'), body)).rejects.toMatchObject(refused)
    expect(calls).toBe(1)
  })

  it('is one key where it is minted before', async () => {
    const { origin, requests, check } = await busy()
    const key = mintKey()
    const call = policy.run(keyed(key), async (attempt) =>
      check(await client.fetch(origin, { ...post, key: attempt.key })),
    )
    await expect(call).rejects.toThrow('not ok')
    expect(requests()).toHaveLength(3)
    expect(new Set(requests().map(({ headers }) => headers['idempotency-key'])).size).toBe(1)
  })
})
