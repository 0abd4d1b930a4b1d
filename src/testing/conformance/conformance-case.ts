// Conformance cases as data: a stable id, a title that says MUST or SHOULD, and what a store must be able to do for it to apply.

import type { Manifest, Rows, StoredRecord, TransactionControls } from '../../atomicity/index.js'
import type { Operations } from '../../idempotency/index.js'
import type { StoredKey } from '../../identity/index.js'
import type { Clock } from '../../kernel/index.js'
import type { Domain } from '../../transaction/index.js'

/** What the body of a conformance case works with; every store's handle fits. */
export interface ConformanceHandle extends TransactionControls, Rows {
  /** Scopes errors: what failed inside is undone, and the transaction goes on. */
  savepoint<Result>(work: () => Promise<Result>): Promise<Result>
}

/** A domain object under test: transactions, operations, and the records beside them. */
export interface ConformanceDomain extends Domain<ConformanceHandle>, Operations<ConformanceHandle> {}

/**
 * One store under test, fresh for each case. It holds two tables that the case may use through the handle, and read through the back door:
 * `effects` (`intent` text, no unique index) and `items` (`id` text primary key, `state` text, `last_command` text, `version` integer, `token` text,
 * `amount` integer).
 */
export interface StoreWorld {
  /** The domain under test. Its pool holds at least 2 and at most `connections` connections. */
  readonly db: ConformanceDomain
  /** How many transactions that write can be open at once. */
  readonly connections: number
  /**
   * Another domain object on the same data, with connections of its own, and a clock of its own where one is given: another process. A store that only this process can open, as its
   * manifest says by `reach`, has no other: it hands out `db`.
   */
  second(defaults?: { readonly clock?: Clock }): Promise<ConformanceDomain>
  /** Writes one effect of an intent, with an ordinary insert, through the handle. */
  effect(tx: ConformanceHandle, intent: string): Promise<void>
  /** Does something that the engine answers with an error. */
  offend(tx: ConformanceHandle): Promise<void>
  /** How many effects of an intent are there, read past the adapter. */
  effectsOf(intent: string): Promise<number>
  /** One item, read past the adapter. */
  item(id: string): Promise<Readonly<Record<string, unknown>> | undefined>
  /** Puts a record there as it is, whatever its format and times are, past the adapter. */
  putRecord(id: StoredKey, record: StoredRecord): Promise<void>
  /** Puts an item there, past the adapter. */
  putItem(item: ConformanceItem): Promise<void>
}

/** A row of the table `items`. */
export interface ConformanceItem {
  /** Primary key. */
  readonly id: string
  /** A state, for transitions. */
  readonly state?: string
  /** A number to count with. Default 0. */
  readonly amount?: number
}

/** One case: what a store must do. It imports no test runner, and throws when the store does otherwise. */
export interface ConformanceCase {
  /** Stable, such as `store.transaction.03`. */
  readonly id: string
  /** Begins with MUST or SHOULD. */
  readonly title: string
  /** Undefined: it applies. Otherwise the fact of the manifest because of which the store refuses it; `refusal` is run then. */
  readonly deniedBy?: (manifest: Manifest) => string | undefined
  /** Checks the behaviour. */
  run(world: StoreWorld): Promise<void>
  /** Checks that a store whose manifest denies the case refuses it in words. */
  refusal?(world: StoreWorld): Promise<void>
}

/** What became of a case. */
export type CaseOutcome = 'passed' | `refused: ${string}`

/**
 * Runs one case on a store: the case itself, or its refusal where the manifest denies it. Throws when the store fails it.
 *
 * @example
 * ```ts
 * import { recordCases, runConformanceCase, type StoreWorld, transactionCases } from 'reprise/testing'
 *
 * declare function freshWorld(): Promise<StoreWorld> // an empty database of your store
 * for (const subject of [...transactionCases, ...recordCases]) {
 *   console.log(subject.id, await runConformanceCase(subject, await freshWorld()))
 * }
 * ```
 */
export async function runConformanceCase(subject: ConformanceCase, world: StoreWorld): Promise<CaseOutcome> {
  const why = subject.deniedBy?.(world.db.manifest)
  if (why === undefined) {
    await subject.run(world)
    return 'passed'
  }
  if (subject.refusal === undefined) throw new Error(`${subject.id} can be denied and has no refusal to run`)
  await subject.refusal(world)
  return `refused: ${why}`
}
