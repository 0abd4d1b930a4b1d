// A policy lives per process and target: how often to try, how long to wait, when to stop. It is also plain data.

import { type Duration, durationMs, RepriseError, systemClock, systemRandom } from '../kernel/index.js'
import { backoffFrom, fullJitter } from './backoff.js'
import { type Classifier, firstOf } from './classify/classifier.js'
import { defaultClassifier } from './classify/default-classifier.js'
import { httpClassifierFor } from './classify/http.js'
import { demandObject, demandOnly } from './demand.js'
import { type Guard, isGuard, notAGuard } from './guard.js'
import { demandPolicyOptions, type PolicyData, type RetryPolicyOptions, type RunOptions } from './options.js'
import type { Body } from './run/attempt.js'
import type { Machinery } from './run/call.js'
import { registerLayer, sameLayer } from './run/layers.js'
import { execute } from './run/run.js'
import { Timeouts } from './run/timeouts.js'
import { belongsTo, breakerFrom } from './target/breaker.js'
import { budgetFrom, tokenBudget } from './target/budget.js'

/** A policy. Make one per target and keep it: budget and breaker live in it. */
export interface RetryPolicy {
  /** The name in events and reports. */
  readonly name: string
  /** How many times a verdict said to discard. */
  readonly discards: number
  /** Calls the body, and again as the policy allows; the guard is the reason why a repeat is harmless. */
  run<Result>(guard: Guard, body: Body<Result>, options?: RunOptions<Result>): Promise<Result>
  /**
   * Calls a body for which nothing makes a repeat harmless: only failures that provably had no effect are repeated. What may
   * have happened ends in an `UnknownOutcomeError`.
   */
  once<Result>(body: Body<Result>, options?: RunOptions<Result>): Promise<Result>
  /** The policy as plain data. */
  toJSON(): PolicyData
}

const maxAttempts = 20

/** Makes a policy. Refuses what makes no sense with POLICY_INVALID or DURATION_INVALID, here and not at the first failure. */
export function retryPolicy(options: RetryPolicyOptions = {}): RetryPolicy {
  demandPolicyOptions(options)
  const { attempts = 3, layer = 'inherit', hedge, maxRetryAfter = '60s' } = options
  const { name = 'retry', clock = systemClock, innermost = false } = options
  if (!Number.isInteger(attempts) || attempts < 1 || attempts > maxAttempts) {
    const message = `attempts must be a whole number from 1 to ${maxAttempts}.`
    throw new RepriseError('POLICY_INVALID', message, { details: { path: 'attempts' } })
  }
  if (layer !== 'inherit' && layer !== 'own') {
    throw new RepriseError('POLICY_INVALID', 'layer is inherit or own.', { details: { path: 'layer' } })
  }
  if (hedge !== undefined) demandOnly(hedge, 'hedge', 'after')
  const ms = (duration: Duration | undefined): number | undefined =>
    duration === undefined ? undefined : durationMs(duration, { minMs: 1 })
  const budget = options.budget === false ? undefined : (options.budget ?? tokenBudget())
  const attemptTimeoutMs = ms(options.attemptTimeout)
  const machinery: Machinery = {
    name,
    rules: {
      attempts,
      backoff: options.backoff ?? fullJitter(),
      budget,
      maxRetryAfterMs: durationMs(maxRetryAfter),
      minimumRemainderMs: ms(options.minimumRemainder) ?? 1,
    },
    breaker: options.breaker,
    deadlineMs: ms(options.deadline),
    attemptTimeoutMs,
    hedgeAfterMs: hedge === undefined ? undefined : durationMs(hedge.after, { minMs: 1 }),
    classify: classifierOf(options),
    layer,
    own: { depth: 1, declared: attempts },
    innermost,
    clock,
    random: options.random ?? systemRandom,
    plain: options.deadline === undefined && hedge === undefined,
    timeouts: attemptTimeoutMs === undefined ? undefined : new Timeouts(clock, attemptTimeoutMs),
    discards: 0,
  }
  if (options.breaker !== undefined) belongsTo(options.breaker, name)
  if (attempts > 1) registerLayer()
  return new Policy(machinery)
}

// Dates in Retry-After are compared with the policy's own clock.
function classifierOf({ classify, clock }: RetryPolicyOptions): Classifier {
  const own = classify === undefined ? [] : [classify]
  const http = clock === undefined ? [] : [httpClassifierFor({ clock })]
  return own.length + http.length === 0 ? defaultClassifier : firstOf(...own, ...http, defaultClassifier)
}

class Policy implements RetryPolicy {
  readonly #machinery: Machinery

  constructor(machinery: Machinery) {
    this.#machinery = machinery
  }

  get name(): string {
    return this.#machinery.name
  }

  get discards(): number {
    return this.#machinery.discards
  }

  run<Result>(guard: Guard, body: Body<Result>, options?: RunOptions<Result>): Promise<Result> {
    if (!isGuard(guard)) return Promise.reject(notAGuard())
    return execute(this.#machinery, guard, body, options)
  }

  once<Result>(body: Body<Result>, options?: RunOptions<Result>): Promise<Result> {
    return execute(this.#machinery, undefined, body, options)
  }

  toJSON(): PolicyData {
    const { name, rules, breaker, deadlineMs, attemptTimeoutMs, hedgeAfterMs, layer, innermost } = this.#machinery
    const { attempts, backoff, budget, minimumRemainderMs, maxRetryAfterMs } = rules
    return {
      name,
      attempts,
      backoff: backoff.data,
      ...(budget && { budget: budget.data }),
      ...(breaker && { breaker: breaker.data }),
      ...(deadlineMs !== undefined && { deadlineMs }),
      ...(attemptTimeoutMs !== undefined && { attemptTimeoutMs }),
      minimumRemainderMs,
      maxRetryAfterMs,
      ...(hedgeAfterMs !== undefined && { hedgeAfterMs }),
      layer,
      ...(innermost && { innermost }),
    }
  }
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
  deadlineMs: 1,
  attemptTimeoutMs: 1,
  minimumRemainderMs: 1,
  maxRetryAfterMs: 1,
  hedgeAfterMs: 1,
  layer: 1,
  innermost: 1,
} satisfies Record<keyof PolicyData, 1>)

/** A policy from plain data, as `toJSON` gives it: with a budget and a breaker of its own. */
export function policyFrom(data: PolicyData, live: LiveOptions = {}): RetryPolicy {
  demandOnly(data, 'policy', ...members)
  return retryPolicy({
    ...live,
    name: data.name,
    attempts: data.attempts,
    backoff: backoffFrom(data.backoff),
    budget: data.budget === undefined ? false : budgetFrom(data.budget),
    ...(data.breaker !== undefined && { breaker: breakerFrom(data.breaker) }),
    ...(data.deadlineMs !== undefined && { deadline: data.deadlineMs }),
    ...(data.attemptTimeoutMs !== undefined && { attemptTimeout: data.attemptTimeoutMs }),
    minimumRemainder: data.minimumRemainderMs,
    maxRetryAfter: data.maxRetryAfterMs,
    ...(data.hedgeAfterMs !== undefined && { hedge: { after: data.hedgeAfterMs } }),
    layer: data.layer,
    ...(data.innermost !== undefined && { innermost: data.innermost }),
  })
}

// All one-line retries together are one layer.
let known = false

/** Calls the body under a policy made for this call. For one-off work: a budget that is not shared cannot stop a storm. */
export function retry<Result>(
  guard: Guard,
  body: Body<Result>,
  options: RetryPolicyOptions & RunOptions<Result> = {},
): Promise<Result> {
  try {
    return oneOff(guard, body, options)
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
  // They may stand inside one another before a second one could make itself known, so the first counts for two.
  if (!known) registerLayer(2)
  known = true
  const call = { signal, deadline, history, onDiscard, resolve } as RunOptions<Result>
  return sameLayer(() => retryPolicy(policy)).run(guard, body, call)
}
