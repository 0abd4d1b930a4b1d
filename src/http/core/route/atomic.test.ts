import { expect, it } from 'vitest'
import { effect, listening, routeWorld, send } from '../../../../test/http/route-world.js'
import { inspectionOf } from '../../../atomicity/index.js'
import { fail, OperationFailedError } from '../../../idempotency/index.js'
import { mintKey } from '../../../identity/index.js'
import { RepriseError } from '../../../kernel/index.js'
import { AnswerError, reply } from '../answer/answer.js'
import { storesStatus } from '../answer/stored.js'
import { invalid } from '../request/http-request.js'

it('runs a handler once, and repeats its answer byte by byte', async () => {
  const { route, effects } = routeWorld()
  const charges = route()
  const key = mintKey()
  const first = await send(charges, { key })
  expect([first.status, first.headers['idempotent-replayed'], effects()]).toEqual([201, undefined, 1])
  for (let repeat = 0; repeat < 3; repeat++) {
    const again = await send(charges, { key })
    expect(again).toMatchObject({ status: 201, text: first.text })
    expect(again.headers).toEqual({
      'content-type': 'application/json',
      location: first.headers['location'],
      'idempotent-replayed': 'true',
      'cache-control': 'no-store',
    })
  }
  expect(effects()).toBe(1)
})

it('refuses another request under the same key, and keeps the first', async () => {
  const { route, effects } = routeWorld()
  const charges = route()
  const key = mintKey()
  const first = await send(charges, { key })
  for (const other of [
    { body: '{"amount":2}' },
    { target: '/charges?a=1' },
    { target: '/other' },
    { type: 'text/plain' },
  ]) {
    expect(await send(charges, { key, ...other })).toMatchObject({ status: 422, problem: 'key-reused' })
  }
  expect((await send(charges, { key })).text).toBe(first.text)
  // Another method, or another caller, has keys of its own.
  expect((await send(charges, { key, method: 'PUT' })).headers['idempotent-replayed']).toBeUndefined()
  expect((await send(charges, { key, user: 'bob' })).text).not.toBe(first.text)
  expect(effects()).toBe(3)
})

it.each([
  [{ key: undefined }, 400, 'key-missing'],
  [{ key: '' }, 400, 'key-invalid'],
  [{ key: '""' }, 400, 'key-invalid'],
  [{ key: 'x'.repeat(256) }, 400, 'key-invalid'],
  [{ key: ['a', 'b'] }, 400, 'key-invalid'],
  [{ key: 'a, b' }, 400, 'key-invalid'],
  [{ user: undefined }, 401, 'unauthenticated'],
  [{ user: '' }, 401, 'unauthenticated'],
])('refuses %j with %i before the store is asked', async (sent, status, problem) => {
  const { db, route } = routeWorld()
  const charges = route()
  await db.close()
  const got = await send(charges, sent)
  expect(got).toMatchObject({ status, problem })
  expect(got.headers).toMatchObject({ 'content-type': 'application/problem+json', 'cache-control': 'no-store' })
  expect(got.headers['retry-after']).toBeUndefined()
})

it('takes a quoted and a bare key for the same, and keys of different case for two', async () => {
  const { route, effects } = routeWorld()
  const charges = route()
  await send(charges, { key: 'Abc' })
  expect((await send(charges, { key: '"Abc"' })).headers['idempotent-replayed']).toBe('true')
  await send(charges, { key: 'abc' })
  expect(effects()).toBe(2)
})

it('carries out what needs no key in a transaction, and remembers nothing of it', async () => {
  const { route, effects } = routeWorld()
  const optional = route({ required: false })
  const { events, end } = listening()
  for (const sent of [
    { key: undefined },
    { key: undefined },
    { key: 'k', method: 'GET', body: '' },
    { key: 'k', method: 'HEAD', body: '' },
  ]) {
    const got = await send(optional, sent)
    expect([got.status, got.headers['idempotent-replayed']]).toEqual([201, undefined])
  }
  end()
  expect(effects()).toBe(4)
  expect(new Set(events.map(({ how }) => how))).toEqual(new Set(['unkeyed']))
})

it.each([
  [200, true],
  [201, true],
  [204, true],
  [303, true],
  [400, true],
  [402, true],
  [404, true],
  [409, true],
  [422, true],
  [401, false],
  [403, false],
  [408, false],
  [412, false],
  [421, false],
  [423, false],
  [425, false],
  [428, false],
  [429, false],
  [500, false],
  [502, false],
  [503, false],
])('returned, an answer %i is stored with what was written: %s; otherwise neither is there', async (status, stored) => {
  expect(storesStatus(status)).toBe(stored)
  const { route, effects } = routeWorld()
  let runs = 0
  const charges = route({}, async ({ tx }) => {
    runs += 1
    await effect(tx)
    return reply(status, status === 204 ? null : 'text')
  })
  const key = mintKey()
  expect((await send(charges, { key })).status).toBe(status)
  expect(effects()).toBe(stored ? 1 : 0)
  expect((await send(charges, { key })).headers['idempotent-replayed']).toBe(stored ? 'true' : undefined)
  expect(runs).toBe(stored ? 1 : 2)
})

it.each([
  [402, {}, true],
  [429, {}, false],
  [500, {}, false],
  [402, { kept: false }, false],
  [429, { kept: true }, true],
  [503, { kept: true }, false],
])('thrown, an answer %i rolls back what was written; with %j it is stored: %s', async (status, options, stored) => {
  const { route, effects } = routeWorld()
  let runs = 0
  const charges = route({}, async ({ tx }) => {
    runs += 1
    await effect(tx)
    throw new AnswerError(reply(status, `no ${runs}`), options)
  })
  const key = mintKey()
  expect(await send(charges, { key })).toMatchObject({ status, text: 'no 1' })
  expect(await send(charges, { key })).toMatchObject({ status, text: stored ? 'no 1' : 'no 2' })
  expect([runs, effects()]).toEqual([stored ? 1 : 2, 0])
  // Without a key there is nothing to be stored, and the same answer.
  const unkeyed = routeWorld().route({ required: false }, () => {
    throw new AnswerError(reply(status, 'no'), options)
  })
  expect(await send(unkeyed, { key: undefined })).toMatchObject({ status, text: 'no' })
})

it.each([200, 201, 204, 302])('stores a success %i whatever `stores` says of other statuses', async (status) => {
  const { route, effects } = routeWorld()
  const asked: number[] = []
  const stores = (given: number): boolean => {
    asked.push(given)
    return given === 402
  }
  const charges = route({ stores }, async ({ tx, request }) => {
    await effect(tx)
    return reply((request.json() as { status: number }).status)
  })
  const [key, poor] = [mintKey(), mintKey()]
  for (const replayed of [undefined, 'true']) {
    const answer = await send(charges, { key, body: JSON.stringify({ status }) })
    expect([answer.status, answer.headers['idempotent-replayed']]).toEqual([status, replayed])
    expect(effects()).toBe(1)
  }
  expect((await send(charges, { key: poor, body: '{"status":404}' })).status).toBe(404)
  expect((await send(charges, { key: poor, body: '{"status":402}' })).status).toBe(402)
  expect((await send(charges, { key: poor, body: '{"status":402}' })).headers['idempotent-replayed']).toBe('true')
  expect(asked.every((given) => given >= 400 && given < 500)).toBe(true)
})

it('takes a key with a method in lower case, as for one in capitals', async () => {
  const { route, effects } = routeWorld()
  const charges = route()
  const key = mintKey()
  expect((await send(charges, { key, method: 'patch' })).status).toBe(201)
  expect((await send(charges, { key, method: 'PATCH' })).headers['idempotent-replayed']).toBe('true')
  expect(await send(charges, { key: undefined, method: 'patch' })).toMatchObject({ problem: 'key-missing' })
  expect(effects()).toBe(1)
})

it('answers a caller whose name is no text that can be kept', async () => {
  const { route, effects } = routeWorld()
  const charges = route()
  for (const user of ['ada\ud800', 'a'.repeat(5_000)]) {
    expect(await send(charges, { user })).toMatchObject({ status: 401, problem: 'unauthenticated' })
  }
  expect(effects()).toBe(0)
})

it('hands what a handler threw of its own accord to the framework, with nothing stored', async () => {
  const { db, route, effects } = routeWorld()
  const own: unknown[] = [
    new Error('mine'),
    new RepriseError('UNKNOWN_OUTCOME', 'Of another call.'),
    new OperationFailedError(fail('declined')),
    new RepriseError('KEY_TOO_LONG', 'Of another key.'),
    Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }),
    'text',
  ]
  for (const [number, error] of own.entries()) {
    const charges = route({ name: `own${number}`, required: false }, async ({ tx }) => {
      await effect(tx)
      throw error
    })
    const key = mintKey()
    await expect(send(charges, { key })).rejects.toBe(error)
    await expect(send(charges, { key })).rejects.toBe(error)
    await expect(send(charges, { key: undefined })).rejects.toBe(error)
  }
  expect([effects(), await inspectionOf(db.records).list({ limit: 10 }, { deadline: { expiresAtMs: 1e9 } })]).toEqual([
    0,
    [],
  ])
})

it('hands on what principal, parse and trusts threw, whatever it looks like', async () => {
  const { route } = routeWorld()
  const error = new RepriseError('POOL_EXHAUSTED', 'Of another store.')
  const throwing = (): never => {
    throw error
  }
  await expect(send(route({ name: 'a', principal: throwing }))).rejects.toBe(error)
  await expect(send(route({ name: 'b', parse: throwing }))).rejects.toBe(error)
  const owned = { headers: { 'reprise-retry-owner': 'caller' } }
  await expect(send(route({ name: 'c', trusts: throwing }), owned)).rejects.toBe(error)
  await expect(send(route({ name: 'd', principal: (() => 7) as never }))).rejects.toMatchObject({
    code: 'SCOPE_INVALID',
  })
  expect(await send(route({ name: 'e', principal: () => ['shop', ''] }))).toMatchObject({ status: 401 })
  expect(await send(route({ name: 'f', principal: (() => []) as never }))).toMatchObject({ status: 401 })
})

it('checks the shape before the claim, so that its refusal is never stored, with the addresses of the route', async () => {
  const { route, effects } = routeWorld()
  let isWrong = true
  const parse = (request: { json(): unknown }) => {
    if (isWrong) throw invalid(400, 'There is no amount.')
    return request.json() as { amount: number }
  }
  const charges = route({ parse, problems: 'https://docs.example.com/problems#' })
  const key = mintKey()
  const { events, end } = listening()
  const refused = await send(charges, { key })
  end()
  expect(JSON.parse(refused.text)).toMatchObject({
    type: 'https://docs.example.com/problems#request-invalid',
    status: 400,
    detail: 'There is no amount.',
    retryable: false,
  })
  expect(events).toEqual([expect.objectContaining({ how: 'refused', status: 400, problem: 'request-invalid' })])
  isWrong = false
  expect((await send(charges, { key, body: '{"amount":3}' })).status).toBe(201)
  expect(effects()).toBe(1)
  // In a handler it is neither stored.
  const late = route({ name: 'late' }, ({ request }) => reply(200, request.json()))
  expect(await send(late, { key, body: '{' })).toMatchObject({ status: 400, problem: 'request-invalid' })
  expect(await send(late, { key, body: '{}' })).toMatchObject({ status: 200, text: '{}' })
})

it('makes answers of errors that a framework knows, and leaves others alone', async () => {
  const { route, effects } = routeWorld()
  class HttpError extends Error {
    readonly status = 402
  }
  const known = {
    answerOf: (error: unknown) => (error instanceof HttpError ? reply(error.status, 'known') : undefined),
  }
  let runs = 0
  const charges = route(known, async ({ tx }) => {
    runs += 1
    await effect(tx)
    throw new HttpError()
  })
  const key = mintKey()
  expect(await send(charges, { key })).toMatchObject({ status: 402, text: 'known' })
  expect((await send(charges, { key })).headers['idempotent-replayed']).toBe('true')
  expect([runs, effects()]).toEqual([1, 0])
  const broken = new RepriseError('KEY_EMPTY', 'A mistake in answerOf.')
  const others = route(
    {
      name: 'others',
      answerOf: () => {
        throw broken
      },
    },
    () => {
      throw new Error('any')
    },
  )
  await expect(send(others)).rejects.toBe(broken)
})

it('refuses what a handler returns that cannot be sent, before anything is committed', async () => {
  const { route, effects } = routeWorld()
  const wrong: unknown[] = [
    undefined,
    'text',
    { status: 200 },
    { status: 200, headers: [], body: null },
    { ...reply(200), status: 99 },
    { ...reply(200), headers: ['x'] },
    { ...reply(200), body: { a: 1 } },
    reply(200, 'x', { 'x-name': 'a\r\nset-cookie: b=c' }),
    reply(200, 'x', { 'bad name': 'a' }),
    reply(
      200,
      (async function* () {
        yield 7
      })(),
    ),
  ]
  for (const [number, answer] of wrong.entries()) {
    const charges = route({ name: `wrong${number}` }, async ({ tx }) => {
      await effect(tx)
      return answer as Response
    })
    await expect(send(charges)).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
  }
  expect(effects()).toBe(0)
})
