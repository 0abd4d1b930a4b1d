// Repeatable routes for Hono: a handler that gets the context, on any runtime that Hono runs on.

import type { Context, Env, Handler } from 'hono'
import type { RecordStore } from '../../idempotency/index.js'
import {
  type Answered,
  type AtomicHandler,
  type AtomicRouteOptions,
  atomicRoute,
  type LeasedHandler,
  type LeasedMount,
  type LeasedRouteOptions,
  leasedMount,
  leasedRoute,
  type Principal,
  type Route,
  type RouteDomain,
  reply,
} from '../core/index.js'
import { answerContext, factsOf } from './context.js'

export { AnswerError, HttpRequest, invalid, reply } from '../core/index.js'
export { idempotency } from './drop-in.js'

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
): LeasedMount<Handler<Environment>> {
  return leasedMount(leasedRoute(store, withExceptions(options), handler), handlerOf)
}

function handlerOf<Environment extends Env>(route: Route<Context<Environment>>): Handler<Environment> {
  return async (c) => {
    const answer = await route.handle(factsOf(c), c)
    // What was set before by c.header() or on c.res is in a response that Hono makes.
    const { headers } = c.body(null)
    return answerContext(c, answer, headers)
  }
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
