// The databases that an ORM can stand before: whose SQL it is, what is left of the engine, and what only one of them
// has.

import type { Finding, Isolation, Manifest } from '../../atomicity/index.js'
import type { Pepper } from '../../identity/index.js'
import { RepriseError } from '../../kernel/index.js'
import type { SequenceStore } from '../../sequence/index.js'
import {
  type Condition,
  checkPrefix,
  checkSchema,
  examinePostgres,
  examineSqlite,
  outcomePlaces,
  type PostgresPatient,
  postgresDialect,
  type Query,
  type QueryHandle,
  RecordStatements,
  recordTables,
  type SqlDialect,
  sqliteDialect,
  sqlSequences,
} from '../sql/index.js'
import { callbackManifests } from './manifest.js'

/** The databases, by the word that the user gives. */
export type CallbackDialect = keyof typeof callbackManifests

/** What a database behind an ORM is like. */
export interface CallbackDatabase {
  readonly dialect: SqlDialect
  readonly manifest: Manifest
  readonly statements: RecordStatements
  /** The quoted name of a table of Reprise, by what follows the prefix. */
  readonly named: (table: string) => string
  readonly sequences: SequenceStore<QueryHandle>
  /** How many connections are used by default. */
  readonly connections: number
  /** Becomes the writer of the whole store, without writing; undefined: rows are locked one by one. */
  readonly lockStore: Query | undefined
  /** Looks for what could go wrong with it. */
  examine(
    patient: Omit<PostgresPatient, 'prefix' | 'named' | 'pepper' | 'schema' | 'poolMost'>,
  ): Promise<readonly Finding[]>
  /** Settings that end with a transaction; undefined: there are none, and nothing inside tells it from its outside. */
  readonly settings: LocalSettings | undefined
}

/** Settings that hold until the end of a transaction. */
export interface LocalSettings {
  /**
   * Limits for locks, statements and an idle connection, and a mark that tells the inside of the transaction from its
   * outside. Answers with the time as `now_ms`, and with the level as `isolation`.
   */
  open(limits: { readonly lockMs: number; readonly idleMs: number; readonly statementMs: number }, mark: string): Query
  /** The words for the isolation levels in the answer of `open`. */
  readonly levels: Readonly<Record<Isolation, string>>
  /** The longest wait for a lock from here on. */
  limitLocks(waitMs: number): Query
  /** The longest wait for a lock, and the longest that a statement takes. */
  limitAll(ms: number): Query
  /** The mark that is set, as `mark`. */
  readonly readMark: Query
  /** That the statement of an outcome runs inside the transaction with this mark. */
  isInside(mark: string): Condition
  /** A SELECT that locks its rows. */
  lockingRows(select: string, how: 'wait' | 'nowait'): string
}

/** The database of a word. Refuses another word with ARGUMENT_INVALID. */
export function callbackDatabase(
  word: CallbackDialect,
  prefix: string = 'reprise_',
  schema: string | undefined = undefined,
  pepper: Pepper | undefined = undefined,
): CallbackDatabase {
  if (!Object.hasOwn(databases, word)) {
    throw new RepriseError('ARGUMENT_INVALID', "The dialect is 'postgres' or 'sqlite'.")
  }
  return databases[word](checkPrefix(prefix), schema, pepper)
}

type Made = (prefix: string, schema: string | undefined, pepper: Pepper | undefined) => CallbackDatabase

const databases: Readonly<Record<CallbackDialect, Made>> = {
  postgres: (prefix, schema = 'public', pepper) => {
    const dialect = postgresDialect
    const named = (name: string): string =>
      `${dialect.quoteName(checkSchema(schema))}.${dialect.quoteName(prefix + name)}`
    return {
      dialect,
      manifest: callbackManifests.postgres,
      statements: new RecordStatements(dialect, recordTables(dialect, named, pepper)),
      named,
      sequences: sqlSequences(dialect, named),
      connections: 10,
      lockStore: undefined,
      examine: (patient) =>
        examinePostgres({ ...patient, prefix, named, pepper, schema, poolMost: undefined }, unknownMigrations),
      settings: postgresSettings,
    }
  },
  sqlite: (prefix, schema, pepper) => {
    if (schema !== undefined) throw new RepriseError('ARGUMENT_INVALID', 'SQLite has no schemas; give a prefix.')
    const dialect = sqliteDialect
    const named = (name: string): string => dialect.quoteName(prefix + name)
    return {
      dialect,
      manifest: callbackManifests.sqlite,
      statements: new RecordStatements(dialect, recordTables(dialect, named, pepper)),
      named,
      sequences: sqlSequences(dialect, named),
      connections: 1,
      // What an ORM begins is mostly DEFERRED, and a transaction that reads first and writes later can lose its
      // snapshot; after BEGIN IMMEDIATE this has nothing left to do.
      lockStore: { text: `UPDATE ${named('fence')} SET number = number WHERE 1 = 0`, values: [] },
      examine: (patient) =>
        examineSqlite({ ...patient, prefix, named, pepper, ownConnection: false }, unknownMigrations),
      settings: undefined,
    }
  },
}

// The migrations are those of the store of the same database, and not known here; the tables are looked at.
const unknownMigrations = async (): Promise<readonly Finding[]> => []

const markSetting = 'reprise.transaction'

const postgresSettings: LocalSettings = {
  open: ({ lockMs, idleMs, statementMs }, mark) => ({
    text: `SELECT set_config('lock_timeout', $1, true) AS a, set_config('idle_in_transaction_session_timeout', $2, true) AS b,
      set_config('statement_timeout', $3, true) AS c, set_config('${markSetting}', $4, true) AS d,
      current_setting('transaction_isolation') AS isolation, ${postgresDialect.nowMs} AS now_ms`,
    values: [settingMs(lockMs), settingMs(idleMs), settingMs(statementMs), mark],
  }),
  levels: {
    'read-committed': 'read committed',
    'repeatable-read': 'repeatable read',
    serializable: 'serializable',
  },
  limitLocks: (waitMs) => ({
    text: "SELECT set_config('lock_timeout', $1, true) AS a",
    values: [settingMs(waitMs)],
  }),
  limitAll: (ms) => ({
    text: "SELECT set_config('lock_timeout', $1, true) AS a, set_config('statement_timeout', $2, true) AS b",
    values: [settingMs(ms), settingMs(ms)],
  }),
  readMark: { text: `SELECT current_setting('${markSetting}', true) AS mark`, values: [] },
  isInside: (mark) => ({
    condition: `current_setting('${markSetting}', true) = $${outcomePlaces + 1}`,
    values: [mark],
  }),
  lockingRows: (select, how) => `${select} FOR UPDATE${how === 'nowait' ? ' NOWAIT' : ''}`,
}

// 0 would switch a limit off, and settings are texts.
function settingMs(ms: number): string {
  return String(Math.min(Math.max(1, Math.ceil(ms)), 2 ** 31 - 1))
}
