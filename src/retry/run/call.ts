// One call of a policy, as runner, failures and hedges share it.

import { type Clock, type Deadline, type Random, RepriseError } from '../../kernel/index.js'
import { retryRefused } from '../../telemetry/index.js'
import type { Classifier } from '../classify/default-classifier.js'
import type { PolicyRules } from '../decide.js'
import type { Guard } from '../guard.js'
import type { RunOptions } from '../options.js'
import type { Breaker } from '../target/breaker.js'
import type { Body } from './attempt.js'
import type { Layer } from './layers.js'
import type { CallLimits } from './limits.js'
import type { Timeouts } from './timeouts.js'

/** A policy as the runner sees it: options resolved, nothing optional left to default. */
export interface Machinery extends Layer {
  /** What decides after a failure. */
  readonly rules: PolicyRules
  /** What stops calling a target that keeps failing. */
  readonly breaker: Breaker | undefined
  /** How long a whole call may take, in ms. */
  readonly deadlineMs: number | undefined
  /** How long one attempt may take, in ms. */
  readonly attemptTimeoutMs: number | undefined
  /** How long to wait for an attempt before sending the next, in ms. */
  readonly hedgeAfterMs: number | undefined
  /** What failures mean. */
  readonly classify: Classifier
  /** Time. */
  readonly clock: Clock
  /** Chance. */
  readonly random: Random
  /** Whether nothing but the rules, the breaker and the time-out bears on a call. */
  readonly plain: boolean
  /** The attempts that are out, where they have a time-out. */
  readonly timeouts: Timeouts | undefined
  /** How many times a verdict said to discard. */
  discards: number
}

/** One call of a policy. */
export interface Call<Result> {
  /** The policy. */
  readonly machinery: Machinery
  /** What makes a repeat harmless; undefined: nothing does. */
  readonly guard: Guard | undefined
  /** The caller's function. */
  readonly body: Body<Result>
  /** What the caller said about this call. */
  readonly options: RunOptions<Result> | undefined
  /** When nobody waits any more. */
  readonly deadline: Deadline | undefined
  /** What may end the call from outside; undefined where nothing may. */
  readonly limits: CallLimits | undefined
  /** Whether a layer around this one repeats. */
  readonly owned: boolean
}

/**
 * Tells budget and breaker of a success. The clock is read only for those that mind the time.
 *
 * @param isRepeat Whether the budget has been told of an earlier attempt of the same call.
 */
export function succeeded({ rules, breaker, clock }: Machinery, pass: number, isRepeat: boolean): void {
  if (breaker !== undefined) breaker.succeeded(pass, breaker.data.kind === 'window' ? clock.monotonicMs() : 0)
  const { budget } = rules
  if (budget !== undefined) budget.succeeded(budget.data.kind === 'token' ? 0 : clock.monotonicMs(), isRepeat)
}

/** The refusal of a call whose target is left alone. */
export function breakerOpen(policy: string): RepriseError {
  if (retryRefused.hasSubscribers) retryRefused.publish({ policy, by: 'breaker' })
  return new RepriseError('BREAKER_OPEN', 'The breaker is open; the target was not called.')
}

/** Whether the call is a layer. What repeats nothing that may have happened multiplies nothing, and leaves repeats to those inside. */
export function isLayer({ rules }: Machinery, guard: Guard | undefined): boolean {
  return guard !== undefined && rules.attempts > 1
}

/** Whether enough is left of a deadline for an attempt to be worth making. */
export function isUseful({ clock, rules }: Machinery, deadline: Deadline | undefined): boolean {
  return deadline === undefined || deadline.expiresAtMs - clock.monotonicMs() >= rules.minimumRemainderMs
}
