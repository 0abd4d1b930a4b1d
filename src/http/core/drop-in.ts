// Routes around handlers that exist: the handler answers as ever, and its answer is held back until its transaction has
// committed.

import { RepriseError } from '../../kernel/index.js'
import { type Answer, type Answered, answerOf, discardBody, finish, reply } from './answer/answer.js'
import { type AtomicHandlerCall, atomicRoute, type RouteDomain } from './route/atomic.js'
import type { AtomicRouteOptions } from './route/options.js'
import type { Principal } from './route/principal.js'
import type { Route } from './route/route.js'

/**
 * Options of a route around a handler that exists: those of a route, but for what needs a handler that can be called
 * again or that throws its answers. `parse` only checks, before anything is claimed, so that a refusal is not stored.
 */
export type DropInOptions<Native, Who extends Principal = Principal> = Omit<
  AtomicRouteOptions<Native, unknown, Who>,
  'answerOf' | 'attempts'
>

/**
 * A route around a handler that exists. It is run once: a transaction that could not be serialized, or that was chosen
 * to end a deadlock, is a 503 that can be repeated, and nothing is kept of it. Refuses like {@link atomicRoute}.
 *
 * @param run Lets the handler answer, and gives the answer that it made, or rejects with what it threw.
 */
export function dropInRoute<Native extends object, Handle, Who extends Principal = Principal>(
  db: RouteDomain<Handle>,
  options: DropInOptions<Native, Who>,
  run: (call: AtomicHandlerCall<Native, Handle, unknown, Who>) => Promise<Answered>,
): Route<Native> {
  const begun = new WeakSet<Native>()
  return atomicRoute<Native, Handle, unknown, Who>(db, { ...options, attempts: 1 }, async (call) => {
    // A transaction may begin in vain, before anything is known of it, and be begun once more.
    if (begun.has(call.native)) throw new RepriseError('TRANSACTION_OVER', 'The handler of a request runs once.')
    begun.add(call.native)
    const answer = answerOf(await run(call))
    const type = answer.headers.find(([name]) => name === 'content-type')?.[1] ?? ''
    if (!isEventStream(type)) return inWhole(answer)
    await discardBody(answer)
    throw notHeld('A stream of events')
  })
}

/** More than this is not held back: the transaction is rolled back. */
export const mostHeldBytes = 16_777_216

/** The refusal of more than that. */
export function tooLargeToHold(): RepriseError {
  return notHeld(`An answer of more than ${mostHeldBytes} bytes`)
}

// What makes the body may still write through the transaction, so all of it comes before COMMIT.
async function inWhole(given: Answer): Promise<Answer> {
  const answer = await finish(given, mostHeldBytes)
  const { status, headers, body } = answer
  if (body === null || typeof body === 'string' || body instanceof Uint8Array) {
    return { ...reply(status), headers, body }
  }
  await discardBody(answer)
  throw tooLargeToHold()
}

/** Whether an answer of this type goes on for as long as its client listens. */
export function isEventStream(type: string): boolean {
  return /^text\/event-stream\b/i.test(type)
}

/** The refusal of an answer that cannot wait for COMMIT. */
export function notHeld(what: string): RepriseError {
  const message = `${what} cannot be held back until COMMIT. Answer with what is known by then, or mount the route without idempotency.`
  return new RepriseError('ANSWER_NOT_HELD', message)
}
