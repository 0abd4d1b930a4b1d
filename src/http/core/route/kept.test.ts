import fc from 'fast-check'
import { expect, it } from 'vitest'
import { effect, factsOf, listening, read, routeWorld, send, settledInTime } from '../../../../test/http/route-world.js'
import { property } from '../../../../test/property.js'
import { inspectionOf } from '../../../atomicity/index.js'
import { encrypted, type ValueCodec } from '../../../idempotency/index.js'
import { mintKey } from '../../../identity/index.js'
import { deadlineAfter, eventLoopTurn } from '../../../kernel/index.js'
import { faultPoints } from '../../../testing/index.js'
import { AnswerError, reply } from '../answer/answer.js'
import { type AnswerJson, jsonAndBody } from '../answer/stored.js'

const fieldText = fc.stringMatching(/^[ -~]{0,20}$/).map((text) => text.trim())

property(
  'gives bytes and fields back as they were, for any status that is stored',
  [fc.uint8Array({ maxLength: 300 }), fc.constantFrom(200, 201, 303, 404, 422), fieldText, fc.boolean(), fc.boolean()],
  async (bytes, status, field, isThrown, isStreamed) => {
    const { route, effects } = routeWorld()
    const given = () => {
      const body = isStreamed ? streamOf(bytes) : bytes
      return reply(status, body, { 'content-type': 'image/png', etag: field, 'x-own': field, 'content-encoding': 'br' })
    }
    const charges = route({ replayHeaders: ['X-Own'] }, async ({ tx }) => {
      await effect(tx)
      if (isThrown) throw new AnswerError(given())
      return given()
    })
    const key = mintKey()
    const first = await send(charges, { key })
    const again = await send(charges, { key })
    expect(first.bytes).toEqual(Buffer.from(bytes))
    expect(again.bytes).toEqual(first.bytes)
    expect(again.status).toBe(first.status)
    expect(again.headers).toEqual({ ...first.headers, 'idempotent-replayed': 'true', 'cache-control': 'no-store' })
    expect(effects()).toBe(isThrown ? 0 : 1)
  },
  { cases: 500 },
)

async function* streamOf(bytes: Uint8Array): AsyncGenerator<Uint8Array | string> {
  for (let at = 0; at < bytes.length; at += 7) yield bytes.subarray(at, at + 7)
  yield ''
}

it('repeats no cookies, credentials, dates or fields of one connection', async () => {
  const { route } = routeWorld()
  const fields = {
    'set-cookie': ['a=1', 'b=2'],
    'www-authenticate': 'Basic',
    date: 'Tue, 01 Jan 2030 00:00:00 GMT',
    connection: 'close',
    'transfer-encoding': 'chunked',
    'content-length': '999',
    'cache-control': 'public',
    'x-unlisted': 'x',
    location: '/charges/1',
  }
  const charges = route({}, () => reply(201, 'x', fields))
  const key = mintKey()
  const first = await send(charges, { key })
  expect(Object.keys(first.headers).sort()).toEqual([
    'cache-control',
    'content-type',
    'date',
    'location',
    'set-cookie',
    'www-authenticate',
    'x-unlisted',
  ])
  expect((await send(charges, { key })).headers).toEqual({
    'content-type': 'text/plain; charset=utf-8',
    location: '/charges/1',
    'idempotent-replayed': 'true',
    'cache-control': 'no-store',
  })
})

it('gives a large answer to the first caller whole, and a problem to its repeats, without a second run', async () => {
  const { route, effects } = routeWorld()
  let pulled = 0
  async function* large(): AsyncGenerator<Uint8Array> {
    for (; pulled < 100; pulled++) yield new Uint8Array(100).fill(pulled)
  }
  const bodies: [string, () => unknown][] = [
    ['stream', () => large()],
    ['bytes', () => new Uint8Array(1_001)],
    ['text', () => 'x'.repeat(1_001)],
  ]
  for (const [name, body] of bodies) {
    const charges = route({ name, largestAnswer: 1_000 }, async ({ tx }) => {
      await effect(tx)
      return reply(201, body(), { location: '/charges/9', 'content-type': 'text/plain' })
    })
    const key = mintKey()
    const answer = await charges.handle(factsOf({ key, type: 'text/plain' }), { user: 'ada' })
    if (name === 'stream') expect(pulled).toBe(10)
    expect((await read(answer)).bytes.length).toBe(name === 'stream' ? 10_000 : 1_001)
    const again = await send(charges, { key, type: 'text/plain', body: '' })
    expect(again).toMatchObject({ status: 410, problem: 'answer-not-kept', headers: { location: '/charges/9' } })
  }
  expect(effects()).toBe(3)
  const exact = route({ name: 'exact', largestAnswer: 1_000 }, () => reply(200, new Uint8Array(1_000)))
  const key = mintKey()
  await send(exact, { key })
  expect((await send(exact, { key })).bytes.length).toBe(1_000)
})

it('stores nothing of a stream that fails before the limit, and remembers one that fails after it', async () => {
  const { route, effects } = routeWorld()
  const broken = new Error('broken')
  async function* breaking(after: number): AsyncGenerator<Uint8Array> {
    for (let part = 0; part < after; part++) yield new Uint8Array(100)
    throw broken
  }
  const early = route({ name: 'early', largestAnswer: 1_000 }, async ({ tx }) => {
    await effect(tx)
    return reply(200, breaking(3))
  })
  await expect(send(early)).rejects.toBe(broken)
  expect(effects()).toBe(0)
  const late = route({ name: 'late', largestAnswer: 1_000 }, async ({ tx }) => {
    await effect(tx)
    return reply(200, breaking(30))
  })
  const key = mintKey()
  await expect(send(late, { key })).rejects.toBe(broken)
  expect(await send(late, { key })).toMatchObject({ status: 410, problem: 'answer-not-kept' })
  expect(effects()).toBe(1)
})

it('stores answers by the codec of the route, thrown ones too', async () => {
  const { db, route } = routeWorld()
  const secret = 'the number of the card'
  const keys = { now: new Uint8Array(32).fill(7) }
  const redacting: ValueCodec<AnswerJson> = {
    name: 'redacting-1',
    encode: ({ status, headers }) => JSON.stringify({ status, headers, text: 'not kept' }),
    decode: (text) => JSON.parse(text) as AnswerJson,
  }
  for (const [name, codec] of [
    ['sealed', encrypted<AnswerJson>({ keys, current: 'now' })],
    ['redacted', redacting],
  ] as const) {
    for (const isThrown of [false, true]) {
      const charges = route({ name: `${name}${isThrown}`, codec }, () => {
        if (isThrown) throw new AnswerError(reply(402, secret))
        return reply(402, secret)
      })
      const key = mintKey()
      expect((await send(charges, { key })).text).toBe(secret)
      expect(await send(charges, { key })).toMatchObject({
        status: 402,
        text: name === 'sealed' ? secret : 'not kept',
        headers: { 'idempotent-replayed': 'true' },
      })
    }
  }
  const stored = await inspectionOf(db.records).list({ limit: 10 }, { deadline: deadlineAfter('1h') })
  expect(stored.length).toBe(4)
  expect(JSON.stringify(stored)).not.toContain(secret)
})

it('reads what an earlier codec wrote, and runs nothing again where a record cannot be read', async () => {
  const { db, route, effects } = routeWorld()
  const broken: ValueCodec<AnswerJson> = {
    ...jsonAndBody,
    name: 'broken-1',
    encode: () => {
      throw new Error('encode')
    },
  }
  const key = mintKey()
  const name = 'charges'
  await expect(send(route({ name: 'encoding', codec: broken }), { key })).rejects.toThrow('encode')
  const thrown = route({ name: 'encodingThrown', codec: broken }, () => {
    throw new AnswerError(reply(402))
  })
  await expect(send(thrown, { key })).rejects.toThrow('encode')
  expect(effects()).toBe(0)
  const first: ValueCodec<AnswerJson> = { ...jsonAndBody, name: 'first-1' }
  await send(route({ codec: first }), { key })
  const [record] = await inspectionOf(db.records).list({ limit: 10 }, { deadline: deadlineAfter('1h') })
  const later = routeWorld()
  if (record !== undefined) later.db.putRecord(record.id, record.record)
  const other: ValueCodec<AnswerJson> = { ...jsonAndBody, name: 'other-1' }
  const unreadable = later.route({ name, codec: other })
  expect(await send(unreadable, { key })).toMatchObject({ status: 500, problem: 'record-unusable' })
  const third = routeWorld()
  if (record !== undefined) third.db.putRecord(record.id, record.record)
  const reading = third.route({ name, codec: other, earlierCodecs: [first] })
  expect((await send(reading, { key })).headers['idempotent-replayed']).toBe('true')
  expect([later.effects(), third.effects()]).toEqual([0, 0])
})

it('replays what a version before has stored, also under a codec of one’s own', async () => {
  const { db, route } = routeWorld()
  const key = mintKey()
  const { text } = await send(route(), { key })
  const [record] = await inspectionOf(db.records).list({ limit: 10 }, { deadline: deadlineAfter('1h') })
  const value = JSON.stringify({ status: 201, headers: [['content-type', 'application/json']], text })
  for (const codec of [undefined, { ...jsonAndBody, name: 'own-1' }]) {
    const later = routeWorld()
    if (record !== undefined) later.db.putRecord(record.id, { ...record.record, codec: 'http-answer-1', value })
    expect(await send(later.route(codec === undefined ? {} : { codec }), { key })).toMatchObject({
      status: 201,
      text,
      headers: { 'idempotent-replayed': 'true' },
    })
    expect(later.effects()).toBe(0)
  }
})

it('remembers for the window, counted from completion, and refuses keys that say they are older', async () => {
  const { clock, route, effects } = routeWorld()
  const charges = route({ window: '1h', oldestKey: '1h' })
  const key = mintKey()
  await send(charges, { key })
  await clock.advance(3_600_000 - 1)
  expect((await send(charges, { key })).headers['idempotent-replayed']).toBe('true')
  await clock.advance(1)
  expect((await send(charges, { key })).headers['idempotent-replayed']).toBeUndefined()
  expect(effects()).toBe(2)
  const old = '01900000-0000-7000-8000-000000000000'
  expect(await send(charges, { key: old })).toMatchObject({ status: 412, problem: 'key-too-old' })
})

it('refuses with 503 where the store is closed or busy, within its wait, and runs nothing', async () => {
  const { clock, db, route, effects } = routeWorld()
  const charges = route()
  let release = (): void => {}
  const blocking = db.transact(
    () =>
      new Promise<void>((resolve) => {
        release = resolve
      }),
    { deadline: '1h', bodyLimit: '1h' },
  )
  await eventLoopTurn()
  const beganMs = clock.monotonicMs()
  const got = await settledInTime(clock, send(charges))
  const problem = { status: 503, problem: 'store-unavailable', headers: { 'retry-after': '1' } }
  expect(got).toMatchObject(problem)
  expect(clock.monotonicMs() - beganMs).toBeLessThanOrEqual(1_100)
  release()
  await blocking
  await db.close()
  const { events, end } = listening()
  expect(await send(charges)).toMatchObject(problem)
  end()
  expect(events).toEqual([
    expect.objectContaining({
      how: 'refused',
      problem: 'store-unavailable',
      error: expect.objectContaining({ code: 'STORE_CLOSED' }),
    }),
  ])
  expect(effects()).toBe(0)
})

const marked = fc.stringMatching(/^[a-z0-9]{12,30}$/).map((text) => `SECRET${text}`)

property(
  'puts nothing of key, body, principal or query into a problem or an event',
  [marked, marked, marked],
  async (key, body, user) => {
    const { db, route } = routeWorld()
    const charges = route({ liveKeys: 2, mostBodyBytes: 1_000, largestAnswer: 0, oldestKey: '1h' })
    const { events, end } = listening()
    const target = `/charges?${body}`
    const problems: string[] = []
    const sent = [
      { key, body: `{"${body}":1}` },
      { key, body: `{"${body}":2}` },
      { key, body: `{"${body}":1}` },
      { key: `${key},${key}` },
      { key: `"${key}` },
      { key: `${key}\u00e4` },
      { key: key.repeat(30) },
      { key: undefined },
      { key: `${key}b`, body },
      { key: `${key}c`, body: `{"${body}"`, user },
      { user: '' },
      { key: `${key}d` },
      { key: `${key}e` },
    ]
    for (const one of sent) {
      const got = await send(charges, { target, user, ...one })
      if (got.problem !== undefined) problems.push(got.text, JSON.stringify(got.headers))
    }
    await db.close()
    problems.push((await send(charges, { key: `${key}f`, target, user, body })).text)
    end()
    const told = events.map(({ error, ...rest }) => [rest, String(error), JSON.stringify(error), chain(error)])
    expect(problems.length).toBeGreaterThan(12)
    expect(problems.join('\n')).not.toContain('SECRET')
    expect(JSON.stringify(told)).not.toContain('SECRET')
  },
  { cases: 200 },
)

function chain(error: unknown): string[] {
  const messages: string[] = []
  for (let at = error; at instanceof Error; at = at.cause) messages.push(at.message, at.stack ?? '')
  return messages
}

it('answers with the outcome of whoever was faster, and lets go of its own', async () => {
  const other = routeWorld()
  const key = mintKey()
  const winner = await send(other.route(), { key })
  const [theirs] = await inspectionOf(other.db.records).list({ limit: 1 }, { deadline: deadlineAfter('1h') })
  const { db, route } = routeWorld()
  let cancelled = 0
  const stream = () =>
    new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(1_000)),
      cancel: () => {
        cancelled += 1
      },
    })
  const charges = route({ largestAnswer: 500 }, () => {
    throw new AnswerError(reply(402, stream()))
  })
  const faults = faultPoints()
  // Its writes are rolled back, and its failure is not stored yet.
  faults.at('operation.failing', () => {
    if (theirs !== undefined) db.putRecord(theirs.id, theirs.record)
  })
  const got = await send(charges, { key })
  faults.disarm()
  expect(got).toMatchObject({ status: 201, text: winner.text, headers: { 'idempotent-replayed': 'true' } })
  expect([cancelled, faults.count('operation.failing')]).toEqual([1, 1])
})
