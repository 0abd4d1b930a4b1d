// What the user gives: the transaction function of an ORM, and a way to run a statement on what it hands out.

import type { Isolation, MessageOptions, Phase, RulingWord } from '../../atomicity/index.js'
import type { PepperSecret } from '../../identity/index.js'
import { RepriseError } from '../../kernel/index.js'
import type { TransactionDefaults } from '../../transaction/index.js'
import { migrationMissing, type Query, type SqlAnswer, type SqlDialect } from '../sql/index.js'
import { signsOf } from './classification.js'
import type { CallbackDialect } from './database.js'

/** The answer to a statement. */
export interface CallbackAnswer {
  /** Rows, as objects by column names; empty where a statement gives none. */
  readonly rows: readonly unknown[]
  /**
   * How many rows were written or read, for `tx.query` of the body; Reprise's own statements do without it. Default: as
   * many as there are rows.
   */
  readonly rowCount?: number | null | undefined
}

/**
 * The rows of an answer. Refuses with ARGUMENT_INVALID what is none: `query` has to give an object, also where the ORM
 * gives a bare list.
 */
export function rowsOf(answer: CallbackAnswer): readonly Readonly<Record<string, unknown>>[] {
  const rows = (answer as CallbackAnswer | null | undefined)?.rows
  if (Array.isArray(rows)) return rows as readonly Readonly<Record<string, unknown>>[]
  throw new RepriseError('ARGUMENT_INVALID', 'The function query has to answer with an object that has a list of rows.')
}

/** Sends a statement of Reprise's own inside a transaction. */
export type Send = (query: Query) => Promise<SqlAnswer>

/**
 * Sends statements of Reprise's own on what the ORM hands out. How many rows a write touched is asked of its rows,
 * since an ORM may not tell. Where the tables are not there it is refused with MIGRATION_MISSING.
 */
export function sendOn<Tx>(query: CallbackOptions<Tx>['query'], tx: Tx, dialect: SqlDialect): Send {
  return async ({ text, values, counts = false }) => {
    try {
      const rows = rowsOf(await query(tx, counts ? text + dialect.returning('1 AS written') : text, [...values]))
      return { rows, rowCount: rows.length }
    } catch (error) {
      const message = error instanceof Error ? error.message : ''
      throw dialect.isMissing(signsOf(error), message) ? migrationMissing(error) : error
    }
  }
}

/** How a transaction is to begin. */
export interface CallbackSettings {
  /**
   * The isolation level that the body asked for. It has to be passed on: on PostgreSQL another one is refused before
   * the body runs.
   */
  readonly isolation: Isolation
  /**
   * True: it only reads, namely records beside an open transaction. On SQLite it can begin without the lock of the file
   * then; otherwise `BEGIN IMMEDIATE` is best.
   */
  readonly readOnly: boolean
}

/** The options of {@link callback}. */
export interface CallbackOptions<Tx> extends TransactionDefaults {
  /** The domain's name, in events, errors and resolve tokens. */
  readonly name: string
  /** Whose SQL the database behind the ORM speaks. */
  readonly dialect: CallbackDialect
  /**
   * Begins a transaction, calls `work` once with what its statements run on, commits when `work` resolves and rolls
   * back when it rejects; settles when that is done, and not before: `(work, { isolation }) =>
   * dataSource.transaction(levels[isolation], work)`. Turn off the ORM's own retries: Reprise repeats.
   */
  readonly transaction: (work: (tx: Tx) => Promise<void>, settings: CallbackSettings) => PromiseLike<unknown>
  /**
   * Runs one statement inside the transaction of `tx`, on its connection; placeholders are `$1` or `?`, as the dialect
   * has them.
   */
  readonly query: (tx: Tx, text: string, values: unknown[]) => PromiseLike<CallbackAnswer>
  /**
   * What the names of Reprise's own tables begin with: up to 40 small letters, digits and `_`. Default `'reprise_'`.
   */
  readonly prefix?: string
  /** PostgreSQL: the schema of Reprise's own tables. Default `'public'`. */
  readonly schema?: string
  /**
   * A secret under which names, scopes and fingerprints are stored, so that whoever reads the table cannot confirm a
   * key that he guesses: 16 bytes or more of text or bytes, or all secrets that there were, the oldest first. All who
   * work on the store have the same. Default: none.
   */
  readonly pepper?: PepperSecret | readonly PepperSecret[]
  /** How its messages are: who makes them, how large they may be, what checks and what hides their data. */
  readonly messages?: MessageOptions
  /**
   * How many connections may be used at once: as many as the ORM's pool has, or fewer. On SQLite one of them writes,
   * and the others read records. Default 10 on PostgreSQL, 1 on SQLite.
   */
  readonly connections?: number
  /** How many may wait for one of them; one more is refused with QUEUE_FULL. Default 1,000. */
  readonly queue?: number
  /**
   * What an error of the ORM means, where the table does not know it or knows it wrongly. Undefined leaves it to the
   * table. Default: the table.
   */
  readonly classify?: (error: unknown, phase: Phase) => RulingWord | undefined
}
