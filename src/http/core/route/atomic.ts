// Routes whose marker, effect and answer commit together: the handler works in the transaction that also holds the
// claim.

import { drillAs, drillOfRecords, type Operations, timeOfRecords } from '../../../idempotency/index.js'
import { type Duration, pick } from '../../../kernel/index.js'
import { type TransactionOptions, transactionOptionNames } from '../../../transaction/index.js'
import { type Answer, type Answered, discardBody } from '../answer/answer.js'
import { type Arrival, type HandlerCall, handlerRun } from './handler.js'
import type { AtomicRouteOptions } from './options.js'
import type { Principal } from './principal.js'
import { roomFor } from './quota.js'
import { HttpRoute, type Route, routeDrill } from './route.js'
import { demandParts, operationOptions, routeSettings } from './settings.js'

/** A domain that routes can work in: every store of Reprise is one. */
export interface RouteDomain<Handle> extends Pick<Operations<Handle>, 'operation' | 'records'> {
  /** Runs a transaction. */
  transact(
    body: (tx: Handle) => Promise<unknown>,
    options?: TransactionOptions & { readonly deadline?: Duration },
  ): Promise<unknown>
}

/** What a handler gets whose route is atomic. */
export interface AtomicHandlerCall<Native, Handle, Input, Who extends Principal = Principal>
  extends HandlerCall<Native, Input, Who> {
  /** The open transaction: what is written through it commits with the answer, or not at all. */
  readonly tx: Handle
}

/**
 * A handler whose route is atomic. It may run several times, each time in a fresh transaction and with a fresh request;
 * its answer leaves after COMMIT.
 */
export type AtomicHandler<Native, Handle, Input, Who extends Principal = Principal> = (
  call: AtomicHandlerCall<Native, Handle, Input, Who>,
) => Answered | Promise<Answered>

/**
 * A route in a domain. Returned answers are stored with what the handler wrote, if their status is one that is stored;
 * thrown ones are stored without. Anything else rolls back, and the key is free again. Refuses what cannot be safe with
 * OPERATION_INVALID (`details.option` says which), OPERATION_DEFINED_TWICE, SCOPE_MISSING, WINDOW_SHORTER_THAN_HORIZON
 * or DURATION_INVALID.
 */
export function atomicRoute<Native, Handle, Input = undefined, Who extends Principal = Principal>(
  db: RouteDomain<Handle>,
  options: AtomicRouteOptions<Native, Input, Who>,
  handler: AtomicHandler<Native, Handle, Input, Who>,
): Route<Native> {
  demandParts(db, ['operation', 'transact'], handler)
  const settings = routeSettings(options, transactionOptionNames)
  const transactions: TransactionOptions = pick(options, transactionOptionNames)
  const run = handlerRun<Native, Input, Handle>(settings, handler, 'tx')
  const operation = db.operation(options.name, { ...operationOptions(options, settings), ...transactions, run })
  drillAs(operation.answers, routeDrill(settings))
  const drill = drillOfRecords(db.records)
  const unkeyed = async (arrival: Arrival<Native, Input>, deadline: number): Promise<Answer> => {
    if (drill?.draws()) {
      const { name, domain } = operation.answers
      drill.skip({ kind: 'route', domain: domain.name, name }, 'unkeyed')
    }
    let answer: Answer | undefined
    const body = async (tx: Handle): Promise<Answer> => {
      // The transaction of an earlier run did not commit: nobody gets its answer.
      if (answer !== undefined) await discardBody(answer)
      answer = undefined
      answer = await run(tx, arrival)
      return answer
    }
    try {
      return (await db.transact(body, { ...transactions, deadline })) as Answer
    } catch (error) {
      if (answer !== undefined) await discardBody(answer)
      throw error
    }
  }
  return new HttpRoute(settings, {
    operation,
    unkeyed,
    rollsBack: true,
    settlesItself: true,
    hasRoom: roomFor(options.name, db.records, settings.liveKeys),
    time: timeOfRecords(db.records),
  })
}
