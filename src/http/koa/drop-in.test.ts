import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import Koa, { type Context, type Middleware } from 'koa'
import { expect, it } from 'vitest'
import { memory } from '../../stores/memory/index.js'
import { answerContext } from './answer.js'
import { idempotency } from './drop-in.js'

async function twice(...handlers: Middleware[]): Promise<readonly (readonly [number, string, string | null])[]> {
  const app = new Koa()
  app.silent = true
  app.use(async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      ctx.status = 500
      ctx.body = (error as Error).message
    }
  })
  app.use(idempotency(memory({ name: 'shop' }), { name: 'charges', principal: () => 'ann' }) as Middleware)
  for (const handler of handlers) app.use(handler)
  const server = createServer(app.callback())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const answers: (readonly [number, string, string | null])[] = []
  for (const _ of [1, 2]) {
    const answer = await fetch(url, { method: 'POST', headers: { 'idempotency-key': 'k' }, body: 'x' })
    answers.push([answer.status, await answer.text(), answer.headers.get('content-type')])
  }
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  return answers
}

it.each([
  ['an object', { a: 1 }, '{"a":1}', 'application/json; charset=utf-8'],
  ['text', 'text', 'text', 'text/plain; charset=utf-8'],
  ['bytes', Buffer.from('bytes'), 'bytes', 'application/octet-stream'],
  ['a stream', Readable.from(['a', 'b']), 'ab', 'application/octet-stream'],
  ['a blob', new Blob(['blob']), 'blob', 'application/octet-stream'],
])('stores and repeats %s as Koa sends it', async (_, body, text, type) => {
  const answers = await twice((ctx) => {
    ctx.body = body
  })
  expect(answers).toEqual([
    [200, text, type],
    [200, text, type],
  ])
})

it.each([
  ['ctx.respond', (ctx: Context) => void Object.assign(ctx, { respond: false })],
  ['ctx.res', (ctx: Context) => void ctx.res.end('raw')],
])('refuses an answer past Koa in words: %s', async (named, answer) => {
  const answers = await twice((ctx) => answer(ctx as Context))
  const refused = [500, expect.stringContaining(named), expect.anything()]
  expect(answers).toEqual([refused, refused])
})

it('is refused in words where a request meets it twice', async () => {
  const other = idempotency(memory({ name: 'other' }), { name: 'charges', principal: () => 'ann' })
  const answers = await twice(other as Middleware, (ctx) => void Object.assign(ctx, { body: 'never' }))
  expect(answers.map(([, text]) => text)).toEqual(Array(2).fill(expect.stringContaining('more than once')))
})

it('leaves without a type what has none', async () => {
  const app = new Koa().use((ctx) => answerContext(ctx as never, { status: 201, headers: [], body: 'x' }))
  const server = createServer(app.callback())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  expect([answer.status, await answer.text(), answer.headers.get('content-type')]).toEqual([201, 'x', null])
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})
