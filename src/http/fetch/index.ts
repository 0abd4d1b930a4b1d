// Repeatable routes for servers of the fetch standard: a `Request` in, a `Response` out. Bun, Deno, route handlers of
// Next, and whatever else speaks it.

import type { RecordStore } from '../../idempotency/index.js'
import {
  type Answered,
  type AtomicHandlerCall,
  type AtomicRouteOptions,
  atomicRoute,
  type LeasedHandlerCall,
  type LeasedMount,
  type LeasedRouteOptions,
  leasedMount,
  leasedRoute,
  type Principal,
  type Route,
  type RouteDomain,
  readFetchBody,
} from '../core/index.js'
import { fetchResponse, fieldsOf } from '../wire/index.js'

export { AnswerError, HttpRequest, invalid, reply } from '../core/index.js'

/** Options of routes of the fetch standard beside the usual ones. `Context`: what the server passes with a request. */
export interface FetchOptions<Context extends readonly unknown[]> {
  /** What the router found in the path, from what the server passes beside the request. Default: nothing. */
  readonly params?: (
    ...context: Context
  ) => Readonly<Record<string, string>> | PromiseLike<Readonly<Record<string, string>>>
}

/** A call whose request is a real `Request`, fresh for this run. */
export type WithRequest<Call> = Omit<Call, 'request'> & {
  /** The request, fresh for this run; its body can be read once. */
  readonly request: Request
}

/** A handler of the fetch standard. */
export type FetchHandler<Context extends readonly unknown[]> = (
  request: Request,
  ...context: Context
) => Promise<Response>

/**
 * A route in a domain: claim, effect and answer commit together, and the answer leaves after COMMIT. Rejects with what
 * the handler threw that is no answer. Refuses like {@link atomicRoute}.
 *
 * @example
 * ```ts
 * import { idempotent, reply } from 'reprise/http/fetch'
 * import { memory } from 'reprise/stores/memory'
 *
 * const db = memory({ name: 'shop' })
 * db.table('payment', { unique: [['id']] })
 * export const POST = idempotent(db, { name: 'pay', principal: () => 'ada' }, async ({ tx, request }) => {
 *   await tx.insertOnce('payment', (await request.json()) as { id: string }, ['id'])
 *   return reply(201)
 * })
 * ```
 */
export function idempotent<
  Handle,
  Input = undefined,
  Context extends readonly unknown[] = readonly unknown[],
  Who extends Principal = Principal,
>(
  db: RouteDomain<Handle>,
  { params, ...options }: AtomicRouteOptions<Request, Input, Who> & FetchOptions<Context>,
  handler: (call: WithRequest<AtomicHandlerCall<Request, Handle, Input, Who>>) => Answered | Promise<Answered>,
): FetchHandler<Context> {
  const route = atomicRoute<Request, Handle, Input, Who>(db, options, (call) =>
    handler({ ...call, request: call.request.toRequest() }),
  )
  return handlerOf(route, params)
}

/**
 * A route whose effect lies outside the store, under a lease. Rejects with what the handler threw that is no answer.
 * Refuses like {@link leasedRoute}.
 */
export function idempotentLeased<
  Input = undefined,
  Context extends readonly unknown[] = readonly unknown[],
  Who extends Principal = Principal,
>(
  store: RecordStore,
  { params, ...options }: LeasedRouteOptions<Request, Input, Who> & FetchOptions<Context>,
  handler: (call: WithRequest<LeasedHandlerCall<Request, Input, Who>>) => Answered | Promise<Answered>,
): LeasedMount<FetchHandler<Context>> {
  const leased = leasedRoute<Request, Input, Who>(store, options, (call) =>
    handler({ ...call, request: call.request.toRequest() }),
  )
  return leasedMount(leased, (route) => handlerOf(route, params))
}

function handlerOf<Context extends readonly unknown[]>(
  route: Route<Request>,
  params: FetchOptions<Context>['params'],
): FetchHandler<Context> {
  return async (request, ...context) => {
    const { origin, pathname, search } = new URL(request.url)
    const facts = {
      method: request.method,
      target: pathname + search,
      origin,
      // Headers join what was sent twice by a comma, which no key can hold: it is refused all the same.
      fields: fieldsOf([...request.headers].flat()),
      params: await params?.(...context),
      readBody: (mostBytes: number) => readFetchBody(request, mostBytes),
    }
    return fetchResponse(await route.handle(facts, request), request.method)
  }
}
