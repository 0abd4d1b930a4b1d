import { Hono } from 'hono'
import { expect, expectTypeOf, it } from 'vitest'
import { type MemoryTransaction, memory } from '../../stores/memory/index.js'
import { factsOf } from './context.js'
import { idempotency } from './drop-in.js'

const options = { name: 'charges', principal: () => 'ann' }
const request = (path = '/') =>
  new Request(`https://shop.example${path}`, { method: 'POST', headers: { 'idempotency-key': 'k' }, body: '{"a":1}' })

it('keeps what middleware around it has set, in first and repeated answers, and leaves the body to the handler', async () => {
  const app = new Hono()
  app.use(async (c, next) => {
    c.header('access-control-allow-origin', '*')
    await next()
  })
  app.post('/', idempotency(memory({ name: 'shop' }), options), async (c) => {
    expectTypeOf(c.var.tx).toEqualTypeOf<MemoryTransaction>()
    return c.json(await c.req.json(), 201, { 'x-own': '1' })
  })
  for (const replayed of [null, 'true']) {
    const answer = await app.request(request())
    expect([answer.status, await answer.json(), answer.headers.get('access-control-allow-origin')]).toEqual([
      201,
      { a: 1 },
      '*',
    ])
    expect(answer.headers.get('idempotent-replayed')).toBe(replayed)
  }
})

it('lets onError answer after the roll-back, and throws where the layer itself fails', async () => {
  const db = memory({ name: 'shop' })
  db.table('charge', { unique: [['id']] })
  const app = new Hono()
  app.post('/', idempotency(db, options), async (c) => {
    await c.var.tx.insertOnce('charge', { id: 'x' }, ['id'])
    throw new Error('odd')
  })
  app.onError((error, c) => c.text(`${error.message}, ${db.rows('charge').length} charges`, 409))
  const answer = await app.request(request())
  expect([answer.status, await answer.text()]).toEqual([409, 'odd, 0 charges'])
})

it('tells a request as facts', async () => {
  const seen: unknown[] = []
  const app = new Hono().post('/a/:id', async (c) => {
    const { method, target, params, fields, readBody } = factsOf(c)
    seen.push(method, target, params, fields['idempotency-key'], Buffer.from(await readBody(100)).toString())
    return c.body(null)
  })
  await app.request(request('/a/7?b=1'))
  expect(seen).toEqual(['POST', '/a/7?b=1', { id: '7' }, ['k'], '{"a":1}'])
})

it('answers as Hono does where a handler returns nothing, without an effect, and stores nothing', async () => {
  const db = memory({ name: 'shop' })
  db.table('charge', { unique: [['id']] })
  const app = new Hono()
  app.notFound((c) => c.text('nowhere', 404))
  app.post('/', idempotency(db, options), async (c) => {
    await c.var.tx.insertOnce('charge', { id: 'x' }, ['id'])
    return undefined as unknown as Response
  })
  for (const _ of [1, 2]) {
    const answer = await app.request(request())
    expect([answer.status, await answer.text(), answer.headers.get('idempotent-replayed')]).toEqual([
      404,
      'nowhere',
      null,
    ])
  }
  expect(db.rows('charge')).toEqual([])
})

it('is refused in words where a request meets it twice', async () => {
  const app = new Hono()
  app.use(idempotency(memory({ name: 'shop' }), options))
  app.post('/', idempotency(memory({ name: 'other' }), options), (c) => c.text('never'))
  app.onError((error, c) => c.text(error.message, 500))
  expect(await (await app.request(request())).text()).toContain('more than once')
})
