// The subject on Hono, served by its server for Node.

import { createServer, type Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import { type Context, Hono } from 'hono'
import { idempotent, idempotentLeased } from '../../../../src/http/hono/index.js'
import { statusPath } from '../leased-routes.js'
import { listening } from '../listening.js'
import { type Serve, userOf } from '../mounted.js'

interface Environment {
  readonly Variables: { user: string }
}

/** Serves it. */
export const serve: Serve = async ({ db, atomic, leased, effects }) => {
  const app = new Hono<Environment>()
  app.use(async (c, next) => {
    const user = userOf(c.req.header('authorization'))
    if (user === undefined) return c.body(null, 401)
    c.set('user', user)
    return next()
  })
  const principal = (c: Context<Environment>) => c.var.user
  app.get('/effects', async (c) => c.json({ effects: await effects(c.var.user) }))
  for (const { method, path, options, handle } of atomic) {
    app.on(method, path, idempotent(db, { ...options, principal }, handle))
  }
  for (const { method, path, options, handle } of leased) {
    const handler = idempotentLeased(db, { ...options, principal }, handle)
    app.on(method, path, handler).get(statusPath(path), handler.status)
  }
  app.onError((_error, c) => c.json({ reason: 'error' }, 500))
  return listening(createAdaptorServer({ fetch: app.fetch, createServer }) as Server)
}
