// What became of each attempt, kept beside the error that the caller's own function threw, not inside it.

import type { StopReason } from './decide-repeat.js'
import type { Verdict } from './verdict.js'

/** One failed attempt. */
export interface AttemptRecord {
  /** Which call it was; the first is 1. */
  readonly number: number
  /** What the failure meant. */
  readonly verdict: Verdict
  /** What it threw. */
  readonly error: unknown
  /** When it failed, in ms of the policy's monotonic clock. */
  readonly failedAtMs: number
  /**
   * The wait that followed, in ms; set when it is over. Absent after the last attempt, after an aborted wait, and in
   * hedged calls.
   */
  readonly delayMs?: number
}

/** What is known of a call that failed. */
export interface RetryHistory {
  /** Every failed attempt, in order. */
  readonly attempts: readonly AttemptRecord[]
  /** Why there was no further attempt: `'attempts'` is exhausted, `'permanent'` would not have helped, and so on. */
  readonly stop: StopReason
  /** How to classify the failure, where nobody did; absent where somebody did. */
  readonly hint?: string
}

/** What is said of a call in which a failure was not classified; undefined where all were. */
export function hintOn(attempts: readonly AttemptRecord[]): string | undefined {
  return attempts.some(({ verdict }) => verdict.why === 'unclassified')
    ? 'Nobody classified the failure: give the policy a `classify` that does.'
    : undefined
}

const histories = new WeakMap<object, RetryHistory>()

/**
 * The history of the call that ended in this error; undefined for errors of other origin, and for thrown primitives.
 */
export function historyOf(error: unknown): RetryHistory | undefined {
  return isObject(error) ? histories.get(error) : undefined
}

/** Remembers the history of an error. The last call that threw it wins. */
export function rememberAttempts(error: unknown, attempts: readonly AttemptRecord[], stop: StopReason): void {
  if (!isObject(error)) return
  const hint = hintOn(attempts)
  histories.set(error, { attempts, stop, ...(hint !== undefined && { hint }) })
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}
