// What the cases about messages need of a store beside what other cases do: direct access to the tables of messages.

import type { StoreWorld } from '../conformance-case.js'

/** The tables of messages that cases look into, by what follows the prefix. */
export type OutboxTable = 'head' | 'message' | 'reader' | 'lane'

/** A row of such a table: texts, numbers and nulls, by the names of the columns. */
export type OutboxRow = Readonly<Record<string, string | number | null>>

/** One store under test whose transactions emit messages, fresh for each case. */
export interface OutboxWorld extends StoreWorld {
  /** All rows of a table, read directly from the database; whole numbers are numbers. */
  outboxRows(table: OutboxTable): Promise<readonly OutboxRow[]>
  /** Writes a row directly into the database; columns that are not given have their defaults. */
  putOutboxRow(table: OutboxTable, row: OutboxRow): Promise<void>
  /** Removes all rows of a table directly. */
  emptyOutboxRows(table: OutboxTable): Promise<void>
}
