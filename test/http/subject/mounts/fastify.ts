// The subject on Fastify: authentication as a hook, the plugin, and a route for each handler.

import fastify, { type FastifyRequest } from 'fastify'
import { idempotent, idempotentLeased, repriseIdempotency } from '../../../../src/http/fastify/index.js'
import { statusPath } from '../leased-routes.js'
import { type Serve, userOf } from '../mounted.js'

const principal = (request: FastifyRequest) => userOf(request.headers.authorization)

/** Serves it. */
export const serve: Serve = async ({ db, atomic, leased, effects }) => {
  const app = fastify({ forceCloseConnections: true })
  app.addHook('onRequest', async (request, reply) => {
    if (principal(request) === undefined) return reply.code(401).send()
  })
  await app.register(repriseIdempotency)
  app.get('/effects', async (request) => ({ effects: await effects(principal(request) ?? '') }))
  for (const { method, path: url, options, handle } of atomic) {
    app.route({ method, url, handler: idempotent(db, { ...options, principal }, handle) })
  }
  for (const { method, path: url, options, handle } of leased) {
    const handler = idempotentLeased(db, { ...options, principal }, handle)
    app.route({ method, url, handler })
    app.get(statusPath(url), handler.status)
  }
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  return { url, close: () => app.close() }
}
