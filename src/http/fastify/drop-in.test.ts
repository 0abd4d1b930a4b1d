import fastify from 'fastify'
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
    { schema: { body, response }, ...idempotency(memory({ name: 'shop' }), options) },
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
