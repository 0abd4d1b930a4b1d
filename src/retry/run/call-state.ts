// What one call of a policy knows: its policy with nothing left to default, and what went wrong so far. Types alone, so
// that the files that make attempts, look at the world and end the call share them.

import type { Chance, Clock, RepriseError } from '../../kernel/index.js'
import type { ConcurrencyLimit } from '../concurrency/slots.js'
import type { PolicyRules, RepeatDecision } from '../decide-repeat.js'
import type { ForeignLayer } from '../foreign-layers.js'
import type { Guard } from '../guard.js'
import type { AttemptRecord } from '../history.js'
import type { Attempt, Body, Hedging } from '../options.js'
import type { Breaker } from '../target/breaker.js'
import type { Classifier, ReturnedVerdict, Verdict } from '../verdict.js'
import type { Allowance, Layer, OpenLayer } from './layers.js'
import type { AttemptFailure } from './returned.js'
import type { SentKeys } from './sent-keys.js'
import type { LimitedCall, Timeouts, Wait } from './timeouts.js'

/** A policy as its calls see it: options resolved, nothing left to default. */
export interface PolicySettings extends Layer {
  readonly rules: PolicyRules
  /** Whether it was declared that there are no layers inside. */
  readonly innermost: boolean
  /** Layers that are not ours, as they were declared. */
  readonly foreignLayers: readonly ForeignLayer[] | undefined
  readonly breaker: Breaker | undefined
  readonly limit: ConcurrencyLimit | undefined
  readonly deadlineMs: number | undefined
  readonly attemptTimeoutMs: number | undefined
  readonly hedge: Hedging | undefined
  readonly classify: Classifier
  readonly clock: Clock
  readonly random: Chance
  readonly timeouts: Timeouts
  /** How many times a verdict said to discard. */
  discards: number
}

/** What went wrong in a call so far, and what layers inside it share. Most calls come to their end without it. */
export interface Failures<Result> {
  readonly records: AttemptRecord[]
  /** What the latest failure meant. */
  verdict: Verdict
  latest?: AttemptFailure<Result> | undefined
  /** The latest that may have had an effect. */
  latestMaybe?: AttemptFailure<Result> | undefined
  /** What was thrown while somebody looked at the world. */
  suppressed: readonly unknown[]
  /** Whether the budget has been told of this call: it counts once, however many of its attempts report. */
  isCounted: boolean
  /** The latest wait that was a step of the backoff, in ms. */
  delayMs: number
  /** The failures before the latest pushback, after which the backoff starts anew. */
  before: number
  deadlineError?: RepriseError | undefined
  /** Its own, where no layer around it has one. */
  allowance?: Allowance | undefined
  /** The keys that were sent from inside. */
  keys?: SentKeys | undefined
}

/** A call for what limits its attempts, looks at the world for it, and ends it. */
export interface CallState<Result> extends LimitedCall, OpenLayer {
  readonly settings: PolicySettings
  readonly guard: Guard | undefined
  readonly body: Body<Result>
  /** Which call of a policy it is, counted over the process. */
  readonly number: number
  readonly failures: Failures<Result>
  /** Calls the body for an attempt, as a layer to what it calls. */
  callBody(attempt: Attempt): Promise<Result | ReturnedVerdict<Result>>
  /** Lets go of the answers that failed attempts returned, but for one that is kept. */
  letGo(kept: AttemptFailure<Result> | undefined): void
}

/** An attempt that somebody waits for. */
export interface LimitedAttempt extends Attempt {
  /** Says by what the wait for it is limited. */
  limit(wait: Wait): void
  /** Tells the body that its attempt is over, and lets go of the limits. */
  abort(reason: unknown): void
}

/** A call that ends with a value although an attempt failed. */
export interface EndValue<Result> {
  readonly value: Result
}

/** A guard that can tell our own earlier success from a conflict with somebody else; made by `conditional`. */
export interface ConflictGuard<Result> {
  /**
   * Looks whose success it was that made the precondition of a call fail. What it returns then ends the call. Absent
   * where the guard knows of no precondition.
   */
  readonly afterConflict?: (call: CallState<Result>) => Promise<() => RepeatDecision | EndValue<Result>>
}
