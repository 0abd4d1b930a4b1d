// Writes that can be repeated: what every store offers to a body, over rows of the user's own tables.

import type { Duration } from '../../kernel/index.js'

/** What a column can hold. */
export type ColumnValue = string | number | bigint | boolean | null | Uint8Array

/** A row, by column names. */
export type Row = Readonly<Record<string, unknown>>

/**
 * A table: its name, with its schema before a dot where there is one, or the two apart, for a name that has a dot of
 * its own.
 */
export type TableName =
  | string
  | {
      /** The schema. Default: where the engine looks for a table without one. */
      readonly schema?: string
      /** The table's own name, taken as it is. */
      readonly table: string
    }

/** Columns and the values they must have. */
export type Match = Readonly<Record<string, ColumnValue>>

/** What became of an insert that may be a repeat. */
export interface InsertedOnce {
  /**
   * True: this call inserted the row. False: a row with the same natural key was there; compare it with what was meant.
   */
  readonly inserted: boolean
  /** The row as it is now. */
  readonly row: Row
}

/** A change of state that is only allowed from some states. */
export interface Transition {
  /** The row, by a unique key. */
  readonly where: Match
  /** The column of the state. Default `'state'`. */
  readonly column?: string
  /** The states it may start from. */
  readonly from: string | readonly string[]
  readonly to: string
  /**
   * The id of this command, stored in `commandColumn`, so that its repeat can be told from another command with the
   * same aim. A whole number counts as its text: the column decides what is stored, and the store compares as the
   * column does.
   */
  readonly command: string | number | bigint
  /**
   * The column that holds the id of the last command: text, or a type that its text can be stored in, such as uuid or
   * bigint. Default `'last_command'`, and with `commands` no column.
   */
  readonly commandColumn?: string
  /**
   * A table that remembers every command for good, with the columns `command` (text, primary key) and `fingerprint`
   * (text). Then a repeat is told also after other commands have moved the row on. Default: none, only the last command
   * is remembered.
   */
  readonly commands?: TableName
  /** A column of whole numbers that grows by one with each transition. Default: none. */
  readonly versionColumn?: string
  /** Further columns to set. */
  readonly set?: Match
}

/** What became of a transition: 0 rows changed has three different meanings. */
export type Transitioned =
  | { readonly result: 'applied' }
  | { readonly result: 'already-applied' }
  | { readonly result: 'invalid'; readonly state: string }
  | { readonly result: 'absent' }

/** What became of a write that sets a row to what it should be. Its rung is told, since no marker protects it. */
export interface Upserted {
  /** Repeating it changes nothing: the second time sets what is set already. */
  readonly rung: 'algebra'
}

/** What became of adding a member to a set. */
export interface AddedToSet {
  /** Repeating it changes nothing: a set holds a member once. */
  readonly rung: 'algebra'
  /** Whether this call added it. A repeat finds false, like anybody who comes later. */
  readonly added: boolean
}

/** How long to wait for a locked row. */
export interface LockOptions {
  /** `'nowait'`, or the longest wait. Default: what is left of the transaction's lock wait. */
  readonly wait?: 'nowait' | Duration
}

/** Who blocks whom, as the engine tells it. */
export interface Blocker {
  /** The blocking session's number on its server. */
  readonly session: string
  /** How long its transaction has been open, in ms. */
  readonly openMs: number
  /** Since when it is, by the server's clock, in ms since 1970; absent where the role may not see it. */
  readonly openSinceMs?: number
  /** What it is doing: `active`, `idle in transaction`. */
  readonly state: string
  /** The application's name, where it gave one. */
  readonly application: string
}

/** Something that speaks for a usual cause of repeated lock time-outs; not a proof of it. */
export interface LockEvidence {
  /**
   * A transaction that stays open for long; a statement that reads, and so locks or holds locks, for want of an index;
   * locks that are taken in different orders; a transaction over many rows or a whole table beside the traffic; a pool
   * larger than the server bears.
   */
  readonly cause: 'long-transaction' | 'missing-index' | 'lock-order' | 'batch' | 'pool'
  /** What was seen, for people: sessions, tables, numbers. Never a statement or a value. */
  readonly sentence: string
}

/** Repeatable writes inside a transaction. */
export interface Rows {
  /**
   * Inserts a row unless one with the same natural key is there; the unique index over `by` decides, never a check
   * before.
   *
   * @example
   * ```ts
   * import { sqlite } from 'reprise/stores/sqlite'
   *
   * const db = sqlite({ name: 'shop', file: 'shop.db' })
   * const order = { id: 4711, item: 'tea' }
   * const { inserted, row } = await db.transact((tx) => tx.insertOnce('orders', order, ['id']))
   * ```
   */
  insertOnce(table: TableName, row: Match, by: readonly string[]): Promise<InsertedOnce>
  /**
   * Sets a row to the values given, whether it is there or not: the one with the same values in `by`, a unique key.
   * There is no `increment`, since a repeat of that counts twice: set the total.
   *
   * @example
   * ```ts
   * import { sqlite } from 'reprise/stores/sqlite'
   *
   * const db = sqlite({ name: 'shop', file: 'shop.db' })
   * await db.transact((tx) => tx.upsert('balance', { account: 'a', total: 120 }, ['account']))
   * ```
   */
  upsert(table: TableName, row: Match, by: readonly string[]): Promise<Upserted>
  /**
   * Adds a member to a set: a row that is there once, by a unique key over all of the columns given.
   *
   * @example
   * ```ts
   * import { sqlite } from 'reprise/stores/sqlite'
   *
   * const db = sqlite({ name: 'shop', file: 'shop.db' })
   * const { added } = await db.transact((tx) => tx.addToSet('member', { club: 'chess', person: 7 }))
   * ```
   */
  addToSet(table: TableName, member: Match): Promise<AddedToSet>
  /**
   * Changes a state if the row is in a state it may start from.
   *
   * @example
   * ```ts
   * import { sqlite } from 'reprise/stores/sqlite'
   *
   * const db = sqlite({ name: 'shop', file: 'shop.db' })
   * const { result } = await db.transact((tx) =>
   *   tx.transition('orders', { where: { id: 4711 }, from: 'open', to: 'paid', command: 'pay-4711' }),
   * )
   * ```
   */
  transition(table: TableName, transition: Transition): Promise<Transitioned>
  /**
   * Locks one row until the end of the transaction, and reads it. Undefined: there is no such row, and nothing is
   * locked. LOCK_TIMEOUT: somebody else holds it.
   *
   * @example
   * ```ts
   * import { sqlite } from 'reprise/stores/sqlite'
   *
   * const db = sqlite({ name: 'shop', file: 'shop.db' })
   * await db.transact(async (tx) => {
   *   const order = await tx.lockRow('orders', { id: 4711 }, { wait: '200ms' })
   *   if (order?.['state'] === 'open') await tx.updateRows('orders', { id: 4711 }, { state: 'paid' })
   * })
   * ```
   */
  lockRow(table: TableName, where: Match, options?: LockOptions): Promise<Row | undefined>
  /** Reads one row. */
  readRow(table: TableName, where: Match): Promise<Row | undefined>
  /** Updates the rows that match, and says how many there were. */
  updateRows(table: TableName, where: Match, set: Match): Promise<number>
}
