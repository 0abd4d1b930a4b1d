// What an atomic operation is told beyond what all operations are told: its body, and how its transactions run.

import type { Manifest } from '../../atomicity/index.js'
import type { TransactOptions } from '../../transaction/index.js'
import { invalid, optionMs } from '../define/settings.js'
import type { OperationOptions } from '../definition.js'
import type { Failure } from '../failure.js'

/** How the transactions of an operation run. Defaults: the domain's. */
export type AtomicTransactionOptions = Pick<
  TransactOptions,
  'isolation' | 'connectionWait' | 'bodyLimit' | 'lockWait' | 'attempts' | 'backoff' | 'budget'
>

/** What a body returns that is a result. */
export type ResultOf<Returned> = Exclude<Awaited<Returned>, Failure>

/** The codes of the failures that a body returns. */
export type FailureCodeOf<Returned> = Extract<Awaited<Returned>, Failure>['code']

/** The definition of an atomic operation. */
export interface AtomicOptions<Handle, Input, Returned, Code extends string>
  extends OperationOptions<Input, NoInfer<ResultOf<Returned>>, Code>,
    AtomicTransactionOptions {
  /**
   * Does the work, in a transaction that also holds the claim and the outcome: all of it commits, or nothing. It may run several times, each in a fresh transaction
   * and with its own copy of the input (plain objects and arrays; other objects are the caller's own). What it returns is stored; `fail(…)` is
   * stored as a final failure, with what was written. What it throws rolls everything back, and the key is free again, unless it is a final failure.
   */
  readonly run: (tx: Handle, input: Input) => Returned
}

/** Makes a definition an error whose body returns a failure that is not registered. */
export type Registered<Returned, Code extends string> = [FailureCodeOf<Returned>] extends [Code]
  ? unknown
  : { readonly failures: readonly FailureCodeOf<Returned>[] }

/** The names of the options that only atomic operations have. */
export const atomicOptionNames: readonly string[] = [
  'isolation',
  'connectionWait',
  'bodyLimit',
  'lockWait',
  'attempts',
  'backoff',
  'budget',
]

/** The options of the transactions. Refuses with OPERATION_INVALID or DURATION_INVALID what the first call would be refused for. */
export function transactionOptions(options: AtomicTransactionOptions, manifest: Manifest): AtomicTransactionOptions {
  const { isolation, connectionWait, bodyLimit, lockWait, attempts, backoff, budget } = options
  if (connectionWait !== undefined) optionMs('connectionWait', connectionWait, 0)
  if (bodyLimit !== undefined) optionMs('bodyLimit', bodyLimit, 1)
  if (lockWait !== undefined) optionMs('lockWait', lockWait, 1)
  if (isolation !== undefined && !manifest.isolation.includes(isolation)) {
    throw invalid('isolation', 'The domain’s manifest does not offer it.')
  }
  if (attempts !== undefined && !(Number.isInteger(attempts) && attempts >= 1 && attempts <= 50)) {
    throw invalid('attempts', 'It is a whole number from 1 to 50.')
  }
  if (backoff !== undefined && typeof backoff?.delayMs !== 'function') {
    throw invalid('backoff', 'It is made by fullJitter(…) or another backoff.')
  }
  const { succeeded, failed, tryRepeat } = Object(budget) as Partial<NonNullable<typeof budget>>
  const counts = [succeeded, failed, tryRepeat].every((method) => typeof method === 'function')
  if (budget !== undefined && !counts) throw invalid('budget', 'It is made by tokenBudget(…) or ratioBudget(…).')
  return {
    ...(isolation === undefined ? {} : { isolation }),
    ...(connectionWait === undefined ? {} : { connectionWait }),
    ...(bodyLimit === undefined ? {} : { bodyLimit }),
    ...(lockWait === undefined ? {} : { lockWait }),
    ...(attempts === undefined ? {} : { attempts }),
    ...(backoff === undefined ? {} : { backoff }),
    ...(budget === undefined ? {} : { budget }),
  }
}
