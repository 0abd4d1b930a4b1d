// The drop-in form for Koa: a middleware in front of those that exist.

import type { Context, Middleware, Next } from 'koa'
import {
  type Answer,
  type DropInOptions,
  dropInRoute,
  notHeld,
  type Principal,
  type RouteDomain,
  reply,
} from '../core/index.js'
import { fieldsBefore, held, type KeptBytes, mountedTwice, parsedFacts } from '../wire/index.js'
import { answerContext } from './answer.js'

const advice = 'Use a parser that keeps the text as ctx.request.rawBody.'

const met = new WeakSet<Context>()

/** One request on its way through a route whose handler exists. */
interface Flight {
  readonly next: Next
  readonly fields: ReturnType<typeof fieldsBefore>
}

/**
 * A middleware that makes those behind it repeatable, as they are: `ctx.state.tx` is the open transaction, and what
 * they answer leaves after COMMIT. An error, a status of 5xx and a deadline roll back, and nothing is stored. They run
 * once; what is given up for that, beside `idempotent`: a transaction that could not be serialized is not run again but
 * answered with a 503 that can be repeated.
 *
 * @example
 * ```ts
 * import Koa from 'koa'
 * import { idempotency } from 'reprise/http/koa'
 * import { memory } from 'reprise/stores/memory'
 *
 * const db = memory({ name: 'shop' })
 * db.table('payment', { unique: [['id']] })
 * const app = new Koa()
 * app.use(idempotency(db, { name: 'pay', principal: (ctx) => ctx.get('x-user') }))
 * app.use(async (ctx) => {
 *   await ctx.state['tx'].insertOnce('payment', { id: 'p-1' }, ['id'])
 *   ctx.status = 201
 *   ctx.body = { paid: true }
 * })
 * ```
 */
export function idempotency<Handle, Who extends Principal = Principal>(
  db: RouteDomain<Handle>,
  options: DropInOptions<Context, Who>,
): Middleware<{ tx: Handle }> {
  const flights = new WeakMap<Context, Flight>()
  const route = dropInRoute<Context, Handle, Who>(db, options, ({ tx, native }) => {
    native.state['tx'] = tx
    return handled(native, flights.get(native) as Flight)
  })
  return async (given, next) => {
    const ctx = given as unknown as Context
    if (met.has(ctx)) throw mountedTwice()
    met.add(ctx)
    const fields = fieldsBefore(ctx.res)
    flights.set(ctx, { next, fields })
    const { rawBody, body: parsed } = ctx.request as { readonly rawBody?: KeptBytes; readonly body?: unknown }
    const { params } = ctx as { readonly params?: Readonly<Record<string, unknown>> }
    const facts = parsedFacts(ctx.req, { target: ctx.originalUrl, params, kept: rawBody, parsed, advice })
    const answer = await held(
      ctx.res,
      () => route.handle(facts, ctx),
      () => notHeld('What a handler writes to ctx.res'),
    )
    fields.restore()
    answerContext(ctx, answer)
  }
}

async function handled(ctx: Context, { next, fields }: Flight): Promise<Answer> {
  await next()
  if (ctx.respond === false) {
    // So that the refusal is answered.
    ctx.respond = true
    throw notHeld('What a handler sends by itself (ctx.respond = false)')
  }
  const { body, status } = ctx
  const made = reply(status, asAnswered(body))
  // Koa has said of which type it is, unless there is nothing.
  return { ...made, headers: fields.changed() }
}

// As Koa sends it: an object that is no stream is JSON.
function asAnswered(body: unknown): unknown {
  if (body instanceof Blob) return body.stream()
  return body instanceof Response ? body.body : body
}
