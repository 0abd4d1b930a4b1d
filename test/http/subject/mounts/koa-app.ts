// What the subject has on Koa whichever form its routes have: authentication first, then a small table of routes, as
// Koa brings no router.

import { createServer } from 'node:http'
import Koa, { type Context, type Middleware } from 'koa'
import { listening } from '../listening.js'
import { type Served, type Subject, userOf } from '../mounted.js'

/** Who calls. */
export const principal = (ctx: Context): string | undefined => userOf(ctx.get('authorization'))

/** Serves an application with the routes that are mounted. */
export function serveKoa(
  { effects }: Subject,
  mount: (on: (method: string, path: string, middleware: Middleware) => void) => void,
): Promise<Served> {
  const app = new Koa({ proxy: false })
  app.silent = true
  app.use(async (ctx, next) => {
    const user = principal(ctx as Context)
    if (user === undefined) ctx.throw(401)
    if (ctx.method === 'GET' && ctx.path === '/effects') ctx.body = { effects: await effects(user ?? '') }
    else await next()
  })
  mount((method, path, middleware) => app.use(routed(method, path, middleware)))
  return listening(createServer(app.callback()))
}

function routed(method: string, path: string, middleware: Middleware): Middleware {
  const pattern = new RegExp(`^${path.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)')}$`)
  return (ctx, next) => {
    const found = ctx.method === method ? pattern.exec(ctx.path) : null
    if (found === null) return next()
    ctx['params'] = { ...found.groups }
    return middleware(ctx, next)
  }
}
