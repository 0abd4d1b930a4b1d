// The subject on Koa, its handlers as they would be without Reprise: they read the request, and set what Koa sends.

import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import Koa, { type Context, type Middleware } from 'koa'
import { idempotency } from '../../../../src/http/koa/index.js'
import { nodeFacts } from '../../../../src/http/wire/index.js'
import type { AtomicSubjectRoute } from '../atomic-routes.js'
import { existing } from '../existing-handler.js'
import { listening } from '../listening.js'
import { type Serve, userOf } from '../mounted.js'

const principal = (ctx: Context) => userOf(ctx.get('authorization'))

/** Serves it. */
export const serve: Serve = async ({ db, atomic, effects }) => {
  const app = new Koa({ proxy: false })
  app.silent = true
  app.use(async (ctx, next) => {
    const user = principal(ctx as Context)
    if (user === undefined) ctx.throw(401)
    if (ctx.method === 'GET' && ctx.path === '/effects') ctx.body = { effects: await effects(user ?? '') }
    else await next()
  })
  for (const route of atomic) {
    const guard = idempotency(db, { ...route.options, principal }) as Middleware
    app.use(on(route, (ctx) => guard(ctx, () => handled(route, ctx as Context))))
  }
  return listening(createServer(app.callback()))
}

async function handled(route: AtomicSubjectRoute, ctx: Context): Promise<void> {
  const parts: Buffer[] = []
  for await (const part of ctx.req) parts.push(part as Buffer)
  const { params } = ctx as unknown as { readonly params: Record<string, string> }
  const facts = nodeFacts(ctx.req, { target: ctx.originalUrl, params })
  const user = principal(ctx) as string
  const { status, headers, body } = await existing(route, {
    facts,
    bytes: Buffer.concat(parts),
    user,
    tx: ctx.state['tx'],
  })
  ctx.status = status
  ctx.body =
    body === null || typeof body === 'string' ? (body ?? '') : Readable.from(body instanceof Uint8Array ? [body] : body)
  ctx.remove('content-type')
  for (const [name, value] of headers) ctx.append(name, value)
}

function on({ method, path }: AtomicSubjectRoute, middleware: Middleware): Middleware {
  const pattern = new RegExp(`^${path.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)')}$`)
  return (ctx, next) => {
    const found = ctx.method === method ? pattern.exec(ctx.path) : null
    if (found === null) return next()
    ctx['params'] = { ...found.groups }
    return middleware(ctx, next)
  }
}
