// The drop-in form on every framework: what rolls back and is not stored, and what is refused, on real servers.

import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { createAdaptorServer } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { type Context, Hono } from 'hono'
import Koa from 'koa'
import { afterEach, describe, expect, it } from 'vitest'
import { idempotency as forExpress } from '../../../src/http/express/index.js'
import { idempotency as forFastify } from '../../../src/http/fastify/index.js'
import { idempotency as forHono } from '../../../src/http/hono/index.js'
import { idempotency as forKoa } from '../../../src/http/koa/index.js'
import { type MemoryDomain, type MemoryTransaction, memory } from '../../../src/stores/memory/index.js'
import { manualClock } from '../../../src/testing/index.js'

/** What a handler does: throws, or says what it answers. */
type Work = (
  tx: MemoryTransaction,
) => Promise<{ readonly status: number; readonly type?: string; readonly text: string }>

const options = { name: 'charges', principal: () => 'ann' }
const closes: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closes.splice(0)) await close()
})

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closes.push(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const forms: Record<string, (db: MemoryDomain, work: Work) => Promise<string>> = {
  Express: (db, work) => {
    const app = express().use(express.json())
    app.post('/', forExpress(db, options), async (request, response) => {
      const { status, type = 'text/plain', text } = await work(request.tx)
      response.writeHead(status, { 'content-type': type })
      response.end(text)
    })
    app.use(((error, _request, response, _next) => {
      response.status(error.status ?? 500).send(error.message)
    }) satisfies express.ErrorRequestHandler)
    return listen(createServer(app))
  },
  Fastify: async (db, work) => {
    const app = fastify({ forceCloseConnections: true })
    app.post('/', forFastify(db, options), async (request, reply) => {
      const { status, type = 'text/plain', text } = await work(request.tx)
      return reply
        .code(status)
        .header('content-type', type)
        .send(Readable.from([text]))
    })
    app.setErrorHandler((error: Error & { status?: number }, _request, reply) => {
      return reply.code(error.status ?? 500).send(error.message)
    })
    closes.push(() => app.close())
    return app.listen({ port: 0, host: '127.0.0.1' })
  },
  Hono: (db, work) => {
    const app = new Hono()
    app.post('/', forHono(db, options), async (c) => {
      const { status, type = 'text/plain', text } = await work(c.var.tx)
      return new Response(text, { status, headers: { 'content-type': type } })
    })
    app.onError((error: Error & { status?: number }, c: Context) => c.text(error.message, (error.status ?? 500) as 500))
    return listen(createAdaptorServer({ fetch: app.fetch, createServer }) as Server)
  },
  Koa: (db, work) => {
    const app = new Koa()
    app.silent = true
    app.use(forKoa(db, options))
    app.use(async (ctx) => {
      const { status, type = 'text/plain', text } = await work(ctx.state['tx'])
      ctx.status = status
      ctx.type = type
      ctx.body = text
    })
    return listen(createServer(app.callback()))
  },
}

const teapot = Object.assign(new Error('odd'), { status: 418, expose: true })

describe.each(Object.entries(forms))('on %s', (_, mount) => {
  async function world(work: Work) {
    const clock = manualClock()
    const db = memory({ name: 'shop', clock })
    db.table('charge', { unique: [['id']] })
    let runs = 0
    const url = await mount(db, (tx) => {
      runs += 1
      return work(tx)
    })
    const post = () =>
      fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': 'k-1' },
        body: '{"amount":7}',
      })
    return { clock, post, runs: () => runs, charges: () => db.rows('charge').length }
  }

  const insert = (tx: MemoryTransaction) => tx.insertOnce('charge', { id: 'c-1' }, ['id'])

  it('a handler runs once, and its answer comes again', async () => {
    const { post, charges, runs } = await world(async (tx) => {
      await insert(tx)
      return { status: 201, text: 'charged' }
    })
    for (const replayed of [null, 'true']) {
      const answer = await post()
      expect([answer.status, await answer.text(), answer.headers.get('idempotent-replayed')]).toEqual([
        201,
        'charged',
        replayed,
      ])
    }
    expect([charges(), runs()]).toEqual([1, 1])
  })

  it.each([
    ['an error that the application answers with 4xx', () => Promise.reject(teapot), 418],
    ['an error that nobody knows', () => Promise.reject(new Error('any')), 500],
    ['a status of 5xx', async () => ({ status: 502, text: 'bad' }), 502],
  ] as const)('%s rolls back, and nothing of it is stored', async (_name, fail, status) => {
    let fails = true
    const { post, charges } = await world(async (tx) => {
      await insert(tx)
      return fails ? fail() : { status: 201, text: 'charged' }
    })
    expect([(await post()).status, charges()]).toEqual([status, 0])
    fails = false
    expect([(await post()).status, charges()]).toEqual([201, 1])
  })

  it('a handler that never answers is ended by the deadline, and what it says late goes nowhere', async () => {
    let late: (() => void) | undefined
    let ended = false
    const { clock, post, charges } = await world(async (tx) => {
      await insert(tx)
      await new Promise<void>((resolve) => {
        late = resolve
      })
      ended = true
      return { status: 201, text: 'late' }
    })
    const answering = post()
    await expect.poll(() => late).toBeDefined()
    clock.advance(60_000)
    const answer = await answering
    expect([answer.status, charges()]).toEqual([503, 0])
    expect(await answer.json()).toMatchObject({ retryable: true })
    late?.()
    await expect.poll(() => ended).toBe(true)
    expect(charges()).toBe(0)
  })

  it('a stream of events is refused in words, before anything leaves', async () => {
    const { post, charges } = await world(async (tx) => {
      await insert(tx)
      return { status: 200, type: 'text/event-stream', text: 'data: 1\n\n' }
    })
    const refused = await post()
    expect([refused.status, refused.headers.get('content-type')?.includes('event-stream'), charges()]).toEqual([
      500,
      false,
      0,
    ])
  })
})
