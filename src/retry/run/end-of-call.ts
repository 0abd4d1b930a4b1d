// How a call ends that did not succeed: with an answer that an attempt returned, or with the error that the caller has
// to know of, beside which its history is kept.

import { warnOnce } from '../../kernel/index.js'
import type { StopReason } from '../decide-repeat.js'
import { rememberAttempts } from '../history.js'
import { UnknownOutcomeError } from '../unknown-outcome.js'
import type { CallState } from './call-state.js'
import type { AttemptFailure } from './returned.js'
import { markSpent } from './spent.js'

/** Ends a call: a value that an attempt returned, or the error that the caller has to know of. */
export function endCall<Result>(call: CallState<Result>, stop: StopReason): Result {
  const { latestMaybe: maybe } = call.failures
  const latest = call.failures.latest as AttemptFailure<Result>
  // A definite answer is the answer; else a later harmless failure must not hide one that may have had an effect.
  const isAnswer = latest.returned && latest.verdict.help === 'permanent'
  const chosen = isAnswer ? latest : (maybe ?? latest)
  call.letGo(chosen)
  if (stop === 'permanent') sayUnjudged(call)
  if (chosen.returned) {
    markCallSpent(call, chosen.value)
    return chosen.value
  }
  if (call.guard === undefined && maybe !== undefined) throw unknownOutcome(call, chosen.error, stop)
  throw withHistory(call, chosen.error, stop)
}

/** The reason for which a call is left before its end, with what is known of it. */
export function leaveCall(call: CallState<unknown>, reason: unknown): unknown {
  call.letGo(undefined)
  return withHistory(call, reason, 'aborted')
}

/** The error of a call of which nobody can tell whether it happened. */
export function unknownOutcome(call: CallState<unknown>, cause: unknown, stop: StopReason): unknown {
  const { records, suppressed } = call.failures
  // Whoever takes the cause out, as the HTTP client does after a success, finds the history there as well.
  withHistory(call, cause, stop)
  return withHistory(call, new UnknownOutcomeError(cause, records, suppressed), stop)
}

function withHistory(call: CallState<unknown>, error: unknown, stop: StopReason): unknown {
  rememberAttempts(error, call.failures.records, stop)
  markCallSpent(call, error)
  return error
}

// So that a layer around this one, which may be out of sight, finds it.
function markCallSpent(call: CallState<unknown>, ended: unknown): void {
  const { depth, declared, allowance } = call
  const { name, attempts, layer } = call.settings
  // An intent of its own takes nothing from the one around it.
  if (layer === 'own') allowance.spent = 0
  const key = call.guard?.key
  markSpent(ended, { name, kind: 'policy', attempts, depth, declared, allowance, key, call: call.number })
}

// Said once, since it is how most people begin: `if (!response.ok) throw new Error(…)`.
function sayUnjudged({ failures, settings }: CallState<unknown>): void {
  const { latest, records, verdict } = failures
  if (latest?.returned !== false || verdict.why !== 'unclassified' || records.length >= settings.attempts) return
  if (!isPlainError(latest.error)) return
  warnOnce(
    'ERROR_UNCLASSIFIED',
    `A call of the policy ${settings.name} ended with attempts left, since nothing in its error says what failed. If the error stands for an answer that is not ok, return the Response instead, or throw Object.assign(new Error(…), { status: response.status }). Else give the policy a classify. This is said once.`,
  )
}

// What `new Error(…)` makes, and nothing that a driver or a runtime throws.
function isPlainError(error: unknown): boolean {
  try {
    return Object.getPrototypeOf(error) === Error.prototype
  } catch {
    return false
  }
}
