// Transactions: whole ones are repeated, in phases that are known, and a commit whose answer is lost is resolved, never
// guessed.

export { budgetFindings, withBudget } from './budget.js'
export { transactionClassifier } from './classifier.js'
export { type Domain, domainOf, type TransactionOutcome } from './domain.js'
export { allowEffect, type Effect, effect, effectGuard, refuseUnseen } from './effect-guard/effect.js'
export {
  type FailedTransaction,
  type GivenUp,
  type TransactionHistory,
  transactionHistoryOf,
} from './history.js'
export { type EffectRule, type OpenTransaction, openTransaction, refuseInside } from './open-transaction.js'
export type { OptimisticUpdate, Updated } from './optimistic.js'
export {
  type AnyTransactOptions,
  type KeyedTransactOptions,
  type OptimisticOptions,
  type PlainTransactOptions,
  type TransactionDefaults,
  type TransactionKey,
  type TransactionOptions,
  type TransactOptions,
  transactionDefaultNames,
  transactionOptionNames,
} from './options.js'
export { storeFull, storeUnreachable } from './outage.js'
export type { TransactionBody } from './run/attempt.js'
export { type TransactionFaultPoint, transactionFaultPoints } from './run/fault-points.js'
export type { KeyedCall, ReplayOrTakeOver } from './run/keyed.js'
export { beginUnanswered } from './run/limits.js'
export { type KeyedTransactions, keyedTransactions } from './run/run.js'
export { demandMemory, type RefuseOption, readTransactionOptions, type TransactionSettings } from './run/settings.js'
export { runnerClassification } from './runner-classification.js'
export { UnknownCommitError } from './unknown-commit.js'
