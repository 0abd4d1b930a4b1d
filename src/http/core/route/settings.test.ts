import { expect, it } from 'vitest'
import { routeWorld, usual } from '../../../../test/http/route-world.js'
import { reply } from '../answer/answer.js'
import { atomicRoute } from './atomic.js'
import { leasedRoute } from './leased.js'

it.each([
  ['principal', { principal: undefined }, 'SCOPE_MISSING'],
  ['an unknown option', { windw: '1h' }, 'OPERATION_INVALID'],
  ['required', { required: 'yes' }, 'OPERATION_INVALID'],
  ['methods', { methods: ['GET'] }, 'OPERATION_INVALID'],
  ['methods', { methods: [] }, 'OPERATION_INVALID'],
  ['methods', { methods: 'POST' }, 'OPERATION_INVALID'],
  ['key', { key: { minLength: 300 } }, 'OPERATION_INVALID'],
  ['key', { key: { form: 'bare' } }, 'OPERATION_INVALID'],
  ['key', { key: { header: 'a b' } }, 'OPERATION_INVALID'],
  ['key', { key: { strict: true } }, 'OPERATION_INVALID'],
  ['key', { key: null }, 'OPERATION_INVALID'],
  ['mostBodyBytes', { mostBodyBytes: -1 }, 'OPERATION_INVALID'],
  ['mostBodyBytes', { mostBodyBytes: 16_777_217 }, 'OPERATION_INVALID'],
  ['largestAnswer', { largestAnswer: 1.5 }, 'OPERATION_INVALID'],
  ['liveKeys', { liveKeys: 0 }, 'OPERATION_INVALID'],
  ['problems', { problems: 'a b' }, 'OPERATION_INVALID'],
  ['stores', { stores: true }, 'OPERATION_INVALID'],
  ['stores', { stores: async (status: number) => status === 402 }, 'OPERATION_INVALID'],
  ['stores', { stores: async () => Promise.reject(new Error('not now')) }, 'OPERATION_INVALID'],
  ['stores', { stores: (status: number) => status % 2 }, 'OPERATION_INVALID'],
  ['trusts', { trusts: true }, 'OPERATION_INVALID'],
  ['answerOf', { answerOf: {} }, 'OPERATION_INVALID'],
  ['parse', { parse: 'json' }, 'OPERATION_INVALID'],
  ['replayHeaders', { replayHeaders: ['Set-Cookie'] }, 'OPERATION_INVALID'],
  ['codec', { codec: { name: 'x' } }, 'OPERATION_INVALID'],
  ['earlierCodecs', { earlierCodecs: 7 }, 'OPERATION_INVALID'],
  ['window', { window: '1h', retryHorizon: '2h' }, 'WINDOW_SHORTER_THAN_HORIZON'],
  ['window', { window: 'a day' }, 'DURATION_INVALID'],
  ['deadline', { deadline: 0 }, 'DURATION_INVALID'],
  ['wayBack', { wayBack: 'soon' }, 'DURATION_INVALID'],
  ['attempts', { attempts: 0 }, 'OPERATION_INVALID'],
  ['lease', { lease: '30s' }, 'OPERATION_INVALID'],
  ['name', { name: '1' }, 'OPERATION_INVALID'],
])('refuses a route whose %s cannot be: %j', (_option, given, code) => {
  const { db } = routeWorld()
  const options = { ...usual, ...given } as never
  expect(() => atomicRoute(db, options, () => reply(204))).toThrow(expect.objectContaining({ code }))
})

it.each([
  ['no store', [undefined, usual, () => reply(204)], 'db'],
  ['options in its place', [usual, () => reply(204)], 'db'],
  ['no handler', [routeWorld().db, usual], 'handler'],
  [
    'a handler that wants a response',
    [routeWorld().db, usual, (_request: unknown, _response: unknown) => reply(204)],
    'handler',
  ],
])('refuses %s where the route is written', (_what, given, option) => {
  const refusal = expect.objectContaining({ code: 'OPERATION_INVALID', details: { option } })
  expect(() => atomicRoute(...(given as Parameters<typeof atomicRoute>))).toThrow(refusal)
  expect(() => leasedRoute(...(given as Parameters<typeof leasedRoute>))).toThrow(refusal)
})

it('refuses no options, and a second route of the same name', () => {
  const { db, route } = routeWorld()
  expect(() => atomicRoute(db, undefined as never, () => reply(204))).toThrow(
    expect.objectContaining({ code: 'OPERATION_INVALID' }),
  )
  route()
  expect(() => route()).toThrow(expect.objectContaining({ code: 'OPERATION_DEFINED_TWICE' }))
})

it('answers the five questions', () => {
  const { route } = routeWorld()
  expect(route().answers).toMatchObject({
    name: 'charges',
    mode: 'atomic',
    rung: 'atomic',
    identity: { mintedBy: 'client', windowMs: 86_400_000, content: 'compared' },
    reversibility: 'guarded',
    domain: { name: 'shop', holds: 'marker and effect' },
  })
})
