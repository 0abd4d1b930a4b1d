// What happens after a failed attempt: again, and when, or stop, and why. Used by the runner and by the simulator.

import type { Chance } from '../kernel/index.js'
import type { Backoff } from './backoff.js'
import type { Budget } from './target/budget.js'
import type { Verdict } from './verdict.js'

/** Why there is no further attempt. */
export type StopReason =
  | 'permanent'
  | 'discard'
  | 'unguarded'
  | 'attempts'
  | 'allowance'
  | 'budget'
  | 'budget-required'
  | 'breaker'
  | 'limit'
  | 'conflict'
  | 'resolved'
  | 'deadline'
  | 'retry-after'
  | 'do-not-repeat'
  | 'layer'
  | 'aborted'

/** Again after `delayMs`; or not, where `delayMs` is the wait that was asked for and could not be kept. */
export type RepeatDecision =
  | { readonly again: true; readonly delayMs: number }
  | { readonly again: false; readonly reason: StopReason; readonly delayMs?: number }

/** The part of a policy that decides. A budget may be anything that is asked for a repeat. */
export interface PolicyRules<Limit extends Pick<Budget, 'tryRepeat'> = Budget> {
  /** Calls in all, the first included. */
  readonly attempts: number
  readonly backoff: Backoff
  /** Without one, nothing that reports overload is repeated. */
  readonly budget?: Limit | undefined
  /** A longer Retry-After than this, in ms, ends it. */
  readonly maxRetryAfterMs: number
  /** No attempt starts with less of the deadline left than this, in ms. */
  readonly minimumRemainderMs: number
}

/** What is known after a failed attempt. */
export interface RepeatFacts {
  /** Failed attempts so far, this one included. In a hedged call: all that were sent. */
  readonly failures: number
  /** How many of them the backoff leaves out: those up to a wait that was asked for exactly. Default 0. */
  readonly failuresBefore?: number
  /** How many repeats all layers of the intent may still make together. Default: no limit. */
  readonly repeatsLeft?: number
  /** What the failure meant. */
  readonly verdict: Verdict
  /** Whether a guard makes repeats harmless. */
  readonly guarded: boolean
  /** Whether any attempt so far may have happened. */
  readonly anyMaybe: boolean
  /** The wait before this attempt, in ms; 0 before the first. */
  readonly previousDelayMs: number
  /** What is left of the deadline, in ms; Infinity without one. */
  readonly remainingMs: number
  /** Now, in monotonic ms. */
  readonly nowMs: number
  /**
   * The next attempt waits only for what the server asked for, as a hedge does. Default false: the backoff counts too.
   */
  readonly withoutBackoff?: boolean
  /** The budget has said yes to this repeat already. Default false. */
  readonly isPaid?: boolean
}

/**
 * Decides after a failed attempt, in this order: the verdict, the guard, a deadline that has passed, the attempts, what
 * the layers of the intent have left, the wait against Retry-After and deadline, and the budget last, so that nothing
 * is taken from it for a repeat that is not made. The runner has told the budget of the failure before. A wait that the
 * server asked for is never shortened, and where it is asked for exactly, not lengthened either.
 */
export function decideRepeat(
  rules: PolicyRules<Pick<Budget, 'tryRepeat'>>,
  facts: RepeatFacts,
  random: Chance,
): RepeatDecision {
  const { verdict, remainingMs } = facts
  const { help, retryAfterMs = 0 } = verdict
  if (help !== 'transient') return stop(help)
  if (verdict.doNotRepeat) return stop('do-not-repeat')
  if (!facts.guarded && (facts.anyMaybe || verdict.happened !== 'no')) return stop('unguarded')
  // Before the attempts: what ended the call is its deadline, also where the last attempt was out.
  if (remainingMs <= 0) return stop('deadline')
  if (facts.failures >= rules.attempts) return stop('attempts')
  if ((facts.repeatsLeft ?? 1) <= 0) return stop('allowance')

  const fits = (delayMs: number): boolean => {
    const restMs = remainingMs - delayMs
    return restMs > 0 && restMs >= rules.minimumRemainderMs
  }
  // Without a wait asked for, what does not fit is simply the deadline.
  const asked = retryAfterMs > 0
  if (!(retryAfterMs <= rules.maxRetryAfterMs) || (asked && !fits(retryAfterMs)))
    return stop('retry-after', retryAfterMs)
  const steps = facts.failures - (facts.failuresBefore ?? 0)
  const isExact = verdict.exactly || facts.withoutBackoff
  const ownMs = isExact ? 0 : rules.backoff.delayMs(steps, facts.previousDelayMs, random)
  const delayMs = Math.max(retryAfterMs, ownMs)
  if (!fits(delayMs)) return stop('deadline', delayMs)

  if (rules.budget === undefined) return verdict.overload ? stop('budget-required') : { again: true, delayMs }
  return facts.isPaid || rules.budget.tryRepeat(facts.nowMs) ? { again: true, delayMs } : stop('budget')
}

function stop(reason: StopReason, delayMs?: number): RepeatDecision {
  return delayMs === undefined ? { again: false, reason } : { again: false, reason, delayMs }
}
