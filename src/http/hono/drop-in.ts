// The drop-in form for Hono: a middleware in front of a handler that exists.

import type { Context, MiddlewareHandler, Next } from 'hono'
import { type DropInOptions, dropInRoute, type Principal, type RouteDomain } from '../core/index.js'
import { mountedTwice } from '../wire/index.js'
import { answerContext, factsOf } from './context.js'

/** The handler returned nothing, and nobody else has answered. */
class NotAnswered extends Error {}

const met = new WeakSet<Context>()

/**
 * A middleware that makes the handler behind it repeatable, as it is: `c.var.tx` is the open transaction, and what the
 * handler answers leaves after COMMIT. An error, a status of 5xx and a deadline roll back, and nothing is stored. The
 * handler runs once; what is given up for that, beside `idempotent`: a transaction that could not be serialized is not
 * run again but answered with a 503 that can be repeated.
 *
 * @example
 * ```ts
 * import { Hono } from 'hono'
 * import { idempotency } from 'reprise/http/hono'
 * import { memory } from 'reprise/stores/memory'
 *
 * const db = memory({ name: 'shop' })
 * db.table('payment', { unique: [['id']] })
 * const app = new Hono()
 * app.post('/payments', idempotency(db, { name: 'pay', principal: (c) => c.req.header('x-user') }), async (c) => {
 *   await c.var.tx.insertOnce('payment', await c.req.json<{ id: string }>(), ['id'])
 *   return c.json({ paid: true }, 201)
 * })
 * ```
 */
export function idempotency<Handle, Who extends Principal = Principal>(
  db: RouteDomain<Handle>,
  options: DropInOptions<Context, Who>,
): MiddlewareHandler<{ Variables: { tx: Handle } }> {
  const flights = new WeakMap<Context, Next>()
  const route = dropInRoute<Context, Handle, Who>(db, options, ({ tx, native }) => {
    native.set('tx', tx)
    return handled(native, flights.get(native) as Next)
  })
  return async (given, next) => {
    const c = given as unknown as Context
    if (met.has(c)) throw mountedTwice()
    met.add(c)
    flights.set(c, next)
    // What was set so far by c.header() or on c.res, and not what the handler sets.
    const { headers } = c.body(null)
    try {
      await answerContext(c, await route.handle(factsOf(c), c), headers)
    } catch (error) {
      // Hono answers with 404 where a handler returns nothing.
      if (error instanceof NotAnswered) c.res = await c.notFound()
      // What app.onError has answered, after the roll-back, is the answer.
      else if (c.error === undefined || c.error !== error) throw error
    }
  }
}

async function handled(c: Context, next: Next): Promise<Response> {
  await next()
  if (c.error !== undefined) throw c.error
  // To ask for c.res would make one, with the status 200.
  if (!c.finalized) throw new NotAnswered('The handler returned no response.')
  return c.res
}
