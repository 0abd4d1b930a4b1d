// Repeatable routes for Fastify 5: a plugin that leaves bodies unread in its scope, and handlers for the routes in it.

import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { RecordStore } from '../../idempotency/index.js'
import { RepriseError } from '../../kernel/index.js'
import {
  type AtomicHandler,
  type AtomicRouteOptions,
  atomicRoute,
  type LeasedHandler,
  type LeasedRouteOptions,
  leasedRoute,
  type Principal,
  type Route,
  type RouteDomain,
} from '../core/index.js'
import { nodeFacts, setFields } from '../wire/index.js'

export { AnswerError, HttpRequest, invalid, reply } from '../core/index.js'

/** A handler of Fastify. */
export type FastifyHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

/**
 * The plugin: `app.register(repriseIdempotency)`, in the scope that holds the routes. There, bodies of any type are
 * left for the routes to read, as the bytes that arrived; other scopes parse as before. Hooks run as always, so what
 * `onRequest` and `preHandler` refuse never reaches a route. A route of Reprise with a schema of its answers is refused
 * with OPERATION_INVALID: an answer leaves as the bytes that are stored, which no schema would filter.
 */
export async function repriseIdempotency(scope: FastifyInstance): Promise<void> {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
  scope.addHook('onRoute', ({ handler, schema }) => {
    if (handlers.has(handler)) demandNoAnswerSchema(schema)
  })
}
// Its parsers are those of the scope that registers it, not of one of its own.
Object.assign(repriseIdempotency, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'reprise-idempotency',
})

/**
 * A route in a domain: claim, effect and answer commit together, and the answer leaves after COMMIT. What the handler
 * throws goes to the error handler. Refuses like {@link atomicRoute}.
 *
 * @example
 * ```ts
 * import { fastify } from 'fastify'
 * import { idempotent, reply, repriseIdempotency } from 'reprise/http/fastify'
 * import { memory } from 'reprise/stores/memory'
 *
 * const db = memory({ name: 'shop' })
 * db.table('payment', { unique: [['id']] })
 * const pay = idempotent(db, { name: 'pay', principal: () => 'ada' }, async ({ tx, request }) => {
 *   await tx.insertOnce('payment', request.json() as { id: string }, ['id'])
 *   return reply(201)
 * })
 * const app = fastify()
 * await app.register(repriseIdempotency)
 * app.post('/payments', pay)
 * ```
 */
export function idempotent<Handle, Input = undefined, Who extends Principal = Principal>(
  db: RouteDomain<Handle>,
  options: AtomicRouteOptions<FastifyRequest, Input, Who>,
  handler: AtomicHandler<FastifyRequest, Handle, Input, Who>,
): FastifyHandler {
  return handlerOf(atomicRoute(db, options, handler))
}

/**
 * A route whose effect lies outside the store, under a lease. What the handler throws goes to the error handler.
 * Refuses like {@link leasedRoute}.
 */
export function idempotentLeased<Input = undefined, Who extends Principal = Principal>(
  store: RecordStore,
  options: LeasedRouteOptions<FastifyRequest, Input, Who>,
  handler: LeasedHandler<FastifyRequest, Input, Who>,
): FastifyHandler {
  return handlerOf(leasedRoute(store, options, handler))
}

const advice = 'Register repriseIdempotency in the scope of the route, before it.'

// For the plugin, which sees every route of its scope.
const handlers = new WeakSet<object>()

function demandNoAnswerSchema(schema: { readonly response?: unknown } | undefined): void {
  if (schema?.response === undefined) return
  const message =
    'A route of Reprise has no schema of its answers: they leave as they are stored, and no schema would filter them. Choose the fields in the handler.'
  throw new RepriseError('OPERATION_INVALID', message, { details: { option: 'schema.response' } })
}

function handlerOf(route: Route<FastifyRequest>): FastifyHandler {
  const handler: FastifyHandler = async (request, reply) => {
    const { originalUrl: target, raw } = request
    // Again, for a route that is older than the plugin.
    demandNoAnswerSchema(request.routeOptions.schema)
    const params = request.params as Readonly<Record<string, unknown>>
    const answer = await route.handle(nodeFacts(raw, { target, params, advice }), request)
    reply.code(answer.status)
    setFields(
      {
        getHeader: (name) => reply.getHeader(name),
        setHeader: (name, value) => {
          // Fastify adds cookies to those that are there; any other field it replaces.
          if (name === 'set-cookie') reply.removeHeader(name)
          reply.header(name, value)
        },
        removeHeader: (name) => reply.removeHeader(name),
      },
      answer,
    )
    const { body } = answer
    if (body === null || body === '') return reply.send()
    // Bytes, and not text, which a serializer of the application would be given.
    if (typeof body === 'string') return reply.send(Buffer.from(body))
    if (!(body instanceof Uint8Array)) return reply.send(Readable.from(body))
    return body.length === 0 ? reply.send() : reply.send(body)
  }
  handlers.add(handler)
  return handler
}
