// Our own client against our own server, while another request with the key is at work: its 409 is waited for, and is no
// sign that the server is unwell.

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { type HttpClientOptions, httpClient } from '../../src/http/client/index.js'
import { idempotent, reply } from '../../src/http/node/index.js'
import { mintKey } from '../../src/identity/index.js'
import {
  type AttemptRecord,
  constantDelay,
  countBreaker,
  hedging,
  ratioBudget,
  tokenBudget,
} from '../../src/retry/index.js'
import { memory } from '../../src/stores/memory/index.js'

const opened: (() => void)[] = []
afterEach(() => {
  for (const close of opened.splice(0)) close()
})

/** A service whose handler answers only once a duplicate of its request was refused, which proves that there was one. */
async function payments() {
  const db = memory({ name: 'shop', deadline: '120s', bodyLimit: '60s' })
  const [waiting, refused] = [new Map<unknown, () => void>(), new Set<unknown>()]
  const seen = { runs: 0, refused: 0 }
  const pay = idempotent(db, { name: 'pay', principal: () => 'ada' }, async ({ request }) => {
    seen.runs += 1
    const key = request.header('idempotency-key')
    // The duplicate may be refused as soon as the key is claimed, which is before this.
    if (!refused.has(key)) await new Promise<void>((resolve) => waiting.set(key, resolve))
    return reply(201, { paid: true })
  })
  const server = createServer((request, response) => {
    response.on('finish', () => {
      if (response.statusCode !== 409) return
      const key = request.headers['idempotency-key']
      seen.refused += 1
      refused.add(key)
      waiting.get(key)?.()
    })
    void pay(request, response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  opened.push(() => {
    server.close()
    server.closeAllConnections()
  })
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}

const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"amount":12}' }

describe('a 409 in flight of our own server', () => {
  it.each(['honoursKeys', 'trusts'] as const)(
    'is waited for where the origin is in %s: the replay comes',
    async (known) => {
      const { origin, seen } = await payments()
      const key = mintKey()
      // Another process works on it.
      const first = fetch(origin, { ...post, headers: { ...post.headers, 'idempotency-key': `"${key}"` } })
      await expect.poll(() => seen.runs).toBe(1)
      const client = httpClient({ [known]: [origin], policy: { backoff: constantDelay(1) } })
      const history: AttemptRecord[] = []
      const answer = await client.fetch(origin, { ...post, key, history })
      expect([answer.status, answer.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
      expect(history.map(({ verdict }) => verdict)).toEqual([
        { help: 'transient', happened: 'no', why: 'http-409', retryAfterMs: 1_000, inFlight: true, proof: 'refused' },
      ])
      expect((await first).status).toBe(201)
      expect(seen.runs).toBe(1)
    },
  )

  it('is the answer of an origin of which nothing is declared', async () => {
    const { origin, seen } = await payments()
    const key = mintKey()
    const first = fetch(origin, { ...post, headers: { ...post.headers, 'idempotency-key': `"${key}"` } })
    await expect.poll(() => seen.runs).toBe(1)
    expect((await httpClient().fetch(origin, { ...post, key })).status).toBe(409)
    await first
  })

  it.each([
    ['token', () => tokenBudget()],
    ['ratio', () => ratioBudget({ ratio: 1, initial: 1_000 })],
  ])(
    'answered to its own hedges neither trips the breaker nor drains the %s budget, in 40 calls',
    async (_kind, make) => {
      const { origin, seen } = await payments()
      const [budget, breaker] = [make(), countBreaker({ size: 10, failureRatio: 0.5, minimumCalls: 10 })]
      const options: HttpClientOptions = {
        honoursKeys: [origin],
        budget: () => budget,
        breaker: () => breaker,
        policy: { hedge: hedging({ after: 20 }), attempts: 2 },
      }
      const client = httpClient(options)
      const full = budget.level(performance.now())
      for (let call = 0; call < 40; call++) expect((await client.fetch(origin, post)).status).toBe(201)
      expect(seen).toEqual({ runs: 40, refused: 40 })
      expect(breaker.snapshot(performance.now())).toMatchObject({ state: 'closed', trips: 0 })
      // What a hedge itself takes of a share is its price; the answer to it takes nothing more.
      expect(budget.level(performance.now())).toBeGreaterThanOrEqual(budget.data.kind === 'token' ? full : full - 1)
    },
  )
})
