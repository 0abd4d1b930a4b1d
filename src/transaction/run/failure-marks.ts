// How an attempt marks what went wrong, until it is ruled upon; callers see the errors that these stand for.

import { isRepriseError, RepriseError } from '../../kernel/index.js'

/** Marks what the caller's body threw, so that it is not mistaken for an error of a step of ours. */
export class BodyFailed extends Error {
  /** What it threw. */
  readonly thrown: unknown

  constructor(thrown: unknown) {
    super('The body failed.')
    this.thrown = thrown
  }
}

/** COMMIT was not answered in time. */
export class CommitTimedOut extends Error {
  /** Within this time, in ms. */
  readonly limitMs: number

  constructor(limitMs: number) {
    super('COMMIT was not answered in time.')
    this.limitMs = limitMs
  }

  /** What the caller is to see. */
  toError(): RepriseError {
    return new RepriseError('COMMIT_TIMEOUT', `COMMIT was not answered within ${Math.ceil(this.limitMs)} ms.`, {
      details: { limitMs: this.limitMs },
    })
  }
}

/** The body went on after an error that ended its transaction. */
export class Swallowed extends Error {
  /** That error. */
  readonly first: unknown

  constructor(first: unknown) {
    super('The body swallowed an error.')
    this.first = first
  }

  /** What the caller is to see. */
  toError(): RepriseError {
    // Nothing was swallowed then: an effect that was noticed throws nothing.
    if (isRepriseError(this.first, 'EFFECT_IN_TRANSACTION')) return this.first
    const message = 'The body went on after an error that ended its transaction; nothing was committed.'
    return new RepriseError('TRANSACTION_ABORTED', message, { cause: this.first })
  }
}
