// Routes whose effect lies outside the store: the handler works under a lease, and its external calls go through it.

import {
  drillAs,
  happened,
  type Lease,
  leased,
  type RecordStore,
  type Recover,
  timeOfRecords,
} from '../../../idempotency/index.js'
import { defined, durationMs, pick } from '../../../kernel/index.js'
import { type Answer, type Answered, answerOf, discardBody, finish } from '../answer/answer.js'
import { type AnswerJson, type AnswerLimits, fromJson, toJson } from '../answer/stored.js'
import { type DrainOptions, LongWork } from '../work/long-work.js'
import { StatusRoute } from '../work/status.js'
import { type Arrival, type HandlerCall, handlerRun } from './handler.js'
import type { LeasedRouteOptions } from './options.js'
import type { Principal } from './principal.js'
import { roomFor } from './quota.js'
import { HttpRoute, type Route, routeDrill } from './route.js'
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

/** A leased route, as adapters use it. */
export interface LeasedRoute<Native> extends Route<Native> {
  /**
   * The status of work that was begun by the route, for `GET`: the last part of its path says which work. It gives the
   * outcome as a repeat gets it, 202 while the work goes on, after a wait where the request asks for one, and a problem
   * where the outcome is not known, or there is no such work of this caller.
   */
  readonly status: Route<Native>
  /**
   * Waits until no work goes on behind its 202 in this process, and gives how much still does when the time is up.
   * For a service that shuts down: once it accepts no requests any more, and before its store is closed.
   */
  drain(options?: DrainOptions): Promise<number>
}

/** A handler of a framework with what belongs to the work behind it: what `idempotentLeased` gives. */
export type LeasedMount<Handler> = Handler & {
  /** The status of work that was begun, to be mounted at its `Location`, for `GET`: see {@link LeasedRoute}. */
  readonly status: Handler
  /** Waits for work in hand: see {@link LeasedRoute}. */
  drain(options?: DrainOptions): Promise<number>
}

/** Puts the handler of a leased route together with what belongs to the work behind it. */
export function leasedMount<Native, Handler extends object>(
  route: LeasedRoute<Native>,
  handlerOf: (route: Route<Native>) => Handler,
): LeasedMount<Handler> {
  const drain = (options?: DrainOptions): Promise<number> => route.drain(options)
  return Object.assign(handlerOf(route), { status: handlerOf(route.status), drain })
}

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
): LeasedRoute<Native> {
  demandParts(store, ['records'], handler)
  const settings = routeSettings(options, ['lease', 'recover', 'respond', ...ofWork, ...handedOn])
  const isAsync = respondsAsync(options)
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
  drillAs(operation.answers, routeDrill(settings))
  const work = new LongWork({ store, operation, settings, options })
  const longestWaitMs = durationMs(options.statusWait ?? '30s', { option: 'statusWait' })
  const route = new HttpRoute(settings, {
    operation,
    ...(isAsync ? { begin: (arrival, deadline) => work.begin(arrival, deadline) } : {}),
    unkeyed: undefined,
    rollsBack: false,
    settlesItself: operation.answers.recovery?.kind !== 'hold',
    hasRoom: roomFor(options.name, store.records, settings.liveKeys),
    time: timeOfRecords(store.records),
  })
  const status = new StatusRoute({ store, operation, settings, options, work, longestWaitMs })
  return Object.assign(route, { status, drain: (given?: DrainOptions) => work.drain(given) })
}

const ofWork = ['location', 'workLimit', 'statusWait'] as const

// What would never be asked for is refused, and so is what would keep a repeat waiting in place of its 202.
function respondsAsync<Native, Input>(options: LeasedRouteOptions<Native, Input>): boolean {
  const { respond = 'sync', location, workLimit, duplicates } = options
  if (respond !== 'sync' && respond !== 'async') throw invalidOption('respond', "It is 'sync' or 'async'.")
  if (respond === 'sync') {
    const unused = ofWork.find((name) => options[name] !== undefined)
    if (unused !== undefined) throw invalidOption(unused, "It is for routes with respond: 'async'.")
    return false
  }
  if (location !== undefined && typeof location !== 'function') throw invalidOption('location', 'It is a function.')
  if (workLimit !== undefined) durationMs(workLimit, { minMs: 1, option: 'workLimit' })
  if (duplicates !== undefined && duplicates !== 'refuse')
    throw invalidOption('duplicates', 'A repeat of work that goes on is answered with 202, and does not wait.')
  return true
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
