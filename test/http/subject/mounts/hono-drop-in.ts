// The subject on Hono, its handlers as they would be without Reprise: they read the request, and return a response.

import { createServer, type Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import { type Context, Hono } from 'hono'
import { idempotency } from '../../../../src/http/hono/index.js'
import { fetchResponse } from '../../../../src/http/wire/index.js'
import { existing } from '../existing-handler.js'
import { listening } from '../listening.js'
import { type Serve, userOf } from '../mounted.js'

const principal = (c: Context) => userOf(c.req.header('authorization'))

/** Serves it. */
export const serve: Serve = async ({ db, atomic, effects }) => {
  const app = new Hono()
  app.use(async (c, next) => (principal(c) === undefined ? c.body(null, 401) : next()))
  app.get('/effects', async (c) => c.json({ effects: await effects(principal(c) ?? '') }))
  for (const route of atomic) {
    const { method, path, options } = route
    app.on(method, path, idempotency(db, { ...options, principal }), async (c) => {
      const bytes = new Uint8Array(await c.req.arrayBuffer())
      const { pathname, search } = new URL(c.req.url)
      const fields = Object.fromEntries([...c.req.raw.headers].map(([name, value]) => [name, [value]]))
      const facts = {
        method: c.req.method,
        target: pathname + search,
        fields,
        params: c.req.param(),
        readBody: () => bytes,
      }
      return fetchResponse(await existing(route, { facts, bytes, user: principal(c) as string, tx: c.var.tx }), method)
    })
  }
  app.onError((_error, c) => c.json({ reason: 'error' }, 500))
  return listening(createAdaptorServer({ fetch: app.fetch, createServer }) as Server)
}
