import { describe, expect, it } from 'vitest'
import { effect, type Native, routeWorld, send, settledInTime, usual } from '../../../../test/http/route-world.js'
import { type DrilledCall, type DrillOptions, type DrillViolationEvent, drill } from '../../../drill/index.js'
import { rerunKeyed } from '../../../idempotency/index.js'
import { mintKey } from '../../../identity/index.js'
import { AnswerError, reply } from '../answer/answer.js'
import type { HttpRequest } from '../request/http-request.js'
import { leasedRoute } from './leased.js'

/** Routes in a domain in which each request is repeated, on a clock that is moved by hand. */
function world(more: Partial<DrillOptions> = {}) {
  const violations: DrillViolationEvent[] = []
  const drilled = drill({ oneIn: 1, onViolation: (violation) => violations.push(violation), ...more })
  const inner = routeWorld({ drill: drilled })
  const later = async () => {
    await inner.clock.advance('1s')
    return drilled.settled()
  }
  return { ...inner, drilled, violations, later }
}

describe('an atomic route', () => {
  it('agrees on what is repeated of an answer, and leaves out what is not', async () => {
    const calls: DrilledCall[] = []
    const { route, later, effects } = world({
      effects: (call) => {
        calls.push(call)
        return 1
      },
    })
    const parse = (request: HttpRequest) => request.json() as { amount: number }
    const charges = route({ parse }, async ({ tx }) => {
      await effect(tx)
      return reply(201, Buffer.from([0, 255]), { 'set-cookie': mintKey(), etag: '"1"' })
    })
    const key = mintKey()
    expect((await send(charges, { key })).status).toBe(201)
    expect(await later()).toMatchObject({ agreed: 1, violations: 0 })
    expect(effects()).toBe(1)
    expect(calls[0]).toMatchObject({ kind: 'route', domain: 'shop', name: 'charges' })
    expect(calls[0]?.input).toMatchObject({ key, principal: ['ada'], input: { amount: 1 }, native: { user: 'ada' } })
  })

  it('agrees on an answer that was thrown, and on one that was returned and refuses', async () => {
    const { route, later } = world()
    await send(
      route({ name: 'thrown' }, () => {
        throw new AnswerError(reply(402, { reason: 'no money' }))
      }),
    )
    await send(route({ name: 'returned' }, () => reply(422, { reason: 'odd' })))
    expect(await later()).toMatchObject({ agreed: 2, violations: 0 })
  })

  it.each([
    ['a principal that is minted', { principal: () => mintKey() }, 'DRILL_EXECUTED', undefined],
    ['a principal that is known once', { principal: once((native: Native) => native.user) }, 'DRILL_REFUSED', '401'],
    [
      'a parse that lets it pass once',
      {
        parse: once(
          () => true,
          () => {
            throw new AnswerError(reply(409, { reason: 'there already' }))
          },
        ),
      },
      'DRILL_REFUSED',
      '409',
    ],
  ])('is found with %s, and has no second effect', async (_mistake, options, code, refusal) => {
    const { route, later, effects, violations } = world()
    expect((await send(route(options as never))).status).toBe(201)
    expect(await later()).toMatchObject({ agreed: 0, violations: 1 })
    expect(violations).toMatchObject([{ code, kind: 'route', name: 'charges' }])
    expect([violations[0]?.refusal, effects()]).toEqual([refusal, 1])
  })

  it('is left out where it has no key, fails, keeps no answer, or throws what is no answer', async () => {
    const { route, later, effects } = world()
    const optional = route({ required: false })
    await send(optional, { key: undefined })
    await send(route({ name: 'failing' }, () => reply(503))).catch(() => undefined)
    await send(route({ name: 'large', largestAnswer: 3 }, () => reply(200, 'more than that')))
    const broken = once(
      () => true,
      () => {
        throw new TypeError('no')
      },
    )
    await send(route({ name: 'broken', parse: broken as never }))
    expect(await later()).toMatchObject({
      agreed: 0,
      violations: 0,
      skipped: { unkeyed: 1, 'no-outcome': 1, 'not-kept': 1, unanswered: 1 },
    })
    expect(effects()).toBe(2)
  })
})

describe('a leased route', () => {
  it.each(['sync', 'async'] as const)('that responds %s agrees, and sends once', async (respond) => {
    const { db, clock, later } = world()
    let sent = 0
    const route = leasedRoute<Native>(db, { ...usual, recover: rerunKeyed('24h'), respond }, async ({ lease }) => {
      sent += await lease.effect('charge', async () => 1)
      return reply(201, { sent })
    })
    expect((await send(route)).status).toBe(respond === 'sync' ? 201 : 202)
    await settledInTime(clock, route.drain())
    expect(await later()).toMatchObject({ agreed: 1, violations: 0 })
    expect(sent).toBe(1)
  })
})

/** A function that does one thing when it is first called, and another one then. Default: nothing. */
function once<Given extends unknown[]>(first: (...given: Given) => unknown, then?: () => unknown) {
  let calls = 0
  return (...given: Given): unknown => {
    calls += 1
    return calls === 1 ? first(...given) : then?.()
  }
}
