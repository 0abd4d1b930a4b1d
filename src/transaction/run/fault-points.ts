// The places in the runner at which a test can stop, fail or kill the process.

import { faultPoint } from '../../kernel/index.js'

/** Every fault point of the transaction runner, in the order in which a transaction with a key reaches them. */
export const transactionFaultPoints = [
  'transaction.acquired',
  'transaction.begun',
  'transaction.claimed',
  'transaction.body-done',
  'transaction.recorded',
  'transaction.before-commit',
  'transaction.committed',
  'transaction.resolving',
  'transaction.resolved',
] as const

/** The name of a fault point of the runner. */
export type TransactionFaultPoint = (typeof transactionFaultPoints)[number]

/** Reaches a fault point; undefined, unless a test armed them. */
export const reach: (point: TransactionFaultPoint) => PromiseLike<void> | undefined = faultPoint
