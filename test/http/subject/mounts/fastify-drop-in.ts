// The subject on Fastify, its handlers as they would be without Reprise: they read the request, and give their answer
// to the reply. The parser keeps the bytes.

import { Readable } from 'node:stream'
import fastify, { type FastifyRequest } from 'fastify'
import { idempotency } from '../../../../src/http/fastify/index.js'
import { nodeFacts } from '../../../../src/http/wire/index.js'
import { existing } from '../existing-handler.js'
import { type Serve, userOf } from '../mounted.js'

const principal = (request: FastifyRequest) => userOf(request.headers.authorization)

/** Serves it. */
export const serve: Serve = async ({ db, atomic, effects }) => {
  const app = fastify({ forceCloseConnections: true })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (request, bytes, done) => {
    Object.assign(request, { rawBody: bytes })
    done(null, undefined)
  })
  app.addHook('onRequest', async (request, reply) => {
    if (principal(request) === undefined) return reply.code(401).send()
  })
  app.get('/effects', async (request) => ({ effects: await effects(principal(request) ?? '') }))
  for (const route of atomic) {
    const { method, path: url, options } = route
    app.route({
      ...idempotency(db, { ...options, principal }, { method, url }),
      handler: async (request, reply) => {
        const params = request.params as Record<string, string>
        const facts = nodeFacts(request.raw, { target: request.originalUrl, params })
        const { rawBody: bytes = Buffer.alloc(0) } = request as { readonly rawBody?: Buffer }
        const user = principal(request) as string
        const { status, headers, body } = await existing(route, { facts, bytes, user, tx: request.tx })
        reply.code(status)
        for (const [name, value] of headers) reply.header(name, value)
        if (body === null || typeof body === 'string') return reply.send(body === null ? undefined : Buffer.from(body))
        return reply.send(body instanceof Uint8Array ? body : Readable.from(body))
      },
    })
  }
  app.setErrorHandler((_error, _request, reply) => reply.code(500).send({ reason: 'error' }))
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  return { url, close: () => app.close() }
}
