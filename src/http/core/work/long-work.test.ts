import { expect, it, vi } from 'vitest'
import { gate } from '../../../../test/gate.js'
import { listening, type Native, send, settledInTime, usual } from '../../../../test/http/route-world.js'
import { type StoreFault, world } from '../../../../test/idempotency/leased-world.js'
import { hold, rerunKeyed } from '../../../idempotency/index.js'
import { mintKey } from '../../../identity/index.js'
import { eventLoopTurn } from '../../../kernel/index.js'
import { type Answer, AnswerError, reply } from '../answer/answer.js'
import type { RefusalCause } from '../route/causes.js'
import { leasedRoute } from '../route/leased.js'
import type { LeasedRouteOptions } from '../route/options.js'

/** A route whose work goes on behind its 202 until the test says so. */
function behind(more: Partial<LeasedRouteOptions<Native, undefined>> = {}) {
  const inner = world()
  const work = gate<Answer>()
  const causes: RefusalCause[] = []
  const seen = { runs: 0 }
  const options = { ...usual, respond: 'async', recover: hold(), log: (cause: RefusalCause) => causes.push(cause) }
  const route = leasedRoute<Native>(inner.store(), { ...options, ...more } as never, async ({ lease }) => {
    seen.runs += 1
    return lease.effect('charge', () => work.opened)
  })
  return { ...inner, route, work, causes, seen }
}

it('answers 202 with a Location when the claim is durable, the same to repeats, and then the outcome', async () => {
  const { route, work, seen, records } = behind()
  const key = mintKey()
  const { events, end } = listening()
  const first = await send(route, { key })
  expect(first).toMatchObject({ status: 202, headers: { 'retry-after': '1', 'cache-control': 'no-store' } })
  const [id] = records.committed.keys()
  expect(first.headers['location']).toBe(`/charges/work/${id}`)
  expect(first.headers['location']).not.toContain(key)
  expect(JSON.parse(first.text)).toEqual({ state: 'working', location: first.headers['location'] })
  expect([...records.committed.values()]).toMatchObject([{ state: 'claimed' }])
  expect(await send(route, { key })).toEqual(first)
  expect(await send(route, { key, body: '{"amount":2}' })).toMatchObject({ status: 422, problem: 'key-reused' })
  work.open(reply(201, { id: 7 }, { location: '/charges/7' }))
  expect(await route.drain()).toBe(0)
  const again = await send(route, { key })
  end()
  expect(again).toMatchObject({ status: 201, text: '{"id":7}', headers: { 'idempotent-replayed': 'true' } })
  expect(again.headers['location']).toBe('/charges/7')
  expect(seen.runs).toBe(1)
  expect(events.map(({ how, status }) => [how, status])).toEqual([
    ['accepted', 202],
    ['accepted', 202],
    ['refused', 422],
    ['replayed', 201],
  ])
})

it('is not ended by the deadline of the request, nor by that of its caller', async () => {
  const { route, work, clock } = behind({ deadline: '5s', workLimit: '1h' })
  const key = mintKey()
  expect((await send(route, { key, headers: { 'reprise-deadline-ms': '1000' } })).status).toBe(202)
  for (let minutes = 0; minutes < 50; minutes += 1) await clock.advance('1m')
  expect((await send(route, { key })).status).toBe(202)
  work.open(reply(201))
  await route.drain()
  expect(await send(route, { key })).toMatchObject({ status: 201, headers: { 'idempotent-replayed': 'true' } })
})

it('drains: waits for work in hand, and says how much is left when the time is up', async () => {
  const { route, work, clock } = behind()
  expect(await route.drain()).toBe(0)
  await send(route)
  await send(route)
  const early = settledInTime(clock, route.drain({ within: '2s' }), 100)
  expect(await early).toBe(2)
  const drained = route.drain({ within: '2s' })
  work.open(reply(201))
  expect(await drained).toBe(0)
  await expect(route.drain({ within: 'soon' as never })).rejects.toMatchObject({ code: 'DURATION_INVALID' })
})

it('tells whoever runs the service why work has no outcome, since no answer does', async () => {
  const { route, work, causes } = behind()
  const key = mintKey()
  await send(route, { key })
  work.shut(new Error('the gateway said nothing'))
  await route.drain()
  expect(causes).toMatchObject([{ route: 'charges', domain: 'test', problem: 'outcome-unknown' }])
  expect(causes[0]?.message).toContain('the gateway said nothing')
  expect(await send(route, { key })).toMatchObject({ status: 409, problem: 'outcome-unknown' })
})

it.each([
  ['an error', () => new Error('no room')],
  ['an answer that is not kept', () => new AnswerError(reply(503, 'busy'))],
  ['no error at all', () => null],
])('leaves the key free where nothing was sent, and tells why: %s', async (_what, thrown) => {
  const inner = world()
  const causes: RefusalCause[] = []
  let runs = 0
  const options = { ...usual, respond: 'async', recover: hold(), log: (cause: RefusalCause) => void causes.push(cause) }
  const route = leasedRoute<Native>(inner.store(), options as never, ({ lease }) => {
    runs += 1
    if (runs === 1) throw lease.notSent(thrown())
    return reply(201)
  })
  const key = mintKey()
  expect((await send(route, { key })).status).toBe(202)
  await route.drain()
  expect(inner.records.committed.size).toBe(0)
  expect(causes).toMatchObject([{ problem: 'work-not-found' }])
  expect((await send(route, { key })).status).toBe(202)
  await route.drain()
  expect(await send(route, { key })).toMatchObject({ status: 201 })
})

it('takes up work whose lease is over by a repeat, behind a 202 at the same Location', async () => {
  const { store, clock } = world()
  const options = { ...usual, respond: 'async', recover: rerunKeyed('1h'), log: () => undefined } as const
  let fault: StoreFault = 'fine'
  const first = leasedRoute<Native>(
    store(() => fault),
    options,
    () => new Promise<never>(() => undefined),
  )
  const second = leasedRoute<Native>(store(), options, () => reply(201))
  const key = mintKey()
  const accepted = await send(first, { key })
  // The first process is gone: nothing of it reaches the store any more.
  fault = 'not-sent'
  expect((await send(second, { key })).headers['location']).toBe(accepted.headers['location'])
  await clock.advance('40s')
  const again = await send(second, { key })
  expect([again.status, again.headers['location']]).toEqual([202, accepted.headers['location']])
  await second.drain()
  expect(await send(second, { key })).toMatchObject({ status: 201 })
})

it.each([
  ['/charges/', '/charges/work/'],
  ['//evil.example/charges', '/evil.example/charges/work/'],
  ['/', '/work/'],
  ['http://evil.example/a%20b', '/a%20b/work/'],
  ['/caf\u00e9', '/caf%C3%A9/work/'],
])('a Location stays on this host: %s', async (target, expected) => {
  const { route } = behind()
  const { headers } = await send(route, { target })
  expect(headers['location']).toMatch(new RegExp(`^${expected.replaceAll('/', '\\/')}sha256:`))
})

it('lets the user say where the status is, before anything is begun', async () => {
  const given = vi.fn((id: string, { user }: Native) => `/users/${user}/work/${id}`)
  const { route, records } = behind({ location: given })
  expect((await send(route)).headers['location']).toMatch(/^\/users\/ada\/work\/sha256:/)
  const own = new Error('mine')
  const broken = behind({
    location: () => {
      throw own
    },
  })
  await expect(send(broken.route)).rejects.toBe(own)
  const odd = behind({ location: () => 'a b' })
  await expect(send(odd.route)).rejects.toMatchObject({ code: 'ARGUMENT_INVALID', details: { option: 'location' } })
  expect([records.committed.size, broken.records.committed.size, odd.records.committed.size]).toEqual([1, 0, 0])
})

it.each([
  [{ respond: 'later' }, 'respond'],
  [{ respond: 'sync', workLimit: '1h' }, 'workLimit'],
  [{ respond: undefined, location: () => '/' }, 'location'],
  [{ respond: 'sync', statusWait: '1s' }, 'statusWait'],
  [{ location: '/work' }, 'location'],
  [{ duplicates: 'wait' }, 'duplicates'],
])('refuses options that do not go together: %j', (more, option) => {
  const code = 'OPERATION_INVALID'
  expect(() => behind(more as never)).toThrow(expect.objectContaining({ code, details: { option } }))
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
  const { route, work } = behind({ largestAnswer: 10 })
  const key = mintKey()
  await send(route, { key })
  work.open(reply(200, endless()))
  await route.drain()
  await eventLoopTurn()
  expect(ended).toBe(1)
  expect(await send(route, { key })).toMatchObject({ status: 410, problem: 'answer-not-kept' })
})
