import { expect, it } from 'vitest'
import { listening, type Native, send, settledInTime, usual } from '../../../../test/http/route-world.js'
import { type StoreFault, world } from '../../../../test/idempotency/leased-world.js'
import { refusedPort } from '../../../../test/retry/sockets.js'
import type { RecordLimits } from '../../../atomicity/index.js'
import { didNotHappen, happened, hold, rerunKeyed, resolve, stillUnknown } from '../../../idempotency/index.js'
import { mintKey } from '../../../identity/index.js'
import { AnswerError, reply } from '../answer/answer.js'
import { type LeasedHandler, leasedRoute } from './leased.js'
import type { LeasedRouteOptions } from './options.js'

/** A route with an outside world that counts what arrives there. */
function outside(more: Partial<LeasedRouteOptions<Native, undefined>> = {}, fault?: (method: string) => StoreFault) {
  const inner = world()
  const arrived: string[] = []
  const store = inner.store(fault)
  const route = (handler: LeasedHandler<Native, undefined>, options = {}) =>
    leasedRoute(store, { ...usual, recover: hold(), ...more, ...options }, handler)
  const charge: LeasedHandler<Native, undefined> = async ({ lease }) => {
    await lease.effect('charge', ({ key }) => arrived.push(key))
    return reply(201, { number: arrived.length })
  }
  return { ...inner, arrived, route, charge, records: inner.records }
}

it('runs once under a lease, and repeats the answer', async () => {
  const { route, charge, arrived } = outside()
  const charges = route(charge)
  const key = mintKey()
  expect(await send(charges, { key })).toMatchObject({ status: 201, text: '{"number":1}' })
  const again = await send(charges, { key })
  expect(again).toMatchObject({ status: 201, text: '{"number":1}', headers: { 'idempotent-replayed': 'true' } })
  expect(arrived.length).toBe(1)
  expect(charges.answers).toMatchObject({ mode: 'leased', leaseMs: 30_000, domain: { holds: 'marker' } })
})

it.each([{}, { required: true }])('always needs a key, and a method that takes one: %j', async (options) => {
  const { route, charge, arrived } = outside()
  const charges = route(charge, options)
  expect(await send(charges, { key: undefined })).toMatchObject({ status: 400, problem: 'key-missing' })
  const got = await send(charges, { key: mintKey(), method: 'GET' })
  expect(got).toMatchObject({ status: 405, problem: 'method-not-allowed' })
  expect(got.headers['allow']).toBe('POST, PUT, PATCH, DELETE')
  expect(arrived).toEqual([])
  expect(() => route(charge, { name: 'other', required: false })).toThrow(
    expect.objectContaining({ code: 'OPERATION_INVALID', details: { option: 'required' } }),
  )
})

it('tells the one whose run may have had the effect 500, and its repeats 409, and runs nothing again', async () => {
  const { route, arrived } = outside()
  let runs = 0
  const charges = route(async ({ lease }) => {
    runs += 1
    await lease.effect('charge', ({ key }) => arrived.push(key))
    if (runs === 1) return reply(502, 'the gateway said nothing')
    throw new Error('unreachable')
  })
  const key = mintKey()
  const { events, end } = listening()
  const first = await send(charges, { key })
  // A person has to settle it: coming back does not help by itself.
  expect(first).toMatchObject({ status: 500, problem: 'outcome-unknown' })
  expect(JSON.parse(first.text)).toMatchObject({ retryable: false })
  expect(first.headers['retry-after']).toBeUndefined()
  const again = await send(charges, { key })
  end()
  expect(again).toMatchObject({ status: 409, problem: 'outcome-unknown' })
  expect([runs, arrived.length]).toEqual([1, 1])
  expect(events.map(({ how, problem }) => [how, problem])).toEqual([
    ['refused', 'outcome-unknown'],
    ['refused', 'outcome-unknown'],
  ])
})

it.each([
  ['hold', hold(), undefined],
  ['rerunKeyed', rerunKeyed('1h'), '1'],
])(
  'tells the channel what a handler threw, and says when to come back only where that helps: %s',
  async (_name, recover, retryAfter) => {
    const { route, arrived } = outside({ recover })
    const own = new Error('a bug before the first effect')
    const charges = route(() => {
      throw own
    })
    const { events, end } = listening()
    const first = await send(charges, { key: mintKey() })
    end()
    expect(first).toMatchObject({ status: 500, problem: 'outcome-unknown' })
    expect([first.headers['retry-after'], arrived]).toEqual([retryAfter, []])
    expect(events).toEqual([expect.objectContaining({ how: 'refused', status: 500, problem: 'outcome-unknown' })])
    expect(events[0]?.error).toMatchObject({ code: 'OPERATION_UNKNOWN', cause: own })
  },
)

it('frees the key where nothing was sent, and hands on what was thrown or answered', async () => {
  const { route, charge, arrived } = outside()
  class SlowDown extends Error {}
  const ends: LeasedHandler<Native, undefined>[] = [
    async ({ lease }) => {
      const nowhere = `http://127.0.0.1:${await refusedPort()}`
      await lease.effect('charge', () => fetch(nowhere, { method: 'POST' })).catch(() => undefined)
      return reply(503, 'busy')
    },
    ({ lease }) => {
      throw lease.notSent(new SlowDown())
    },
    ({ lease }) => {
      throw lease.notSent(new AnswerError(reply(502, 'refused')))
    },
    charge,
  ]
  let run = 0
  const answerOf = (error: unknown) => (error instanceof SlowDown ? reply(429, 'slow down') : undefined)
  const charges = route((call) => (ends[run++] as typeof charge)(call), { answerOf })
  const key = mintKey()
  const statuses: number[] = []
  for (let sent = 0; sent < 5; sent++) statuses.push((await send(charges, { key })).status)
  expect(statuses).toEqual([503, 429, 502, 201, 201])
  expect([run, arrived.length]).toEqual([4, 1])
  const own = new Error('mine')
  const broken = route(
    ({ lease }) => {
      throw lease.notSent(own)
    },
    { name: 'broken' },
  )
  await expect(send(broken, { key })).rejects.toBe(own)
})

it('stores a final answer that was thrown after the effect', async () => {
  const { route, arrived } = outside()
  const charges = route(async ({ lease }) => {
    await lease.effect('charge', ({ key }) => arrived.push(key))
    throw new AnswerError(reply(402, 'declined'))
  })
  const key = mintKey()
  expect(await send(charges, { key })).toMatchObject({ status: 402, text: 'declined' })
  expect(await send(charges, { key })).toMatchObject({
    status: 402,
    text: 'declined',
    headers: { 'idempotent-replayed': 'true' },
  })
  expect(arrived.length).toBe(1)
})

it('answers with what was found out, as a handler would have', async () => {
  const found = [stillUnknown(), happened(reply(201, { number: 7 }, { location: '/charges/7', 'set-cookie': 'a=b' }))]
  const { route, arrived, clock } = outside({
    recover: resolve(() => found.shift() ?? didNotHappen()),
    lookAfter: '1s',
  })
  const charges = route(async ({ lease }) => {
    await lease.effect('charge', ({ key }) => arrived.push(key))
    throw new Error('no answer')
  })
  const key = mintKey()
  const first = await send(charges, { key })
  expect(first).toMatchObject({ status: 500, problem: 'outcome-unknown', headers: { 'retry-after': '1' } })
  expect(await send(charges, { key })).toMatchObject({ status: 409, problem: 'outcome-unknown' })
  await clock.advance('1m')
  const known = await send(charges, { key })
  expect(known).toMatchObject({ status: 201, text: '{"number":7}', headers: { location: '/charges/7' } })
  expect(known.headers['set-cookie']).toBeUndefined()
  expect(arrived.length).toBe(1)
})

it('runs again, with the same key towards the outside, where that is declared', async () => {
  const { route, arrived } = outside({ recover: rerunKeyed('24h') })
  let runs = 0
  const charges = route(async ({ lease }) => {
    runs += 1
    await lease.effect('charge', ({ key }) => arrived.push(key))
    if (runs === 1) throw new Error('no answer')
    return reply(201)
  })
  const key = mintKey()
  expect((await send(charges, { key })).status).toBe(500)
  expect((await send(charges, { key })).status).toBe(201)
  expect([runs, new Set(arrived).size]).toEqual([2, 1])
})

it('refuses with 503 in bounded time where the store is down, and does not run', async () => {
  const { route, charge, arrived, clock } = outside({ deadline: '3s' }, () => 'not-sent')
  const charges = route(charge)
  const beganMs = clock.monotonicMs()
  const got = await settledInTime(clock, send(charges))
  expect(got).toMatchObject({ status: 503, problem: 'store-unavailable', headers: { 'retry-after': '1' } })
  expect(clock.monotonicMs() - beganMs).toBeLessThanOrEqual(3_010)
  expect(arrived).toEqual([])
})

it('refuses with 503 in bounded time where the store does not answer', async () => {
  const inner = world()
  const silent = inner.store()
  let asked = 0
  Object.assign(inner.records, { insert: silence })
  function silence(_id: unknown, _draft: unknown, { deadline }: RecordLimits): Promise<never> {
    asked += 1
    // As the stores do: what does not come in time is refused by the deadline.
    return new Promise((_resolve, reject) => {
      inner.clock.setTimer(deadline.expiresAtMs - inner.clock.monotonicMs(), () => reject(new Error('no answer')))
    })
  }
  const charges = leasedRoute(silent, { ...usual, recover: hold(), deadline: '3s' }, () => reply(201))
  const beganMs = inner.clock.monotonicMs()
  const got = await settledInTime(inner.clock, send(charges))
  expect(got.status).toBe(503)
  expect(asked).toBeGreaterThan(0)
  expect(inner.clock.monotonicMs() - beganMs).toBeLessThanOrEqual(3_010)
})

it('lets go of a stream that nobody is going to send', async () => {
  let ended = 0
  async function* endless(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) yield new Uint8Array(1_000)
    } finally {
      ended += 1
    }
  }
  const { route, arrived } = outside({ largestAnswer: 10 })
  const charges = route(async ({ lease }) => {
    await lease.effect('charge', ({ key }) => arrived.push(key))
    return reply(500, endless())
  })
  expect((await send(charges)).problem).toBe('outcome-unknown')
  expect(ended).toBe(1)
})
