// What the failure of an attempt means: the engine's table decides, by the phase and by the first error that the engine
// raised. The marks at the end say what went wrong until then; callers see the errors that the marks stand for.

import { type Engine, type Phase, type Ruling, ruleBy, type TransactionControls } from '../../atomicity/index.js'
import { isRepriseError, RepriseError } from '../../kernel/index.js'
import { runnerClassification } from '../runner-classification.js'
import { deadlinePassed, workOf } from './limits.js'
import type { CallSettings } from './settings.js'

/** How an attempt failed. */
export interface AttemptFailure {
  readonly phase: Phase
  /** The first thing that poisoned its handle, or undefined. */
  readonly poisoned: { readonly error: unknown } | undefined
  /** Whether its key was known to be its own. */
  readonly claimed: boolean
  /** What was thrown, with the marks of the runner. */
  readonly thrown: unknown
  /** What is behind the marks. */
  readonly error: unknown
}

/** What a failure means, and the error that is shown if it is the end. */
export interface FailureRuling {
  readonly ruling: Ruling
  readonly shown: unknown
  /** The error of the engine or of its driver that it goes by; undefined: there was none. */
  readonly by: unknown
}

/** Rules on a failure. */
export function ruleOn<Handle extends TransactionControls>(
  engine: Engine<Handle>,
  settings: CallSettings,
  failure: AttemptFailure,
): FailureRuling {
  const ruled = ruleByEngine(engine, settings, failure)
  const { keyed, reserveMs } = settings
  // The session's own limit, which is that of the work, may be faster than our timer on a busy machine.
  if (ruled.ruling.expired && ruled.ruling.outcome === 'aborted') {
    return { ...ruled, shown: deadlinePassed(workOf(settings, failure.claimed), reserveMs, ruled.shown) }
  }
  if (keyed?.blocked === undefined || failure.claimed || !ruled.ruling.blocked) return ruled
  // Who waits for a key may have enough of it before the attempts are used up.
  const ended = keyed.blocked(ruled.shown)
  return ended === undefined
    ? ruled
    : { ...ruled, ruling: { ...ruled.ruling, help: 'permanent' }, shown: ended.refusal }
}

// The first error of the engine decides, also where the body swallowed it or threw another one in its place.
function ruleByEngine<Handle extends TransactionControls>(
  engine: Engine<Handle>,
  settings: CallSettings,
  { phase, poisoned, thrown, error }: AttemptFailure,
): FailureRuling {
  if (phase === 'committing') return ruleOnCommit(engine, settings, error)
  if (thrown instanceof Swallowed) {
    return { ruling: engine.classify(thrown.first, phase), shown: thrown.toError(), by: thrown.first }
  }
  if (poisoned === undefined && thrown instanceof BodyFailed) {
    return { ruling: bodyRuling(settings, error), shown: error, by: undefined }
  }
  const by = poisoned === undefined ? error : poisoned.error
  return { ruling: engine.classify(by, phase), shown: error, by }
}

// What only read has nothing that could have happened, so there is nothing to find out either.
function ruleOnCommit<Handle extends TransactionControls>(
  engine: Engine<Handle>,
  { readOnly }: CallSettings,
  error: unknown,
): FailureRuling {
  const timedOut = error instanceof CommitTimedOut
  const ruling = timedOut ? ownRuling('commit-timeout', 'committing') : engine.classify(error, 'committing')
  const harmless = readOnly && ruling.outcome === 'unknown'
  return {
    ruling: harmless ? { ...ownRuling('read-only-commit', 'committing'), sign: ruling.sign } : ruling,
    shown: timedOut ? error.toError() : error,
    by: error,
  }
}

// Without an error of the engine, the body's own decides nothing: it is the caller's, and the transaction is rolled
// back. One that ran out of time may have a statement under way, so its connection cannot be used again.
function bodyRuling({ signal }: CallSettings, error: unknown): Ruling {
  const ours = error instanceof RepriseError && (error.code === 'BODY_TIME_LIMIT' || error.code === 'DEADLINE_EXCEEDED')
  const unfinished = ours || signal?.aborted === true
  return ownRuling(unfinished ? 'body-cut-off' : 'body-threw', 'body')
}

function ownRuling(sign: string, phase: Phase): Ruling {
  return ruleBy(runnerClassification, [sign], phase)
}

/** Marks what the caller's body threw, so that it is not mistaken for an error of a step of ours. */
export class BodyFailed extends Error {
  readonly thrown: unknown

  constructor(thrown: unknown) {
    super('The body failed.')
    this.thrown = thrown
  }
}

/** COMMIT was not answered in time. */
export class CommitTimedOut extends Error {
  readonly limitMs: number

  constructor(limitMs: number) {
    super('COMMIT was not answered in time.')
    this.limitMs = limitMs
  }

  toError(): RepriseError {
    return new RepriseError('COMMIT_TIMEOUT', `COMMIT was not answered within ${Math.ceil(this.limitMs)} ms.`, {
      details: { limitMs: this.limitMs },
    })
  }
}

/** The body went on after an error that ended its transaction. */
export class Swallowed extends Error {
  readonly first: unknown

  constructor(first: unknown) {
    super('The body swallowed an error.')
    this.first = first
  }

  toError(): RepriseError {
    // Nothing was swallowed then: an effect that was noticed throws nothing.
    if (isRepriseError(this.first, 'EFFECT_IN_TRANSACTION')) return this.first
    const message = 'The body went on after an error that ended its transaction; nothing was committed.'
    return new RepriseError('TRANSACTION_ABORTED', message, { cause: this.first })
  }
}
