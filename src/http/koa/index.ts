// Repeatable routes for Koa 3: a middleware at the end of a route.

import { Readable } from 'node:stream'
import type { Context, Middleware } from 'koa'
import type { RecordStore } from '../../idempotency/index.js'
import {
  type Answered,
  type AtomicHandler,
  type AtomicRouteOptions,
  atomicRoute,
  type LeasedHandler,
  type LeasedRouteOptions,
  leasedRoute,
  type Route,
  type RouteDomain,
  reply,
} from '../core/index.js'
import { type KeptBytes, mergeInto, nodeFacts } from '../wire/index.js'

export { AnswerError, HttpRequest, invalid, reply } from '../core/index.js'

/** A route in a domain: claim, effect and answer commit together, and the answer leaves after COMMIT. What `ctx.throw` shows to clients is an answer; any other error goes up as usual. Refuses like {@link atomicRoute}. */
export function idempotent<Handle, Input = undefined>(
  db: RouteDomain<Handle>,
  options: AtomicRouteOptions<Context, Input>,
  handler: AtomicHandler<Context, Handle, Input>,
): Middleware {
  return middlewareOf(atomicRoute(db, { ...options, answerOf: withExposed(options.answerOf) }, handler))
}

/** A route whose effect lies outside the store, under a lease. Errors as in {@link idempotent}. Refuses like {@link leasedRoute}. */
export function idempotentLeased<Input = undefined>(
  store: RecordStore,
  options: LeasedRouteOptions<Context, Input>,
  handler: LeasedHandler<Context, Input>,
): Middleware {
  return middlewareOf(leasedRoute(store, { ...options, answerOf: withExposed(options.answerOf) }, handler))
}

const advice = 'Mount the route before the parser, or use one that keeps the text as ctx.request.rawBody.'

function middlewareOf(route: Route<Context>): Middleware {
  return async (ctx) => {
    const { rawBody } = ctx.request as { readonly rawBody?: KeptBytes }
    const { params } = ctx as { readonly params?: Readonly<Record<string, unknown>> }
    const facts = nodeFacts(ctx.req, { target: ctx.originalUrl, params, kept: rawBody, advice })
    const answer = await route.handle(facts, ctx as Context)
    const hadType = ctx.res.hasHeader('content-type')
    ctx.status = answer.status
    // Never null, of which Koa would make a 204.
    ctx.body = answer.body instanceof Uint8Array ? Buffer.from(answer.body) : Readable.from(answer.body)
    // Koa has guessed a type; what has none is to leave without.
    if (!hadType) ctx.remove('content-type')
    mergeInto(
      {
        get: (name) => ctx.res.getHeader(name) as string | string[] | undefined,
        set: (name, value) => ctx.set(name, value),
        remove: (name) => ctx.remove(name),
      },
      answer,
    )
  }
}

// The errors of ctx.throw and http-errors, answered as Koa would.
function withExposed(
  own: ((error: unknown) => Answered | undefined) | undefined,
): (error: unknown) => Answered | undefined {
  return (error) => {
    const answered = own?.(error)
    if (answered !== undefined) return answered
    const { status, expose, headers, message } = Object(error) as Partial<Exposed>
    const isExposed = expose === true && typeof status === 'number' && status >= 400 && status < 500
    return isExposed ? reply(status, String(message), headers) : undefined
  }
}

interface Exposed {
  readonly status: number
  readonly expose: boolean
  readonly message: string
  readonly headers: Record<string, string>
}
