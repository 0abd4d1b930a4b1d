// Conformance cases as data: a stable id, a title that says MUST or SHOULD, and the capabilities that a store needs for
// it.

import type {
  Emits,
  OutboxReading,
  RecordStore,
  Rows,
  StoredRecord,
  TransactionControls,
} from '../../atomicity/index.js'
import type { Operations } from '../../idempotency/index.js'
import type { StoredKey } from '../../identity/index.js'
import type { Clock } from '../../kernel/index.js'
import type { Sequences } from '../../sequence/index.js'
import type { Domain } from '../../transaction/index.js'

/** The transaction handle of a conformance case; the handle of every store fits. */
export interface ConformanceHandle extends TransactionControls, Rows, Emits {
  /** Undoes the work inside if it fails; the transaction goes on. */
  savepoint<Result>(work: () => Promise<Result>): Promise<Result>
}

/** The domain under test: transactions, operations and their records, sequences, and messages. */
export interface ConformanceDomain
  extends Domain<ConformanceHandle>,
    Operations<ConformanceHandle>,
    Sequences<ConformanceHandle> {
  /** A store whose manifest does not deny lanes has them here too. */
  readonly messages: OutboxReading
}

/** A store of records under test, and the upkeep of leased operations on it. Every domain is one. */
export interface ConformanceStore
  extends RecordStore,
    Pick<Operations<never>, 'lookup' | 'settle' | 'sweep' | 'purge'> {}

/** One store of records under test, fresh for each case. It needs no transactions. */
export interface RecordWorld {
  readonly db: ConformanceStore
  /**
   * Another store object on the same data, with its own connections and, if given, its own clock, like another process.
   * A store that only one process can open, according to `reach` of its manifest, returns `db`.
   */
  second(defaults?: { readonly clock?: Clock }): Promise<ConformanceStore>
  /** Writes a record as it is, whatever its format and times, directly into the database. */
  putRecord(id: StoredKey, record: StoredRecord): Promise<void>
}

/**
 * One store under test, fresh for each case. It has three tables that a case may use through the handle and read
 * directly: `effects` (`intent` text, no unique index), `items` (`id` text primary key, `state` text, `last_command`
 * text, `version` integer, `token` text, `amount` integer) and `commands` (`command` text primary key, `fingerprint`
 * text).
 */
export interface StoreWorld extends RecordWorld {
  /** The domain under test. Its pool holds at least 2 and at most `connections` connections. */
  readonly db: ConformanceDomain
  /** How many transactions that write can be open at once. */
  readonly connections: number
  second(defaults?: { readonly clock?: Clock }): Promise<ConformanceDomain>
  /** Writes one effect of an intent through the handle, with an ordinary insert. */
  effect(tx: ConformanceHandle, intent: string): Promise<void>
  /** Runs a statement that the engine rejects with an error. */
  offend(tx: ConformanceHandle): Promise<void>
  /** How many effects of an intent there are, read directly from the database. */
  effectsOf(intent: string): Promise<number>
  /** One item, read directly from the database. */
  item(id: string): Promise<Readonly<Record<string, unknown>> | undefined>
  /** Writes an item directly into the database. */
  putItem(item: ConformanceItem): Promise<void>
}

/** A row of the table `items`. */
export interface ConformanceItem {
  readonly id: string
  readonly state?: string
  /** Default 0. */
  readonly amount?: number
}

/** One case: something that a store must do. It needs no test runner, and throws when the store fails it. */
export interface ConformanceCase<World extends RecordWorld = StoreWorld> {
  /** Stable, such as `store.transaction.03`. */
  readonly id: string
  /** Begins with MUST or SHOULD. */
  readonly title: string
  /** Why a store with this manifest refuses the case; `refusal` is run then. Undefined: the case applies. */
  readonly deniedBy?: (manifest: World['db']['manifest']) => string | undefined
  run(world: World): Promise<void>
  /** Checks that a store whose manifest denies the case refuses it with an error. */
  refusal?(world: World): Promise<void>
}

/** A case for which records are enough, without transactions. */
export type RecordCase = ConformanceCase<RecordWorld>

/** The result of a case. */
export type CaseOutcome = 'passed' | `refused: ${string}`

/**
 * Runs one case on a store: the case itself, or its refusal where the manifest denies it. Throws when the store fails
 * it.
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
export async function runConformanceCase<World extends RecordWorld>(
  subject: ConformanceCase<World>,
  world: World,
): Promise<CaseOutcome> {
  const why = subject.deniedBy?.(world.db.manifest)
  if (why === undefined) {
    await subject.run(world)
    return 'passed'
  }
  if (subject.refusal === undefined) throw new Error(`${subject.id} can be denied and has no refusal to run`)
  await subject.refusal(world)
  return `refused: ${why}`
}
