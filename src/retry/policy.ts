// A policy lives per process and target: how often to try, how long to wait, when to stop. It is also plain data.

import { currentDeadline, type Key, withIntent } from '../identity/index.js'
import {
  type Deadline,
  type Duration,
  defined,
  durationMs,
  earlier,
  RepriseError,
  systemChance,
  systemClock,
} from '../kernel/index.js'
import { retryRefused } from '../telemetry/index.js'
import { backoffFrom, fullJitter } from './backoff.js'
import { defaultClassifierBy } from './classify/default-classifier.js'
import { limitFrom, type MadeLimit } from './concurrency/concurrency.js'
import { demandObject, demandOnly } from './demand.js'
import { layersWith } from './foreign-layers.js'
import { type Guard, isGuard, notAGuard } from './guard.js'
import {
  type Body,
  demandPolicyOptions,
  demandRunOptions,
  type PolicyData,
  type RetryPolicyOptions,
  type RunOptions,
  type SequencedBody,
} from './options.js'
import { Call } from './run/call.js'
import type { PolicySettings } from './run/call-state.js'
import { hedging, type MadeHedging } from './run/hedge.js'
import { isOwnedBy, layerAround, promiseOf } from './run/layers.js'
import { deadlineExceeded, Timeouts } from './run/timeouts.js'
import type { NumberedGuard, SequencedGuard } from './sequenced/numbered.js'
import { belongsTo, breakerFrom } from './target/breaker.js'
import { budgetFrom, tokenBudget } from './target/budget.js'
import { firstOf, ownErrorClassifier } from './verdict.js'

/** A policy. Make one per target and keep it: budget, breaker and limit live in it. */
export interface RetryPolicy {
  /** The name in events and reports. */
  readonly name: string
  /** How many times a verdict said to discard. */
  readonly discards: number
  /**
   * Calls the body, and again as the policy allows; the guard is the reason why a repeat is harmless. Under a producer
   * it refuses with SEQUENCE_UNSETTLED, before the first attempt, while another number of the producer is not settled.
   */
  run<Result>(guard: SequencedGuard, body: SequencedBody<Result>, options?: RunOptions<Result>): Promise<Result>
  run<Result, Named extends Key | undefined = Key | undefined>(
    guard: Guard<Named>,
    body: Body<Result, Named>,
    options?: RunOptions<Result>,
  ): Promise<Result>
  /**
   * Calls a body for which nothing makes a repeat harmless: only failures that provably had no effect are repeated.
   * What may have happened ends in an `UnknownOutcomeError`.
   */
  once<Result>(body: Body<Result, undefined>, options?: RunOptions<Result>): Promise<Result>
  /** The policy as plain data. */
  toJSON(): PolicyData
}

const maxAttempts = 20

/**
 * Makes a policy. Refuses what makes no sense with POLICY_INVALID or DURATION_INVALID, here and not at the first
 * failure.
 *
 * @example
 * ```ts
 * import { mintKey } from 'reprise/identity'
 * import { keyed, retryPolicy } from 'reprise/retry'
 *
 * const payments = retryPolicy({ name: 'payments', attempts: 4, attemptTimeout: '2s', deadline: '10s' })
 * const key = mintKey()
 * const answer = await payments.run(keyed(key), ({ signal }) =>
 *   fetch('https://api.example.com/payments', { method: 'POST', headers: { 'Idempotency-Key': key }, signal }),
 * )
 * ```
 */
export function retryPolicy(options: RetryPolicyOptions = {}): RetryPolicy {
  demandPolicyOptions(options)
  const { attempts = 3, layer = 'inherit', hedge, maxRetryAfter = '60s' } = options
  const { name = 'retry', clock = systemClock, innermost = false, foreignLayers } = options
  if (!Number.isInteger(attempts) || attempts < 1 || attempts > maxAttempts) {
    const message = `attempts must be a whole number from 1 to ${maxAttempts}.`
    throw new RepriseError('POLICY_INVALID', message, { details: { path: 'attempts' } })
  }
  if (layer !== 'inherit' && layer !== 'own') {
    throw new RepriseError('POLICY_INVALID', 'layer is inherit or own.', { details: { path: 'layer' } })
  }
  const ms = (option: 'minimumRemainder' | 'deadline' | 'attemptTimeout'): number | undefined => {
    const { [option]: duration } = options
    return duration === undefined ? undefined : durationMs(duration, { minMs: 1, option })
  }
  const budget = options.budget === false ? undefined : (options.budget ?? tokenBudget())
  const settings: PolicySettings = {
    name,
    attempts,
    rules: {
      attempts,
      backoff: options.backoff ?? fullJitter(),
      budget,
      maxRetryAfterMs: durationMs(maxRetryAfter, { option: 'maxRetryAfter' }),
      minimumRemainderMs: ms('minimumRemainder') ?? 1,
    },
    breaker: options.breaker,
    limit: options.limit,
    deadlineMs: ms('deadline'),
    attemptTimeoutMs: ms('attemptTimeout'),
    hedge,
    classify: firstOf(ownErrorClassifier, options.classify ?? (() => undefined), defaultClassifierBy(clock)),
    layer,
    own: layersWith(attempts, foreignLayers),
    foreignLayers,
    innermost,
    clock,
    random: options.random ?? systemChance,
    timeouts: new Timeouts(clock),
    discards: 0,
  }
  if (options.breaker !== undefined) belongsTo(options.breaker, name)
  return new Policy(settings)
}

class Policy implements RetryPolicy {
  readonly #settings: PolicySettings

  constructor(settings: PolicySettings) {
    this.#settings = settings
  }

  get name(): string {
    return this.#settings.name
  }

  get discards(): number {
    return this.#settings.discards
  }

  // The attempts bring the key of the guard, or its number.
  run<Result>(guard: Guard, body: unknown, options?: RunOptions<Result>): Promise<Result> {
    if (!isGuard(guard)) return Promise.reject(notAGuard())
    const { numbered } = guard as NumberedGuard
    if (numbered === undefined || typeof body !== 'function')
      return makeCall(this.#settings, guard, body as Body<Result>, options)
    const make = (...call: [Body<Result>, RunOptions<Result>]) => makeCall(this.#settings, guard, ...call)
    return numbered(this.#settings.classify, body as Body<Result>, options, make)
  }

  once<Result>(body: Body<Result, undefined>, options?: RunOptions<Result>): Promise<Result> {
    return makeCall(this.#settings, undefined, body as Body<Result>, options)
  }

  toJSON(): PolicyData {
    const { name, rules, breaker, limit, deadlineMs, attemptTimeoutMs, hedge, layer, innermost, foreignLayers } =
      this.#settings
    const { attempts, backoff, budget, minimumRemainderMs, maxRetryAfterMs } = rules
    return defined({
      name,
      attempts,
      backoff: backoff.data,
      budget: budget?.data,
      breaker: breaker?.data,
      limit: limit?.data,
      deadlineMs,
      attemptTimeoutMs,
      minimumRemainderMs,
      maxRetryAfterMs,
      hedgeAfterMs: hedge?.afterMs,
      layer,
      innermost: innermost || undefined,
      foreignLayers,
    })
  }
}

function makeCall<Result>(
  settings: PolicySettings,
  guard: Guard | undefined,
  body: Body<Result>,
  options: RunOptions<Result> | undefined,
): Promise<Result> {
  try {
    if (typeof body !== 'function') throw new RepriseError('ARGUMENT_INVALID', 'The body is no function.')
    const ambient = currentDeadline()
    const { deadlineMs } = settings
    const isPlain = settings.hedge === undefined && settings.limit === undefined
    if (isPlain && options === undefined && ambient === undefined && deadlineMs === undefined)
      return new Call(settings, guard, body, undefined, undefined, layerAround(settings, guard?.key)).attempt(1)
    return makeLimitedCall(settings, guard, body, options, ambient)
  } catch (error) {
    // Breaker and clock may be the user's.
    return Promise.reject(error)
  }
}

function makeLimitedCall<Result>(
  settings: PolicySettings,
  guard: Guard | undefined,
  body: Body<Result>,
  options: RunOptions<Result> | undefined,
  ambient: Deadline | undefined,
): Promise<Result> {
  if (options !== undefined) demandRunOptions(options)
  if (options?.signal?.aborted) {
    if (retryRefused.hasSubscribers) retryRefused.publish({ policy: settings.name, by: 'signal' })
    throw options.signal.reason
  }
  const deadline = deadlineOf(settings, options?.deadline, ambient)
  // On the way inwards a deadline only shrinks: what the body calls is to see one that this call brought.
  const inward: Body<Result> =
    deadline === undefined || deadline === ambient
      ? body
      : (attempt) => withIntent({ deadline }, () => promiseOf(body, attempt))
  const around = layerAround(settings, guard?.key)
  // A precondition that fails under a hedge may be the other hedge's success, which nobody can tell while that one is
  // out.
  const mayHedge = guard !== undefined && guard.rung !== 'conditional' && !isOwnedBy(around, settings)
  const hedge = mayHedge ? (settings.hedge as MadeHedging | undefined) : undefined
  const call =
    (hedge ?? (settings.limit as MadeLimit | undefined))?.callOf(settings, guard, inward, options, deadline, around) ??
    new Call(settings, guard, inward, options, deadline, around)
  if (!call.isUseful()) {
    call.refused('deadline')
    throw deadlineExceeded()
  }
  return call.attempt(1)
}

function deadlineOf(
  { deadlineMs, clock }: PolicySettings,
  given: Duration | Deadline | undefined,
  ambient: Deadline | undefined,
): Deadline | undefined {
  const own = deadlineMs === undefined ? undefined : { expiresAtMs: clock.monotonicMs() + deadlineMs }
  const called =
    given === undefined || typeof given === 'object'
      ? given
      : { expiresAtMs: clock.monotonicMs() + durationMs(given, { option: 'deadline' }) }
  const earliest = earlier(earlier(own, called), ambient)
  // A point that never comes is no deadline, and no timer can be set for it.
  return earliest?.expiresAtMs === Number.POSITIVE_INFINITY ? undefined : earliest
}

/** What plain data cannot hold. */
export type LiveOptions = Pick<RetryPolicyOptions, 'classify' | 'clock' | 'random'>

// Of PolicyData, each one.
const members = /* @__PURE__ */ Object.keys({
  name: 1,
  attempts: 1,
  backoff: 1,
  budget: 1,
  breaker: 1,
  limit: 1,
  deadlineMs: 1,
  attemptTimeoutMs: 1,
  minimumRemainderMs: 1,
  maxRetryAfterMs: 1,
  hedgeAfterMs: 1,
  layer: 1,
  innermost: 1,
  foreignLayers: 1,
} satisfies Record<keyof PolicyData, 1>)

/** A policy from plain data, as `toJSON` gives it: with a budget, a breaker and a limit of its own. */
export function policyFrom(data: PolicyData, live: LiveOptions = {}): RetryPolicy {
  demandOnly(data, 'policy', ...members)
  const { backoff, budget, breaker, limit, deadlineMs, attemptTimeoutMs, hedgeAfterMs, ...more } = data
  const { minimumRemainderMs, maxRetryAfterMs, ...rest } = more
  return retryPolicy({
    ...live,
    ...rest,
    backoff: backoffFrom(backoff),
    budget: budget === undefined ? false : budgetFrom(budget),
    minimumRemainder: minimumRemainderMs,
    maxRetryAfter: maxRetryAfterMs,
    ...defined({
      breaker: breaker === undefined ? undefined : breakerFrom(breaker),
      limit: limit === undefined ? undefined : limitFrom(limit),
      deadline: deadlineMs,
      attemptTimeout: attemptTimeoutMs,
      hedge: hedgeAfterMs === undefined ? undefined : hedging({ after: hedgeAfterMs }),
    }),
  })
}

/**
 * Calls the body under a policy made for this call. For one-off work: a budget that is not shared cannot stop a storm.
 */
export function retry<Result>(
  guard: SequencedGuard,
  body: SequencedBody<Result>,
  options?: RetryPolicyOptions & RunOptions<Result>,
): Promise<Result>
export function retry<Result, Named extends Key | undefined = Key | undefined>(
  guard: Guard<Named>,
  body: Body<Result, Named>,
  options?: RetryPolicyOptions & RunOptions<Result>,
): Promise<Result>
export function retry<Result>(
  guard: Guard,
  body: (attempt: never) => ReturnType<Body<Result>>,
  options: RetryPolicyOptions & RunOptions<Result> = {},
): Promise<Result> {
  try {
    return oneOff(guard, body as Body<Result>, options)
  } catch (error) {
    return Promise.reject(error)
  }
}

function oneOff<Result>(
  guard: Guard,
  body: Body<Result>,
  options: RetryPolicyOptions & RunOptions<Result>,
): Promise<Result> {
  demandObject(options, 'options')
  const { signal, deadline, history, onDiscard, resolve, ...policy } = options
  const call = { signal, deadline, history, onDiscard, resolve } as RunOptions<Result>
  return retryPolicy(policy).run(guard, body, call)
}
