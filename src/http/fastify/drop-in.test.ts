import fastify, { type FastifyReply } from 'fastify'
import { expect, it } from 'vitest'
import { memory } from '../../stores/memory/index.js'
import { payloadOf } from './answer.js'
import { idempotency } from './drop-in.js'

const options = { name: 'charges', principal: () => 'ann' }
const sent = { method: 'POST', url: '/', headers: { 'idempotency-key': 'k' }, payload: { amount: 7 } } as const

it('keeps to the schemas of its route: a wrong body is not stored, and an answer is as its schema says', async () => {
  const app = fastify()
  const body = { type: 'object', required: ['amount'], properties: { amount: { type: 'number' } } }
  const response = { 201: { type: 'object', properties: { paid: { type: 'number' } } } }
  app.post(
    '/',
    idempotency(memory({ name: 'shop' }), options, { schema: { body, response } }),
    async (request, reply) => reply.code(201).send({ paid: (request.body as { amount: number }).amount, secret: 1 }),
  )
  expect((await app.inject({ ...sent, payload: {} })).statusCode).toBe(400)
  for (const replayed of [undefined, 'true']) {
    const { statusCode, body: text, headers } = await app.inject(sent)
    expect([statusCode, text, headers['idempotent-replayed']]).toEqual([201, '{"paid":7}', replayed])
  }
  expect((await app.inject({ ...sent, payload: { amount: 8 } })).statusCode).toBe(422)
})

it('takes what a handler returns, and refuses its transaction once it has answered', async () => {
  const app = fastify()
  const seen: unknown[] = []
  app.post('/', idempotency(memory({ name: 'shop' }), options), async (request) => {
    seen.push(typeof request.tx)
    return { paid: true }
  })
  app.addHook('onResponse', async (request) => {
    try {
      seen.push(request.tx)
    } catch (error) {
      seen.push((error as { code: string }).code)
    }
  })
  expect((await app.inject(sent)).json()).toEqual({ paid: true })
  await expect.poll(() => seen).toEqual(['object', 'TRANSACTION_OVER'])
})

it('sends bytes as they are', async () => {
  const app = fastify()
  app.get('/', async (_request, reply) =>
    reply.send(payloadOf(reply, { status: 203, headers: [['x-own', '1']], body: Uint8Array.of(0xff, 0xfe) })),
  )
  const { statusCode, rawPayload, headers } = await app.inject('/')
  expect([statusCode, [...rawPayload], headers['x-own']]).toEqual([203, [0xff, 0xfe], '1'])
})

it('runs hooks of the route before its own, and its error handler after the roll-back', async () => {
  const db = memory({ name: 'shop' })
  db.table('charge', { unique: [['id']] })
  const app = fastify()
  const own = {
    preHandler: async (
      request: { headers: Record<string, unknown> },
      reply: { code(status: number): { send(): void } },
    ) => {
      if (request.headers['x-user'] === undefined) return reply.code(401).send()
    },
    errorHandler: (error: Error, _request: unknown, reply: { code(status: number): { send(body: string): void } }) =>
      reply.code(422).send(`${error.message}, ${db.rows('charge').length} charges`),
  }
  app.post('/', idempotency(db, options, own), async (request) => {
    await request.tx.insertOnce('charge', { id: 'x' }, ['id'])
    throw new Error('odd')
  })
  expect((await app.inject(sent)).statusCode).toBe(401)
  const failed = await app.inject({ ...sent, headers: { ...sent.headers, 'x-user': 'ann' } })
  expect([failed.statusCode, failed.body]).toEqual([422, 'odd, 0 charges'])
})

it('is refused where its hooks were replaced', async () => {
  const app = fastify()
  const hooks = idempotency(memory({ name: 'shop' }), options)
  app.post(
    '/',
    {
      ...hooks,
      errorHandler: (error: Error) => {
        throw error
      },
    },
    async () => ({ a: 1 }),
  )
  app.post(
    '/sent',
    { ...hooks, onSend: async (_request: unknown, _reply: unknown, payload: unknown) => payload },
    async () => ({ a: 1 }),
  )
  app.post('/before', { ...hooks, preHandler: async () => undefined }, async () => ({ a: 1 }))
  for (const url of ['/', '/sent', '/before']) {
    const { statusCode, body } = await app.inject({ ...sent, url })
    expect([statusCode, body]).toEqual([500, expect.stringContaining('Its hooks were replaced')])
  }
})

it('takes the first of several answers, also of a handler that does not return its reply', async () => {
  const app = fastify()
  app.post('/', idempotency(memory({ name: 'shop' }), options), async (_request, reply) => {
    reply.code(201).send({ a: 1 })
  })
  app.post('/twice', idempotency(memory({ name: 'b' }), options), async (_request, reply) => {
    reply.code(201).send({ a: 1 })
    throw new Error('late')
  })
  app.post('/response', idempotency(memory({ name: 'c' }), options), async () => new Response('web', { status: 202 }))
  for (const [url, status, text] of [
    ['/', 201, '{"a":1}'],
    ['/twice', 201, '{"a":1}'],
    ['/response', 202, 'web'],
  ] as const) {
    for (const replayed of [undefined, 'true']) {
      const { statusCode, body, headers } = await app.inject({ ...sent, url })
      expect([url, statusCode, body, headers['idempotent-replayed']]).toEqual([url, status, text, replayed])
    }
  }
})

it.each(['string', 'buffer'] as const)('takes a body that was parsed as a %s by its bytes', async (parseAs) => {
  const app = fastify()
  app.addContentTypeParser('text/csv', { parseAs }, (_request, body, done) => done(null, body))
  const seen = async (request: { body: unknown }) => ({ read: String(request.body) })
  app.post('/', idempotency(memory({ name: 'shop' }), options), seen)
  for (const type of ['text/csv', 'text/plain']) {
    const headers = { 'idempotency-key': type, 'content-type': type }
    for (const replayed of [undefined, 'true']) {
      const answer = await app.inject({ method: 'POST', url: '/', headers, payload: 'a;b' })
      expect([answer.statusCode, answer.json(), answer.headers['idempotent-replayed']]).toEqual([
        200,
        { read: 'a;b' },
        replayed,
      ])
    }
    expect((await app.inject({ method: 'POST', url: '/', headers, payload: 'a;c' })).statusCode).toBe(422)
  }
})

it.each([
  ['reply.hijack', (reply: FastifyReply) => reply.hijack()],
  ['reply.raw', (reply: FastifyReply) => reply.raw.end('raw')],
])('refuses an answer past Fastify in words, and rolls back: %s', async (named, answer) => {
  const db = memory({ name: 'shop' })
  db.table('charge', { unique: [['id']] })
  const app = fastify()
  app.post('/', idempotency(db, options), async (request, reply) => {
    await request.tx.insertOnce('charge', { id: 'x' }, ['id'])
    answer(reply)
    return reply
  })
  const { statusCode, json } = await app.inject(sent)
  expect([statusCode, json().code, json().message]).toEqual([500, 'ANSWER_NOT_HELD', expect.stringContaining(named)])
  expect(db.rows('charge')).toEqual([])
})
