// Repeatable routes for Express 5: a handler that is mounted like any other, after authentication.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Request, RequestHandler } from 'express'
import type { RecordStore } from '../../idempotency/index.js'
import {
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
} from '../core/index.js'
import { held, nodeFacts, sendToNode } from '../wire/index.js'

export { AnswerError, HttpRequest, invalid, reply } from '../core/index.js'
export { idempotency, type Register, type RequestTransaction } from './drop-in.js'

/**
 * A route in a domain: claim, effect and answer commit together, and the answer leaves after COMMIT. What the handler
 * throws goes to `next`. Refuses like {@link atomicRoute}.
 *
 * @example
 * ```ts
 * import express from 'express'
 * import { idempotent, reply } from 'reprise/http/express'
 * import { memory } from 'reprise/stores/memory'
 *
 * const db = memory({ name: 'shop' })
 * db.table('payment', { unique: [['id']] })
 * const pay = idempotent(db, { name: 'pay', principal: () => 'ada' }, async ({ tx, request }) => {
 *   await tx.insertOnce('payment', request.json() as { id: string }, ['id'])
 *   return reply(201)
 * })
 * const app = express().post('/payments', pay)
 * ```
 */
export function idempotent<Handle, Input = undefined, Who extends Principal = Principal>(
  db: RouteDomain<Handle>,
  options: AtomicRouteOptions<Request, Input, Who>,
  handler: AtomicHandler<Request, Handle, Input, Who>,
): RequestHandler {
  return handlerOf(atomicRoute(db, options, handler))
}

/**
 * A route whose effect lies outside the store, under a lease. What the handler throws goes to `next`. Refuses like
 * {@link leasedRoute}.
 *
 * @example
 * ```ts
 * import express from 'express'
 * import { idempotentLeased, reply } from 'reprise/http/express'
 * import { rerunKeyed } from 'reprise/idempotency'
 * import { memory } from 'reprise/stores/memory'
 *
 * const options = { name: 'charge', principal: () => 'shop', recover: rerunKeyed('24h') }
 * const charge = idempotentLeased(memory({ name: 'shop' }), options, async ({ lease }) => {
 *   await lease.effect('charge', ({ key }) =>
 *     fetch('https://psp.example/charges', { method: 'POST', headers: { 'idempotency-key': key } }),
 *   )
 *   return reply(201)
 * })
 * const app = express().post('/charges', charge)
 * ```
 */
export function idempotentLeased<Input = undefined, Who extends Principal = Principal>(
  store: RecordStore,
  options: LeasedRouteOptions<Request, Input, Who>,
  handler: LeasedHandler<Request, Input, Who>,
): LeasedMount<RequestHandler> {
  return leasedMount(leasedRoute(store, options, handler), handlerOf)
}

/** Keeps the bytes of a body for the routes that follow: `express.json({ verify: keepRawBody })`. */
export function keepRawBody(request: IncomingMessage, _response: ServerResponse, bytes: Buffer): void {
  Object.assign(request, { rawBody: bytes })
}

const advice =
  'Mount the route before the parser, or let the parser keep the bytes: express.json({ verify: keepRawBody }).'

function handlerOf(route: Route<Request>): RequestHandler {
  return async (request, response, next) => {
    try {
      const facts = nodeFacts(request, { target: request.originalUrl, params: request.params, advice })
      await sendToNode(response, await held(response, () => route.handle(facts, request)))
    } catch (error) {
      // Two words are commands to Express, by which it goes on to the next route.
      const isCommand = error === 'route' || error === 'router'
      next(isCommand ? new Error('A function of the route threw a word and no error.', { cause: error }) : error)
    }
  }
}
