// Repeatable routes for Koa 3: a middleware at the end of a route.

import type { Context, Middleware } from 'koa'
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
import { held, type KeptBytes, nodeFacts } from '../wire/index.js'
import { answerContext } from './answer.js'

export { AnswerError, HttpRequest, invalid, reply } from '../core/index.js'
export { idempotency } from './drop-in.js'

/**
 * A route in a domain: claim, effect and answer commit together, and the answer leaves after COMMIT. What `ctx.throw`
 * shows to clients is an answer; any other error goes up as usual. Refuses like {@link atomicRoute}.
 *
 * @example
 * ```ts
 * import Koa from 'koa'
 * import { idempotent, reply } from 'reprise/http/koa'
 * import { memory } from 'reprise/stores/memory'
 *
 * const db = memory({ name: 'shop' })
 * db.table('payment', { unique: [['id']] })
 * const pay = idempotent(db, { name: 'pay', principal: (ctx) => ctx.get('x-user') }, async ({ tx, request }) => {
 *   await tx.insertOnce('payment', request.json() as { id: string }, ['id'])
 *   return reply(201)
 * })
 * const app = new Koa().use(pay)
 * ```
 */
export function idempotent<Handle, Input = undefined, Who extends Principal = Principal>(
  db: RouteDomain<Handle>,
  options: AtomicRouteOptions<Context, Input, Who>,
  handler: AtomicHandler<Context, Handle, Input, Who>,
): Middleware {
  return middlewareOf(atomicRoute(db, withExposed(options), handler))
}

/**
 * A route whose effect lies outside the store, under a lease. Errors as in {@link idempotent}. Refuses like
 * {@link leasedRoute}.
 */
export function idempotentLeased<Input = undefined, Who extends Principal = Principal>(
  store: RecordStore,
  options: LeasedRouteOptions<Context, Input, Who>,
  handler: LeasedHandler<Context, Input, Who>,
): LeasedMount<Middleware> {
  return leasedMount(leasedRoute(store, withExposed(options), handler), middlewareOf)
}

const advice = 'Mount the route before the parser, or use one that keeps the text as ctx.request.rawBody.'

function middlewareOf(route: Route<Context>): Middleware {
  return async (ctx) => {
    const { rawBody } = ctx.request as { readonly rawBody?: KeptBytes }
    const { params } = ctx as { readonly params?: Readonly<Record<string, unknown>> }
    const facts = nodeFacts(ctx.req, { target: ctx.originalUrl, params, kept: rawBody, advice })
    const answer = await held(ctx.res, () => route.handle(facts, ctx as Context))
    answerContext(ctx as Context, answer)
  }
}

// The errors of ctx.throw and http-errors, answered as Koa would.
function withExposed<Options extends { readonly answerOf?: (error: unknown) => Answered | undefined }>(
  options: Options,
): Options & { readonly answerOf: (error: unknown) => Answered | undefined } {
  return { ...options, answerOf: (error) => options.answerOf?.(error) ?? exposedAnswer(error) }
}

function exposedAnswer(error: unknown): Answered | undefined {
  const { status, expose, headers, message } = Object(error) as Partial<Exposed>
  const isExposed = expose === true && typeof status === 'number' && status >= 400 && status < 500
  return isExposed ? reply(status, String(message), headers) : undefined
}

interface Exposed {
  readonly status: number
  readonly expose: boolean
  readonly message: string
  readonly headers: Record<string, string>
}
