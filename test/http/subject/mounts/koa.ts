// The subject on Koa: authentication first, then a small table of routes, as Koa brings no router.

import { createServer } from 'node:http'
import Koa, { type Context, type Middleware } from 'koa'
import { idempotent, idempotentLeased } from '../../../../src/http/koa/index.js'
import { listening } from '../listening.js'
import { type Serve, userOf } from '../mounted.js'

const principal = (ctx: Context) => userOf(ctx.get('authorization'))

/** Serves it. */
export const serve: Serve = async ({ db, atomic, leased, effects }) => {
  const app = new Koa({ proxy: false })
  app.silent = true
  app.use(async (ctx, next) => {
    const user = principal(ctx as Context)
    if (user === undefined) ctx.throw(401)
    if (ctx.method === 'GET' && ctx.path === '/effects') ctx.body = { effects: await effects(user ?? '') }
    else await next()
  })
  for (const { method, path, options, handle } of atomic) {
    app.use(on(method, path, idempotent(db, { ...options, principal }, handle)))
  }
  for (const { method, path, options, handle } of leased) {
    app.use(on(method, path, idempotentLeased(db, { ...options, principal }, handle)))
  }
  return listening(createServer(app.callback()))
}

function on(method: string, path: string, middleware: Middleware): Middleware {
  const pattern = new RegExp(`^${path.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)')}$`)
  return (ctx, next) => {
    const found = ctx.method === method ? pattern.exec(ctx.path) : null
    if (found === null) return next()
    ctx['params'] = { ...found.groups }
    return middleware(ctx, next)
  }
}
