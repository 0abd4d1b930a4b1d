// A verdict on a failed attempt. Two questions, two answers: would another try help, and may it have happened?
//
// Retryable and safe to retry are different things: a time-out is often both worth repeating and unsafe to repeat.

import { RepriseError } from '../kernel/index.js'

/**
 * Would another try help? `transient`: yes, later. `permanent`: no. `discard`: no, and the work itself is to be dropped
 * and counted rather than reported as an error.
 */
export type Help = 'transient' | 'permanent' | 'discard'

/** May the attempt have had its effect? `no`: provably not (never sent, or refused unprocessed). `maybe`: nobody knows. */
export type Happened = 'no' | 'maybe'

/** What the other side said beyond the failure itself. */
export interface VerdictExtra {
  /** The shortest wait the other side asks for, in ms. Never shortened. Default: none asked. */
  readonly retryAfterMs?: number
  /**
   * `retryAfterMs`, or 0 without it, is the wait itself: the backoff adds nothing to it, and starts anew after it, as gRPC
   * proposal A6 has it for pushback. Default false: the backoff may wait longer.
   */
  readonly exactly?: boolean
  /** The other side is overloaded (429, 503): never repeated without a budget. Default false. */
  readonly overload?: boolean
  /** The other side forbids a repeat (pushback). Default false. */
  readonly doNotRepeat?: boolean
  /** A precondition failed (412, a version that moved on): after a `maybe` this may be our own success. Default false. */
  readonly conflict?: boolean
}

/** The two answers about one failed attempt, and the word for why. */
export interface Verdict extends VerdictExtra {
  /** Would another try help? */
  readonly help: Help
  /** May it have happened? */
  readonly happened: Happened
  /** A short stable word such as `http-503` or `ECONNREFUSED`. Never input: it ends up in events and metrics. */
  readonly why: string
}

/** A failure that another try may cure. */
export function transient(why: string, happened: Happened, extra?: VerdictExtra): Verdict {
  return { help: 'transient', happened, why, ...extra }
}

/** A failure that no other try will cure. `happened` is `maybe` unless something proves otherwise. */
export function permanent(why: string, happened: Happened = 'maybe'): Verdict {
  return { help: 'permanent', happened, why }
}

/** Work to be dropped: counted, not thrown, not repeated. */
export function discard(why: string): Verdict {
  return { help: 'discard', happened: 'no', why }
}

// A registered symbol is the same in every copy of the package.
const returned: unique symbol = Symbol.for('reprise.verdict') as never

/** A verdict handed back by a body in place of a throw, with the value that belongs to it, if any. */
export interface ReturnedVerdict<V = undefined> {
  /** Marks it, in every copy of the package. */
  readonly [returned]: true
  /** What the failure meant. */
  readonly verdict: Verdict
  /** What the body had in hand, such as the response it judged. */
  readonly value: V | undefined
}

/** Whether the value answers both questions. */
export function isVerdict(value: unknown): value is Verdict {
  const { help, happened } = Object(value) as Partial<Verdict>
  const isAnswered = help === 'transient' || help === 'permanent' || help === 'discard'
  return isAnswered && (happened === 'no' || happened === 'maybe')
}

/**
 * Lets a body return its verdict as a value: `return failedBecause(transient('busy', 'no'), response)`. Refuses what is no
 * verdict with `ARGUMENT_INVALID`.
 */
export function failedBecause<V = undefined>(verdict: Verdict, value?: V): ReturnedVerdict<V> {
  if (!isVerdict(verdict) || typeof verdict.why !== 'string') {
    throw new RepriseError('ARGUMENT_INVALID', 'Not a verdict: help, happened and why are needed.')
  }
  return { [returned]: true, verdict, value }
}

/** Whether a body's result is a verdict made by {@link failedBecause}, also by another copy of the package. */
export function isReturnedVerdict(result: unknown): result is ReturnedVerdict<unknown> {
  return typeof result === 'object' && result !== null && (result as ReturnedVerdict<unknown>)[returned] === true
}
