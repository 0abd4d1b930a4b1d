// A failure that is final: it is stored, and every repeat gets the same one, by its code and data.

import { RepriseError } from '../kernel/index.js'

const brand: unique symbol = Symbol.for('reprise.failure') as never

/** A final failure, as data. */
export interface Failure<Code extends string = string, Data = unknown> {
  /** The mark by which it is told from a result. */
  readonly [brand]: true
  /** One of the codes that the operation registers. */
  readonly code: Code
  /** What belongs to it; anything JSON can hold. Undefined: nothing. */
  readonly data: Data
}

/**
 * A final failure. Returned from a body, it is stored together with what the body wrote. Thrown (as it is, or inside {@link OperationFailedError}), or made of a thrown error by the
 * definition's `terminal`, what the body wrote is rolled back and the failure is stored.
 */
export function fail<const Code extends string>(code: Code): Failure<Code, undefined>
export function fail<const Code extends string, Data>(code: Code, data: Data): Failure<Code, Data>
export function fail(code: string, data?: unknown): Failure {
  if (typeof code !== 'string' || !/^[A-Za-z][A-Za-z0-9_.-]{0,63}$/.test(code)) {
    throw new RepriseError(
      'ARGUMENT_INVALID',
      'The code of a failure has 1 to 64 letters, digits, dots, dashes or underscores.',
    )
  }
  return Object.freeze({ [brand]: true as const, code, data })
}

/** Whether a value is a final failure, also one made by another copy of the package. */
export function isFailure(value: unknown): value is Failure {
  return typeof value === 'object' && value !== null && (value as { [brand]?: unknown })[brand] === true
}

/** The operation failed for good. The first caller and every repeat get it with the same code and data. */
export class OperationFailedError<Code extends string = string, Data = unknown> extends RepriseError {
  override readonly name: string = 'OperationFailedError'
  /** The failure: its registered code, and its data. */
  readonly failure: Failure<Code, Data>
  /** Whether it was handed out from memory. */
  readonly replayed: boolean

  constructor(failure: Failure<Code, Data>, options: { readonly replayed?: boolean; readonly cause?: unknown } = {}) {
    super(
      'OPERATION_FAILED',
      'The operation failed for good; its failure says how.',
      'cause' in options ? { cause: options.cause } : {},
    )
    this.failure = failure
    this.replayed = options.replayed ?? false
  }
}
