// Routes whose effect lies outside the store: the handler works under a lease, and its external calls go through it.

import {
  happened,
  type Lease,
  leased,
  type RecordStore,
  type Recover,
  timeOfRecords,
} from '../../../idempotency/index.js'
import { defined, pick } from '../../../kernel/index.js'
import { type Answer, type Answered, answerOf, discardBody, finish } from '../answer/answer.js'
import { type AnswerJson, type AnswerLimits, fromJson, toJson } from '../answer/stored.js'
import { type Arrival, type HandlerCall, handlerRun } from './handler.js'
import type { LeasedRouteOptions } from './options.js'
import type { Principal } from './principal.js'
import { roomFor } from './quota.js'
import { HttpRoute, type Route } from './route.js'
import { demandParts, invalidOption, operationOptions, routeSettings } from './settings.js'

/** What a handler gets whose route is leased. */
export interface LeasedHandlerCall<Native, Input, Who extends Principal = Principal>
  extends HandlerCall<Native, Input, Who> {
  /** The claim under which it works: external calls go through `lease.effect(step, call)`. */
  readonly lease: Lease
}

/** A handler whose route is leased. */
export type LeasedHandler<Native, Input, Who extends Principal = Principal> = (
  call: LeasedHandlerCall<Native, Input, Who>,
) => Answered | Promise<Answered>

const handedOn = ['margin', 'leftForCall', 'classify', 'lookAfter', 'deadline', 'foreignLayers'] as const

/**
 * A route whose marker is kept in a store beside its effect. An answer that is not stored, or an error, leaves the key
 * free only where nothing can have been sent; otherwise the outcome is unknown, and recovered as declared. A key is
 * always required. Refuses like `leased`.
 */
export function leasedRoute<Native, Input = undefined, Who extends Principal = Principal>(
  store: RecordStore,
  options: LeasedRouteOptions<Native, Input, Who>,
  handler: LeasedHandler<Native, Input, Who>,
): Route<Native> {
  demandParts(store, ['records'], handler)
  const settings = routeSettings(options, ['lease', 'recover', ...handedOn])
  if (!settings.required)
    throw invalidOption('required', 'A leased route always needs a key: it is all that makes a repeat harmless.')
  const { lease = '30s', recover } = options
  const operation = leased(options.name, {
    ...operationOptions(options, settings),
    ...pick(options, handedOn),
    ...defined({ recover: recover === undefined ? undefined : recovering(recover, settings) }),
    store,
    lease,
    run: handlerRun<Native, Input, Lease>(settings, handler, 'lease'),
  })
  return new HttpRoute(settings, {
    operation,
    unkeyed: undefined,
    rollsBack: false,
    settlesItself: operation.answers.recovery?.kind !== 'hold',
    hasRoom: roomFor(options.name, store.records, settings.liveKeys),
    time: timeOfRecords(store.records),
  })
}

// What is found out is an answer, and given as it is remembered: the caller who asks did not see it being made.
function recovering<Native, Input>(
  recover: NonNullable<LeasedRouteOptions<Native, Input>['recover']>,
  limits: AnswerLimits,
): Recover<Arrival<Native, Input>, Answer, 'answer'> {
  const { rule, ask } = Object(recover) as Partial<typeof recover>
  if (rule === undefined || ask === undefined) return recover as Recover<Arrival<Native, Input>, Answer, 'answer'>
  return {
    rule,
    ask: async (call) => {
      const found = await ask(call)
      return found?.found === 'happened' ? happened(await remembered(found.value, limits)) : found
    },
  }
}

async function remembered(value: Answered | AnswerJson, limits: AnswerLimits): Promise<Answer> {
  if (!(value instanceof Response) && !('body' in Object(value))) return fromJson(value as AnswerJson)
  const answer = await finish(answerOf(value as Answered), limits.largestAnswer)
  const json = toJson(answer, limits)
  await discardBody(answer)
  return fromJson(json)
}
