// Repeatable routes for Fastify 5: a plugin that keeps the bytes of bodies in its scope, and handlers for the routes in
// it.

import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { RecordStore } from '../../idempotency/index.js'
import { isRepriseError } from '../../kernel/index.js'
import {
  type Answered,
  type AtomicHandler,
  type AtomicRouteOptions,
  answerOf,
  atomicRoute,
  type LeasedHandler,
  type LeasedMount,
  type LeasedRouteOptions,
  leasedMount,
  leasedRoute,
  type Principal,
  type Route,
  type RouteDomain,
  readNodeBody,
  reply,
} from '../core/index.js'
import { nodeFacts } from '../wire/index.js'
import { payloadOf } from './answer.js'

export { AnswerError, HttpRequest, invalid, reply } from '../core/index.js'
export { type DropInRoute, idempotency, type Register, type RequestTransaction } from './drop-in.js'

/** A handler of Fastify. */
export type FastifyHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

/**
 * The plugin: `app.register(repriseIdempotency)`, in the scope that holds the routes. There, bodies of any type are
 * left for the routes to read, as the bytes that arrived; other scopes parse as before. Hooks run as always, so what
 * `onRequest` and `preHandler` refuse never reaches a route. Schemas are kept to: where a route has `schema.body`, JSON
 * is parsed too, and checked by Fastify before anything is claimed; `schema.response` chooses what of an answer is
 * stored and sent. `app.close()` waits for the work that the leased routes of the scope have in hand, for 30 s at
 * most.
 */
export async function repriseIdempotency(scope: FastifyInstance): Promise<void> {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('*', async (request: FastifyRequest) => {
    return request.routeOptions.schema?.body === undefined ? undefined : parsedBody(request)
  })
  const mounted: LeasedMount<FastifyHandler>[] = []
  scope.addHook('onRoute', ({ handler }) => {
    if ('drain' in handler) mounted.push(handler as unknown as LeasedMount<FastifyHandler>)
  })
  // By then all requests are answered.
  scope.addHook('onClose', async () => {
    await Promise.all(mounted.map((handler) => handler.drain()))
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
  return handlerOf(atomicRoute(db, options, async (call) => bySchema(await handler(call), call.native)))
}

/**
 * A route whose effect lies outside the store, under a lease. What the handler throws goes to the error handler.
 * Refuses like {@link leasedRoute}.
 */
export function idempotentLeased<Input = undefined, Who extends Principal = Principal>(
  store: RecordStore,
  options: LeasedRouteOptions<FastifyRequest, Input, Who>,
  handler: LeasedHandler<FastifyRequest, Input, Who>,
): LeasedMount<FastifyHandler> {
  const route = leasedRoute<FastifyRequest, Input, Who>(store, options, async (call) =>
    bySchema(await handler(call), call.native),
  )
  return leasedMount(route, handlerOf)
}

const advice = 'Register repriseIdempotency in the scope of the route, before it.'

// The body for Fastify's own check by a schema, with its bytes kept for the route. Malformed JSON and too large a body
// are refused in Fastify's way, since it is Fastify that asked.
async function parsedBody(request: FastifyRequest): Promise<unknown> {
  let bytes: Uint8Array
  try {
    bytes = await readNodeBody(request.raw, request.routeOptions.bodyLimit)
  } catch (error) {
    throw refused(isRepriseError(error, 'BODY_TOO_LARGE') ? 413 : 400, error)
  }
  Object.assign(request.raw, { rawBody: bytes })
  if (bytes.length === 0 || !/[/+]json\b/i.test(request.headers['content-type'] ?? '')) return undefined
  try {
    return JSON.parse(Buffer.from(bytes).toString())
  } catch (error) {
    throw refused(400, error)
  }
}

function refused(statusCode: number, cause: unknown): Error {
  return Object.assign(new Error((cause as Error).message, { cause }), { statusCode })
}

// The answer as the route's schema for its status serialises it: what the schema does not name is neither stored nor
// sent.
async function bySchema(answered: Answered, request: FastifyRequest): Promise<Answered> {
  if (request.routeOptions.schema?.response === undefined) return answered
  const { status, headers, body } = answerOf(answered)
  const type = headers.find(([name]) => name === 'content-type')?.[1] ?? ''
  if (body === null || !/[/+]json\b/i.test(type)) return answered
  const serialize = serializerOf(replies.get(request) as FastifyReply, String(status), type)
  if (serialize === undefined) return answered
  const json = typeof body === 'string' ? body : await text(Readable.from(body instanceof Uint8Array ? [body] : body))
  return { ...reply(status, serialize(JSON.parse(json))), headers }
}

// As Fastify looks for it: by the status, by its class, by default; of several media types, by the one of the answer.
function serializerOf(reply: FastifyReply, status: string, type: string): ((value: unknown) => string) | undefined {
  for (const named of [status, `${status[0]}xx`, 'default']) {
    const found: unknown = reply.getSerializationFunction(named)
    if (typeof found === 'function') return found as (value: unknown) => string
    if (found === undefined) continue
    const media = (type.split(';')[0] as string).trim().toLowerCase()
    const ofMedia = reply.getSerializationFunction(named, media) ?? reply.getSerializationFunction(named, '*/*')
    return ofMedia as ((value: unknown) => string) | undefined
  }
  return undefined
}

// The reply of a request, which knows the schemas of its answers.
const replies = new WeakMap<FastifyRequest, FastifyReply>()

function handlerOf(route: Route<FastifyRequest>): FastifyHandler {
  return async (request, reply) => {
    const { originalUrl: target, raw } = request
    if (request.routeOptions.schema?.response !== undefined) replies.set(request, reply)
    const params = request.params as Readonly<Record<string, unknown>>
    const answer = await route.handle(nodeFacts(raw, { target, params, advice }), request)
    return reply.send(payloadOf(reply, answer))
  }
}
