import { createServer } from 'node:http'
import Koa from 'koa'
import { describe, expect, it } from 'vitest'
import { idempotent, reply } from '../../../src/http/koa/index.js'
import { isRepriseError } from '../../../src/kernel/index.js'
import { listening } from '../subject/listening.js'
import { openWorld } from './world.js'

const { db, post, route, rows, serve } = await openWorld()

describe('on Koa', () => {
  it('what ctx.throw shows to clients is an answer: rolled back, stored and replayed; the rest are errors', async () => {
    for (const [status, text, replayed] of [
      [402, 'no funds', 'true'],
      [503, 'Service Unavailable', null],
    ] as const) {
      const app = new Koa()
      app.silent = true
      app.use(
        idempotent(db, route(), async ({ tx, native: ctx }) => {
          await tx.insertOnce('charge', { id: '1' }, ['id'])
          return ctx.throw(status, 'no funds', { headers: { 'content-language': 'en' } })
        }),
      )
      const url = serve(await listening(createServer(app.callback())))
      const first = await post(url)
      expect([first.status, await first.text(), first.headers.get('content-language')]).toEqual([status, text, 'en'])
      const again = await post(url)
      expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([status, replayed])
      expect(await rows()).toBe(0)
    }
  })

  it('what the handler throws goes up through the middlewares', async () => {
    const seen: unknown[] = []
    const thrown = new Error('no ledger')
    const app = new Koa()
    app.use(async (ctx, next) => {
      try {
        await next()
      } catch (error) {
        seen.push(error)
        ctx.status = 503
      }
    })
    app.use(idempotent(db, route(), () => Promise.reject(thrown)))
    const url = serve(await listening(createServer(app.callback())))
    expect((await post(url)).status).toBe(503)
    expect(seen).toEqual([thrown])
  })

  it('a middleware after it finds status and body where Koa has them', async () => {
    const app = new Koa()
    app.use(async (ctx, next) => {
      await next()
      ctx.set('x-seen', `${ctx.status} ${ctx.length} ${ctx.type}`)
    })
    app.use(idempotent(db, route(), () => reply(201, { id: 7 })))
    const url = serve(await listening(createServer(app.callback())))
    for (const _ of ['first', 'again']) {
      expect((await post(url)).headers.get('x-seen')).toBe('201 8 application/json')
    }
  })

  it('a parser before it must keep the text; where it does not, the error says what to do', async () => {
    for (const [keeps, status] of [
      [true, 200],
      [false, 500],
    ] as const) {
      const seen: unknown[] = []
      const app = new Koa()
      app.on('error', (error) => seen.push(error))
      app.use(async (ctx, next) => {
        let text = ''
        for await (const part of ctx.req.setEncoding('utf8')) text += part
        Object.assign(ctx.request, { body: JSON.parse(text) }, keeps ? { rawBody: text } : {})
        await next()
      })
      app.use(idempotent(db, route(), ({ input }) => reply(200, input)))
      const url = serve(await listening(createServer(app.callback())))
      expect((await post(url)).status).toBe(status)
      expect(seen.map((error) => isRepriseError(error, 'BODY_CONSUMED'))).toEqual(keeps ? [] : [true])
    }
  })
})
