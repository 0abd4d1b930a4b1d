// What happened on the way: one record for each attempt that failed, found through the error that came of it.

import type { ErrorCodes, Phase, Ruling } from '../atomicity/index.js'

/** An attempt at a transaction that did not commit, or not for all we knew. */
export interface FailedTransaction extends ErrorCodes {
  /** Which attempt; the first is 1. */
  readonly attempt: number
  readonly phase: Phase
  readonly ruling: Ruling
  readonly error: unknown
  /** Errors that came afterwards, while cleaning up. */
  readonly suppressed: readonly unknown[]
  /** What resolution found out, where the outcome was not known. */
  readonly resolved?: 'committed' | 'aborted' | 'unknown'
  /** The wait before the next attempt, in ms; absent: there was none. */
  readonly delayMs?: number
}

/** Why no further transaction was tried. */
export type GivenUp = 'permanent' | 'attempts' | 'allowance' | 'budget' | 'deadline' | 'signal' | 'unknown'

/** How a call failed. */
export interface TransactionHistory {
  /** The attempts, in order. */
  readonly attempts: readonly FailedTransaction[]
  readonly because: GivenUp
}

const histories = new WeakMap<object, TransactionHistory>()

/**
 * What happened before a call of `transact` failed with this error; undefined for other errors, and for thrown
 * primitives.
 */
export function transactionHistoryOf(error: unknown): TransactionHistory | undefined {
  return isObject(error) ? histories.get(error) : undefined
}

/** Remembers the history of a failed call. */
export function remember(error: unknown, history: TransactionHistory): void {
  if (isObject(error)) histories.set(error, Object.freeze(history))
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}
