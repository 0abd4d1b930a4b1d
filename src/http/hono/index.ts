// Repeatable routes for Hono: a handler that gets the context, on any runtime that Hono runs on.

import type { Context, Env, Handler } from 'hono'
import type { RecordStore } from '../../idempotency/index.js'
import { RepriseError } from '../../kernel/index.js'
import {
  type Answered,
  type AtomicHandler,
  type AtomicRouteOptions,
  atomicRoute,
  type LeasedHandler,
  type LeasedRouteOptions,
  leasedRoute,
  limited,
  type Principal,
  type RequestFacts,
  type Route,
  type RouteDomain,
  readFetchBody,
  reply,
} from '../core/index.js'
import { fetchResponse, fieldsOf } from '../wire/index.js'

export { AnswerError, HttpRequest, invalid, reply } from '../core/index.js'

/**
 * A route in a domain: claim, effect and answer commit together, and the answer leaves after COMMIT. An `HTTPException`
 * below 500 is an answer; any other error goes to `app.onError`. Refuses like {@link atomicRoute}.
 *
 * @example
 * ```ts
 * import { Hono } from 'hono'
 * import { idempotent, reply } from 'reprise/http/hono'
 * import { memory } from 'reprise/stores/memory'
 *
 * const db = memory({ name: 'shop' })
 * db.table('payment', { unique: [['id']] })
 * const pay = idempotent(db, { name: 'pay', principal: (c) => c.req.header('x-user') }, async ({ tx, request }) => {
 *   await tx.insertOnce('payment', request.json() as { id: string }, ['id'])
 *   return reply(201)
 * })
 * const app = new Hono().post('/payments', pay)
 * ```
 */
export function idempotent<Handle, Input = undefined, Environment extends Env = Env, Who extends Principal = Principal>(
  db: RouteDomain<Handle>,
  options: AtomicRouteOptions<Context<Environment>, Input, Who>,
  handler: AtomicHandler<Context<Environment>, Handle, Input, Who>,
): Handler<Environment> {
  return handlerOf(atomicRoute(db, withExceptions(options), handler))
}

/**
 * A route whose effect lies outside the store, under a lease. Errors as in {@link idempotent}. Refuses like
 * {@link leasedRoute}.
 */
export function idempotentLeased<Input = undefined, Environment extends Env = Env, Who extends Principal = Principal>(
  store: RecordStore,
  options: LeasedRouteOptions<Context<Environment>, Input, Who>,
  handler: LeasedHandler<Context<Environment>, Input, Who>,
): Handler<Environment> {
  return handlerOf(leasedRoute(store, withExceptions(options), handler))
}

function handlerOf<Environment extends Env>(route: Route<Context<Environment>>): Handler<Environment> {
  return async (c) => {
    const answer = await route.handle(factsOf(c), c)
    // What was set before by c.header() or on c.res is in a response that Hono makes.
    const { headers } = c.body(null)
    const response = await fetchResponse(answer, c.req.method, headers)
    // Hono puts the fields of an earlier c.res over those of a new one, so the one it has must go.
    c.res = undefined
    c.res = response
    return response
  }
}

function factsOf(c: Context): RequestFacts {
  const { raw } = c.req
  const { origin, pathname, search } = new URL(raw.url)
  return {
    method: raw.method,
    target: pathname + search,
    origin,
    fields: fieldsOf(flatFields(c)),
    params: c.req.param() as Record<string, string>,
    readBody: async (mostBytes) => (await cachedBody(c, mostBytes)) ?? keptBody(c, await readFetchBody(raw, mostBytes)),
  }
}

// On Node the fields are there one by one; elsewhere Headers has joined what was sent twice, and a key with a comma is
// refused all the same.
function flatFields(c: Context): readonly string[] {
  const { incoming } = Object(c.env) as { readonly incoming?: { readonly rawHeaders?: readonly string[] } }
  return Array.isArray(incoming?.rawHeaders) ? incoming.rawHeaders : [...c.req.raw.headers].flat()
}

// What a validator has read before is kept by Hono: as bytes, or as a text that stands for them if none was replaced in
// it.
async function cachedBody(c: Context, mostBytes: number): Promise<Uint8Array | undefined> {
  const { arrayBuffer, text } = c.req.bodyCache
  if (arrayBuffer !== undefined) return limited(new Uint8Array(await arrayBuffer), mostBytes)
  if (text === undefined) return undefined
  const known = await text
  if (!known.includes('\ufffd')) return limited(Buffer.from(known), mostBytes)
  throw new RepriseError('BODY_CONSUMED', 'The body was read as text before the route could see its bytes.')
}

// A body can be read once. What Hono finds here is where c.req.json() and its kind look first: a copy each time, so
// that no run sees what another has done to it.
function keptBody(c: Context, bytes: Uint8Array): Uint8Array {
  Object.defineProperty(c.req.bodyCache, 'arrayBuffer', {
    enumerable: true,
    get: () => Promise.resolve(Uint8Array.from(bytes).buffer),
  })
  return bytes
}

function withExceptions<Options extends { readonly answerOf?: (error: unknown) => Answered | undefined }>(
  options: Options,
): Options & { readonly answerOf: (error: unknown) => Answered | undefined } {
  return { ...options, answerOf: (error) => options.answerOf?.(error) ?? exceptionAnswer(error) }
}

function exceptionAnswer(error: unknown): Answered | undefined {
  const { status, getResponse } = Object(error) as { readonly status?: unknown; readonly getResponse?: unknown }
  if (typeof getResponse !== 'function' || typeof status !== 'number' || status >= 500) return undefined
  const response: unknown = getResponse.call(error)
  return response instanceof Response ? response : reply(status)
}
