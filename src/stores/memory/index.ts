// Memory: a store for tests, and for work that ends with its process. The same transactions, markers and savepoints as
// in a database.

import type { Finding, Row, StoredRecord } from '../../atomicity/index.js'
import { type Operations, operationsOf } from '../../idempotency/index.js'
import { pepperOf, type StoredKey } from '../../identity/index.js'
import { demandKnown, systemClock } from '../../kernel/index.js'
import { type MessageDomain, type Upkeep, upkeepOf, type WindowStore } from '../../messaging/index.js'
import { type Sequences, sequencesOf } from '../../sequence/index.js'
import { budgetFindings, type Domain, domainOf, transactionDefaultNames } from '../../transaction/index.js'
import { MemoryEngine } from './engine.js'
import type { MemoryTransaction } from './handle.js'
import { lanesOf } from './messages/lanes.js'
import { lettersOf } from './messages/letters.js'
import type { MemoryOptions } from './options.js'
import { MemorySequences } from './sequences.js'
import type { TableOptions } from './table.js'

export { memoryClassification } from './classification.js'
export type { MemoryTransaction } from './handle.js'
export { memoryManifest } from './manifest.js'
export type { MemoryOptions } from './options.js'
export type { TableOptions } from './table.js'

/** A domain in memory. */
export interface MemoryDomain
  extends Domain<MemoryTransaction>,
    Operations<MemoryTransaction>,
    Sequences<MemoryTransaction>,
    MessageDomain<MemoryTransaction>,
    Upkeep,
    WindowStore {
  /** Makes a table. */
  table(name: string, options?: TableOptions): void
  /** Copies of the committed rows of a table, for tests. */
  rows(name: string): readonly Row[]
  /** Puts a record there as it is, for tests. */
  putRecord(id: StoredKey, record: StoredRecord): void
  /** Nothing to do: the table of markers is there. */
  migrate(): Promise<void>
  /** Empty: there is nothing to run. */
  migrationSql(): string
  /**
   * What it says of the budget. There are no settings, tables, rights or disks that could be wrong, and the clock is
   * the process's own.
   */
  doctor(): Promise<readonly Finding[]>
  /** Refuses new transactions and calls of operations, and waits for transactions that write. */
  close(): Promise<void>
}

/**
 * A domain whose tables live in this process.
 *
 * @example
 * ```ts
 * import { memory } from 'reprise/stores/memory'
 *
 * const db = memory({ name: 'shop' })
 * db.table('payment', { unique: [['number']] })
 * await db.transact((tx) => tx.insertOnce('payment', { number: 1, amount: 5 }, ['number']))
 * console.log(db.rows('payment').length)
 * ```
 */
export function memory(options: MemoryOptions): MemoryDomain {
  demandKnown(options, ['name', 'queue', 'pepper', 'messages', ...transactionDefaultNames], 'options')
  const { name, queue, pepper: secrets, messages, clock = systemClock, ...defaults } = options
  const pepper = secrets === undefined ? undefined : pepperOf(secrets)
  const engine = new MemoryEngine(name, queue, clock, pepper, messages)
  const domain = domainOf(engine, { ...defaults, clock })
  const base = {
    ...domain,
    ...operationsOf(engine, { ...defaults, clock }),
    seen: engine.seen,
    messages: { ...engine.outbox.reading, ...lanesOf(engine), ...lettersOf(engine) },
    ...sequencesOf(engine, new MemorySequences(engine), domain.transact, engine.records.pepper),
  }
  return {
    ...base,
    ...upkeepOf(base),
    table: (table, settings) => engine.tables.define(table, settings),
    rows: (table) => engine.tables.committed(table),
    putRecord: (id, record) => {
      engine.records.put(id, record)
    },
    migrate: async () => {},
    migrationSql: () => '',
    doctor: async () => budgetFindings(domain.budget, clock.monotonicMs()),
    close: () => engine.close(),
  }
}
