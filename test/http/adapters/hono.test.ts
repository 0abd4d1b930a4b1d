import { type Context, Hono } from 'hono'
import { setCookie } from 'hono/cookie'
import { HTTPException } from 'hono/http-exception'
import { validator } from 'hono/validator'
import { describe, expect, it } from 'vitest'
import { idempotent, reply } from '../../../src/http/hono/index.js'
import { isRepriseError } from '../../../src/kernel/index.js'
import { openWorld } from './world.js'

const { db, route, rows } = await openWorld()

interface Environment {
  readonly Variables: { user: string }
}

const send = (app: { request: Hono['request'] }, body: string | Uint8Array<ArrayBuffer> = '{"amount":7}') =>
  app.request('/charges', {
    method: 'POST',
    body,
    headers: { 'idempotency-key': 'k-1', 'content-type': 'application/json' },
  })

// A domain that runs each body twice, as one does after trouble of the store.
const twice: typeof db = {
  ...db,
  operation: (name, options) => {
    const { run } = options
    return db.operation(name, {
      ...options,
      run: async (tx, input) => {
        await run(tx, input)
        return run(tx, input)
      },
    })
  },
}

describe('on Hono', () => {
  it('an HTTPException is an answer: rolled back, stored and replayed; from 500 on it is an error', async () => {
    for (const [status, replayed] of [
      [422, 'true'],
      [503, null],
    ] as const) {
      const app = new Hono()
      app.post(
        '/charges',
        idempotent(db, route(), async ({ tx }) => {
          await tx.insertOnce('charge', { id: '1' }, ['id'])
          throw new HTTPException(status, { message: 'no funds' })
        }),
      )
      app.onError((_error, c) => c.text('on error', 503))
      const first = await send(app)
      expect([first.status, await first.text()]).toEqual([status, status === 422 ? 'no funds' : 'on error'])
      const again = await send(app)
      expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([status, replayed])
      expect(await rows()).toBe(0)
    }
  })

  it('what c makes is an answer, with its variables and their types', async () => {
    const app = new Hono<Environment>()
    app.use(async (c, next) => {
      c.set('user', 'ann')
      c.header('x-request-id', 'r-1')
      await next()
      c.res.headers.set('x-after', 'yes')
    })
    app.post(
      '/charges',
      idempotent(db, { ...route(), principal: (c: Context<Environment>) => c.var.user }, ({ native: c, input }) =>
        c.json({ user: c.var.user, ...input }, 201),
      ),
    )
    for (const replayed of [null, 'true']) {
      const answer = await send(app)
      expect([answer.status, await answer.json()]).toEqual([201, { user: 'ann', amount: 7 }])
      expect(['x-request-id', 'x-after', 'idempotent-replayed'].map((name) => answer.headers.get(name))).toEqual([
        'r-1',
        'yes',
        replayed,
      ])
    }
  })

  it('a validator may have read the body before; bytes that it has lost are refused', async () => {
    const seen: unknown[] = []
    const app = new Hono()
    app.post(
      '/charges',
      validator('json', (value) => value as { amount: number }),
      idempotent(db, route(), ({ input }) => reply(201, input)),
    )
    app.onError((error, c) => {
      seen.push(error)
      return c.body(null, 500)
    })
    expect(await (await send(app)).json()).toEqual({ amount: 7 })
    expect((await send(app, Uint8Array.from(Buffer.from('{"amount":"\xff"}', 'latin1')))).status).toBe(500)
    expect(isRepriseError(seen[0], 'BODY_CONSUMED')).toBe(true)
  })

  it('a cookie that is set on c leaves once, beside those from before, and is not replayed', async () => {
    const app = new Hono()
    app.use(async (c, next) => {
      setCookie(c, 'before', '1')
      await next()
      setCookie(c, 'after', '1')
    })
    app.post(
      '/charges',
      idempotent(db, route(), ({ native: c }) => {
        setCookie(c, 'sid', '1')
        return c.json({ id: 7 }, 201)
      }),
    )
    const [first, again] = [await send(app), await send(app)]
    expect(first.headers.getSetCookie()).toEqual(['before=1; Path=/', 'sid=1; Path=/', 'after=1; Path=/'])
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(again.headers.getSetCookie()).toEqual(['before=1; Path=/', 'after=1; Path=/'])
  })

  it.each([
    ['json', '{"amount":7}', 'application/json', { amount: 7 }],
    ['text', '{"amount":7}', 'application/json', '{"amount":7}'],
    ['parseBody', 'amount=7', 'application/x-www-form-urlencoded', { amount: '7' }],
  ] as const)('c.req.%s() reads the body, in every run of the handler', async (how, body, type, expected) => {
    const app = new Hono()
    const runs: unknown[] = []
    const { parse: _, ...options } = route()
    app.post(
      '/charges',
      idempotent(twice, options, async ({ native: c }) => {
        const bytes = new Uint8Array(await c.req.arrayBuffer())
        const read = () => (c.req[how] as () => Promise<unknown>).call(c.req)
        runs.push(await read(), await read())
        bytes.fill(0)
        return c.json(runs.length, 201)
      }),
    )
    const headers = { 'idempotency-key': 'k-1', 'content-type': type }
    const answer = await app.request('/charges', { method: 'POST', body, headers })
    expect([answer.status, await answer.json()]).toEqual([201, 4])
    expect(runs).toEqual(Array(4).fill(expected))
  })

  it('c.req reads a body that is none as Hono does', async () => {
    const app = new Hono()
    const { parse: _, ...options } = route()
    app.post(
      '/charges',
      idempotent(db, options, async ({ native: c }) => c.json([await c.req.text(), (await c.req.blob()).size])),
    )
    const answer = await app.request('/charges', { method: 'POST', headers: { 'idempotency-key': 'k-1' } })
    expect(await answer.json()).toEqual(['', 0])
  })
})
