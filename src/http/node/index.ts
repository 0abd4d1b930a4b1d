// Repeatable routes on bare `node:http`: a listener for one route.

import type { IncomingMessage, ServerResponse } from 'node:http'
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

/** Options of routes on `node:http` beside the usual ones. */
export interface NodeOptions {
  /**
   * Called with what the handler, `parse` or `principal` threw that is no answer, and answers by itself; the
   * transaction was rolled back. `node:http` has no flow of errors of its own. Default: 500 without a body, and the
   * error as a warning of the process, so that it is not lost.
   */
  readonly onError?: (error: unknown, request: IncomingMessage, response: ServerResponse) => void
}

/** A listener of `node:http`. It never rejects. */
export type NodeListener = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/**
 * A route in a domain: claim, effect and answer commit together, and the answer leaves after COMMIT. Refuses like
 * {@link atomicRoute}.
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http'
 * import { idempotent, reply } from 'reprise/http/node'
 * import { memory } from 'reprise/stores/memory'
 *
 * const db = memory({ name: 'shop' })
 * db.table('payment', { unique: [['id']] })
 * const pay = idempotent(db, { name: 'pay', principal: () => 'ada' }, async ({ tx, request }) => {
 *   await tx.insertOnce('payment', request.json() as { id: string }, ['id'])
 *   return reply(201)
 * })
 * const server = createServer(pay)
 * ```
 */
export function idempotent<Handle, Input = undefined, Who extends Principal = Principal>(
  db: RouteDomain<Handle>,
  { onError, ...options }: AtomicRouteOptions<IncomingMessage, Input, Who> & NodeOptions,
  handler: AtomicHandler<IncomingMessage, Handle, Input, Who>,
): NodeListener {
  return listenerOf(atomicRoute(db, options, handler), onError)
}

/** A route whose effect lies outside the store, under a lease. Refuses like {@link leasedRoute}. */
export function idempotentLeased<Input = undefined, Who extends Principal = Principal>(
  store: RecordStore,
  { onError, ...options }: LeasedRouteOptions<IncomingMessage, Input, Who> & NodeOptions,
  handler: LeasedHandler<IncomingMessage, Input, Who>,
): LeasedMount<NodeListener> {
  return leasedMount(leasedRoute(store, options, handler), (route) => listenerOf(route, onError))
}

function listenerOf(route: Route<IncomingMessage>, onError: NodeOptions['onError'] = bareError): NodeListener {
  return async (request, response) => {
    try {
      const facts = nodeFacts(request, { target: request.url ?? '/' })
      await sendToNode(response, await held(response, () => route.handle(facts, request)))
    } catch (error) {
      onError(error, request, response)
    }
  }
}

function bareError(error: unknown, _request: IncomingMessage, response: ServerResponse): void {
  process.emitWarning(error instanceof Error ? error : String(error))
  if (response.headersSent) response.destroy()
  else if (!response.destroyed) response.writeHead(500).end()
}
