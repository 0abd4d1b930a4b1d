import { expect, it } from 'vitest'
import { gate } from '../../../../test/gate.js'
import {
  factsOf,
  listening,
  type Native,
  read,
  type Sent,
  send,
  settledInTime,
  usual,
} from '../../../../test/http/route-world.js'
import { type StoreFault, world } from '../../../../test/idempotency/leased-world.js'
import { hold, rerunKeyed } from '../../../idempotency/index.js'
import { eventLoopTurn } from '../../../kernel/index.js'
import { type Answer, AnswerError, reply } from '../answer/answer.js'
import { invalid } from '../request/http-request.js'
import { type LeasedRoute, leasedRoute } from '../route/leased.js'
import type { LeasedRouteOptions } from '../route/options.js'

const ask = async (route: LeasedRoute<Native>, target: string, { user = 'ada', ...sent }: Sent = {}) =>
  read(await route.status.handle(factsOf({ method: 'GET', target, ...sent }), { user }))

/** A route whose work goes on behind its 202 until the test says so, and the address of its status. */
async function begun(
  more: Partial<LeasedRouteOptions<Native, undefined>> = {},
  fault?: (method: string) => StoreFault,
) {
  const inner = world()
  const work = gate<Answer>()
  const options = { ...usual, respond: 'async', recover: hold(), log: () => undefined, ...more } as const
  const route = leasedRoute<Native>(inner.store(fault), options as never, () => work.opened)
  const { headers } = await send(route)
  return { ...inner, route, work, options, at: headers['location'] as string }
}

it('says 202 while the work goes on, and gives the outcome once it is there', async () => {
  const { route, work, at } = await begun()
  const { events, end } = listening()
  const now = await ask(route, at)
  expect(now).toMatchObject({ status: 202, text: '{"state":"working"}', headers: { 'retry-after': '1' } })
  expect(now.headers['cache-control']).toBe('no-store')
  expect(now.headers['idempotent-replayed']).toBeUndefined()
  work.open(reply(201, { id: 7 }, { location: '/charges/7', 'set-cookie': 'a=b' }))
  await route.drain()
  const then = await ask(route, at, { headers: { origin: 'https://shop.example', 'reprise-attempt': '2' } })
  end()
  expect(then).toMatchObject({
    status: 201,
    text: '{"id":7}',
    headers: { location: '/charges/7', 'idempotent-replayed': 'true', 'cache-control': 'no-store' },
  })
  expect(then.headers['access-control-expose-headers']).toContain('Location')
  expect(then.headers['set-cookie']).toBeUndefined()
  expect(events.map(({ how, status, attempt }) => [how, status, attempt])).toEqual([
    ['asked', 202, undefined],
    ['asked', 201, 2],
  ])
})

it.each([
  ['Prefer', '', { prefer: 'respond-async, wait=20' }],
  ['a query', '?wait=20', {}],
])('waits for the end where %s says so, and answers as soon as it is there', async (_how, query, headers) => {
  const { route, work, at, clock } = await begun()
  const asked = ask(route, at + query, { headers })
  await eventLoopTurn()
  await clock.advance('10s')
  work.open(reply(201, 'done'))
  expect(await asked).toMatchObject({ status: 201, text: 'done' })
  expect(clock.monotonicMs()).toBe(10_000)
})

it.each([
  ['as it says', '?wait=3', {}, 3_000],
  ['at most as the route allows', '?wait=900', {}, 30_000],
  ['at most as the deadline of the caller allows', '?wait=20', { 'reprise-deadline-ms': '2050' }, 2_000],
  ['not at all where it says nothing that can be read', '?wait=soon', { prefer: 'wait=x' }, 0],
])('waits %s: %s', async (_what, query, headers, waitedMs) => {
  const { route, at, clock } = await begun()
  const answer = await settledInTime(clock, ask(route, at + query, { headers }), 50)
  expect(answer.status).toBe(202)
  expect(clock.monotonicMs()).toBeGreaterThanOrEqual(waitedMs)
  expect(clock.monotonicMs()).toBeLessThan(waitedMs + 500)
})

it('waits for work of another process, too', async () => {
  const { options, store, work, route, at, clock } = await begun()
  const other = leasedRoute<Native>(store(), options as never, () => reply(500))
  const asked = ask(other, `${at}?wait=25`)
  await eventLoopTurn()
  await clock.advance('5s')
  work.open(reply(201, 'elsewhere'))
  await route.drain()
  expect(await settledInTime(clock, asked, 100)).toMatchObject({ status: 201, text: 'elsewhere' })
  expect(clock.monotonicMs()).toBeLessThan(7_000)
})

it('tells one caller nothing of the work of another, nor of another route', async () => {
  const { route, work, at, store, options } = await begun()
  work.open(reply(201, 'for ada alone'))
  await route.drain()
  const nothing = await ask(route, '/charges/work/nothing')
  expect(nothing).toMatchObject({ status: 404, problem: 'work-not-found' })
  // Word for word as where there is nothing.
  expect(await ask(route, at, { user: 'eve' })).toEqual(nothing)
  const other = leasedRoute<Native>(store(), { ...options, name: 'refunds' } as never, () => reply(201))
  expect(await ask(other, at)).toEqual(nothing)
  expect(await ask(route, `${at}%zz`)).toEqual(nothing)
  expect(await ask(route, at, { user: '' })).toMatchObject({ status: 401, problem: 'unauthenticated' })
  expect((await ask(route, at)).text).toBe('for ada alone')
})

it.each([
  ['hold', hold(), false],
  ['rerun', rerunKeyed('1h'), true],
])('says honestly that nobody knows, when whoever worked is gone: %s', async (_kind, recover, retryable) => {
  const { route, at, clock, records } = await begun({ recover })
  Object.assign(records, { swap: () => Promise.reject(new Error('connection refused')) })
  expect((await ask(route, at)).status).toBe(202)
  await clock.advance('40s')
  const unknown = await ask(route, `${at}?wait=10`)
  expect(unknown).toMatchObject({ status: 409, problem: 'outcome-unknown' })
  expect(JSON.parse(unknown.text)).toMatchObject({ retryable })
  expect(unknown.headers['retry-after']).toBe(retryable ? '1' : undefined)
})

it('says so where the outcome is final, too large to keep, or cannot be read', async () => {
  const failed = await begun()
  failed.work.shut(new AnswerError(reply(402, 'declined')))
  await failed.route.drain()
  expect(await ask(failed.route, failed.at)).toMatchObject({ status: 402, text: 'declined' })
  const large = await begun({ largestAnswer: 5 })
  large.work.open(reply(201, 'longer than five', { location: '/charges/8' }))
  await large.route.drain()
  const kept = await ask(large.route, large.at)
  expect(kept).toMatchObject({ status: 410, problem: 'answer-not-kept', headers: { location: '/charges/8' } })
  const [id, record] = [...large.records.committed][0] as [never, object]
  large.records.committed.set(id, { ...record, codec: 'nobody-has-it' } as never)
  expect(await ask(large.route, large.at)).toMatchObject({ status: 500, problem: 'record-unusable' })
})

it('answers for a store that is away, for other methods, and for what principal throws', async () => {
  let fault: StoreFault = 'fine'
  const { route, at, clock, options, store } = await begun({}, () => fault)
  fault = 'not-sent'
  const away = await settledInTime(clock, ask(route, at), 100)
  expect(away).toMatchObject({ status: 503, problem: 'store-unavailable', headers: { 'retry-after': '1' } })
  fault = 'fine'
  const posted = await ask(route, at, { method: 'POST' })
  expect(posted).toMatchObject({ status: 405, problem: 'method-not-allowed', headers: { allow: 'GET, HEAD' } })
  expect((await ask(route, at, { method: 'HEAD' })).status).toBe(202)
  const own = new Error('mine')
  const throwing = (error: unknown) =>
    leasedRoute<Native>(
      store(),
      {
        ...options,
        principal: () => {
          throw error
        },
      } as never,
      () => reply(201),
    )
  await expect(ask(throwing(own), at)).rejects.toBe(own)
  expect(await ask(throwing(new AnswerError(reply(403, 'no'))), at)).toMatchObject({ status: 403, text: 'no' })
  expect(await ask(throwing(invalid(400, 'odd')), at)).toMatchObject({ status: 400, problem: 'request-invalid' })
})
