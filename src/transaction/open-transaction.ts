// The transaction that is open around some code. When its body settles it is gone, also for timers that were started
// inside.

import { RepriseError, type ScopeKind, type ScopeValue, scopeKind } from '../kernel/index.js'

/** What becomes of a transaction in whose body an effect leaves the process. */
export interface EffectRule {
  /** It cannot commit; it is reported; nobody looks. */
  readonly mode: 'poison' | 'report' | 'ignore'
  /** Origins that are left alone. */
  readonly allowOrigins: ReadonlySet<string>
}

/** A transaction that is open around this code. */
export interface OpenTransaction {
  readonly domain: string
  /** What becomes of it when an effect leaves the process. */
  readonly effects: EffectRule
  /** Keeps it from committing: the first error given is the one it fails with. */
  poison(error: unknown): void
}

const open: ScopeKind<OpenTransaction> = scopeKind<OpenTransaction>('reprise.transaction')

/** The transaction in whose body this code runs, or undefined. */
export function openTransaction(): OpenTransaction | undefined {
  return open.current()
}

/** The scope of a transaction's body, to be opened with others. */
export const transactionScope: (transaction: OpenTransaction) => ScopeValue = open.with

/** Runs work inside a transaction. */
export function insideTransaction<Result>(transaction: OpenTransaction, work: () => Result): Result {
  return open.run(transaction, work)
}

/** Refuses with TRANSACTION_NESTED what must not be called from inside an open transaction. */
export function refuseInside(): void {
  if (open.current() === undefined) return
  throw new RepriseError(
    'TRANSACTION_NESTED',
    'A transaction is open around this code; it is repeated as a whole, and what is called here would not be part of it.',
  )
}
