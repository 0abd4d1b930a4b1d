// The honest answer when an operation may have happened and nothing makes a repeat safe.

import { RepriseError } from '../kernel/index.js'
import { type AttemptRecord, hintOn } from './history.js'

/**
 * The operation may or may not have happened. It is neither a success nor a failure, and was not repeated, because
 * nothing makes a repeat harmless. Its `cause` is what the last attempt that may have had an effect threw.
 *
 * To get an answer: look at the world (pass `resolve` to the call), or give the call a guard such as `keyed(key)`.
 */
export class UnknownOutcomeError extends RepriseError {
  override readonly name: string = 'UnknownOutcomeError'
  /** Every failed attempt, in order. */
  readonly attempts: readonly AttemptRecord[]

  constructor(cause: unknown, attempts: readonly AttemptRecord[], suppressed: readonly unknown[] = []) {
    const message = 'The operation may have happened, and nothing makes a repeat safe.'
    const hint = hintOn(attempts)
    super('UNKNOWN_OUTCOME', hint === undefined ? message : `${message} ${hint}`, {
      cause,
      suppressed,
      details: { attempts: attempts.length },
    })
    this.attempts = Object.freeze([...attempts])
  }
}
