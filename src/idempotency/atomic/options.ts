// Options that only atomic operations have: the body, and how its transactions run.

import type { TransactionOptions } from '../../transaction/index.js'
import type { OperationOptions } from '../definition.js'
import type { Failure } from '../outcome.js'

/** What a body returns that is a result. */
export type ResultOf<Returned> = Exclude<Awaited<Returned>, Failure>

/** The codes of the failures that a body returns. */
export type FailureCodeOf<Returned> = Extract<Awaited<Returned>, Failure>['code']

/** The definition of an atomic operation. */
export interface AtomicOptions<Handle, Input, Returned, Code extends string>
  extends OperationOptions<Input, NoInfer<ResultOf<Returned>>, Code>,
    TransactionOptions {
  /**
   * Does the work, in a transaction that also holds the claim and the outcome: all of it commits, or nothing. It may
   * run several times, each in a fresh transaction and with its own copy of the input (plain objects and arrays; other
   * objects are the caller's own). What it returns is stored; `fail(…)` is stored as a final failure, with what was
   * written. What it throws rolls everything back, and the key is free again, unless it is a final failure.
   */
  readonly run: (tx: Handle, input: Input) => Returned
}

/** Makes a definition an error whose body returns a failure that is not registered. */
export type Registered<Returned, Code extends string> = [FailureCodeOf<Returned>] extends [Code]
  ? unknown
  : { readonly failures: readonly FailureCodeOf<Returned>[] }
