// Routes whose effect lies outside the store: the handler works under a lease, and its external calls go through it.

import {
  happened,
  type Lease,
  leased,
  type RecordStore,
  type Recover,
  timeOfRecords,
} from '../../../idempotency/index.js'
import { type Answered, answerOf } from '../answer/answer.js'
import { discard, finish } from '../answer/finished.js'
import { type StoredAnswer, store as storedOf } from '../answer/stored.js'
import type { Arrival } from './arrival.js'
import type { LeasedRouteOptions } from './options.js'
import { roomFor } from './quota.js'
import { HttpRoute, type Route } from './route.js'
import { type HandlerCall, runHandler } from './run-handler.js'
import { demandParts, invalidOption, operationOptions, type RouteSettings, routeSettings } from './settings.js'

/** What a handler gets whose route is leased. */
export interface LeasedHandlerCall<Native, Input> extends HandlerCall<Native, Input> {
  /** The claim under which it works: external calls go through `lease.effect(step, call)`. */
  readonly lease: Lease
}

/** A handler whose route is leased. */
export type LeasedHandler<Native, Input> = (call: LeasedHandlerCall<Native, Input>) => Answered | PromiseLike<Answered>

const modeNames = ['lease', 'recover', 'margin', 'allowance', 'classify', 'lookAfter'] as const

/**
 * A route whose marker is kept in a store beside its effect. An answer that is not stored, or an error, leaves the key free only where nothing can have been sent;
 * otherwise the outcome is unknown, and recovered as declared. A key is always required. Refuses like `leased`.
 */
export function leasedRoute<Native, Input = undefined>(
  store: RecordStore,
  options: LeasedRouteOptions<Native, Input>,
  handler: LeasedHandler<Native, Input>,
): Route<Native> {
  demandParts(store, ['records'], handler)
  const settings = routeSettings(options, modeNames)
  if (!settings.required)
    throw invalidOption('required', 'A leased route always needs a key: it is all that makes a repeat harmless.')
  const { lease = '30s', deadline } = options
  const given = Object.fromEntries(
    modeNames.filter((name) => options[name] !== undefined).map((name) => [name, options[name]]),
  )
  const run = (held: Lease, arrival: Arrival<Native, Input>) =>
    runHandler(settings, options, arrival, (call) => handler({ ...call, lease: held }))
  const operation = leased(options.name, {
    ...operationOptions(options, settings),
    ...given,
    ...(options.recover === undefined ? {} : { recover: recovering(options.recover, settings) }),
    ...(deadline === undefined ? {} : { deadline }),
    store,
    lease,
    run,
  })
  return new HttpRoute(options, settings, {
    operation,
    unkeyed: undefined,
    settlesItself: operation.answers.recovery?.kind !== 'hold',
    hasRoom: roomFor(options.name, store.records),
    deadlineMs: timeOfRecords(store.records).deadlineMs,
  })
}

// What is found out is an answer, and stored like one that was returned.
function recovering<Native, Input>(
  recover: NonNullable<LeasedRouteOptions<Native, Input>['recover']>,
  settings: RouteSettings,
): Recover<Arrival<Native, Input>, StoredAnswer, 'answer'> {
  const { rule, ask } = Object(recover) as Partial<typeof recover>
  if (rule === undefined || ask === undefined) return recover as Recover<Arrival<Native, Input>, StoredAnswer, 'answer'>
  return {
    rule,
    ask: async (call) => {
      const found = await ask(call)
      return found?.found === 'happened' ? happened(await storable(found.value, settings)) : found
    },
  }
}

async function storable(value: Answered | StoredAnswer, settings: RouteSettings): Promise<StoredAnswer> {
  if (!(value instanceof Response) && !('body' in Object(value))) return value as StoredAnswer
  const answer = await finish(answerOf(value as Answered), settings.largestAnswer)
  const stored = storedOf(answer, settings.replayed, settings.largestAnswer)
  await discard(answer)
  return stored
}
