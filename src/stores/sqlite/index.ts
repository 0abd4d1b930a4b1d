// SQLite: a store in one file, marker and effect in one commit, without a server.

import type { Finding } from '../../atomicity/index.js'
import { type Operations, operationsOf } from '../../idempotency/index.js'
import { demandKnown, durationMs, systemClock, systemRandom } from '../../kernel/index.js'
import { type MessageDomain, type Upkeep, upkeepOf, type WindowStore } from '../../messaging/index.js'
import { type Sequences, sequencesOf } from '../../sequence/index.js'
import {
  budgetFindings,
  type Domain,
  domainOf,
  refuseInside,
  transactionDefaultNames,
} from '../../transaction/index.js'
import {
  type MigrationOptions,
  type MigrationResult,
  printMigrations,
  quoteName,
  sqliteDialect,
  sqlSequences,
} from '../sql/index.js'
import type { SqliteClient } from './client/client.js'
import { doctor } from './doctor.js'
import { SqliteEngine } from './engine.js'
import type { Bind, SqliteTransaction } from './handle.js'
import { migrate } from './migrate.js'
import { sqliteMigrations } from './migrations.js'
import type { SqliteOptions } from './options.js'

export type { MigrationOptions, MigrationResult } from '../sql/index.js'
export { sqliteClassification } from './classification.js'
export type { SqliteClient, SqliteClientTransaction } from './client/client.js'
export type { SqliteClientStatement, SqliteRunResult } from './client/statement.js'
export { type SqliteHandle, type SqliteHandleStatement, signsOf as sqliteSignsOf } from './connection/driver.js'
export type { Bind, SqliteTransaction } from './handle.js'
export { sqliteManifest } from './manifest.js'
export type { SqliteOptions } from './options.js'

/** A domain in a file of SQLite. */
export interface SqliteDomain<Bound>
  extends Domain<SqliteTransaction<Bound>>,
    Operations<SqliteTransaction<Bound>>,
    Sequences<SqliteTransaction<Bound>>,
    MessageDomain<SqliteTransaction<Bound>>,
    Upkeep,
    WindowStore {
  /**
   * Makes or updates Reprise's tables. Safe with several processes at once. Leaves tables alone that a newer
   * version has migrated, and refuses them with MIGRATION_NEWER where they do not work with this version. Refuses
   * records under another pepper with PEPPER_MISMATCH; with `rename` it brings them under a new one.
   */
  migrate(options?: MigrationOptions): Promise<MigrationResult>
  /** The same as SQL, for those who run their own migrations. */
  migrationSql(): string
  /** What could go wrong here, and what to do about it; empty: nothing was found. What it writes it rolls back. */
  doctor(): Promise<readonly Finding[]>
  /** Refuses new transactions, waits for those at work, and closes all connections. */
  close(): Promise<void>
}

const own = ['name', 'open', 'file', 'bind', 'prefix', 'pepper', 'messages', 'readers', 'queue', 'sharedCommit']

/**
 * A domain in a file of SQLite. Nothing is opened before the first transaction.
 *
 * @example
 * ```ts
 * import { sqlite } from 'reprise/stores/sqlite'
 *
 * const db = sqlite({ name: 'shop', file: 'shop.db' })
 * await db.migrate() // creates the tables of Reprise
 * const { rows } = await db.transact((tx) => tx.query('select count(*) as orders from orders'))
 * await db.close()
 * ```
 */
export function sqlite(options: SqliteOptions<SqliteClient> & { readonly bind?: undefined }): SqliteDomain<SqliteClient>
export function sqlite<Bound>(options: SqliteOptions<Bound> & { readonly bind: Bind<Bound> }): SqliteDomain<Bound>
export function sqlite<Bound>(options: SqliteOptions<Bound>): SqliteDomain<Bound> {
  demandKnown(options, [...own, ...transactionDefaultNames], 'options')
  const { name, open, file, bind, prefix, pepper, messages, readers, queue, sharedCommit, ...rest } = options
  const { clock = systemClock, random = systemRandom, ...defaults } = rest
  const connectionWaitMs = durationMs(defaults.connectionWait ?? '1s')
  const given = { name, open, file, bind, prefix, pepper, messages, readers, queue, sharedCommit }
  const parts = { ...given, clock, random, connectionWaitMs }
  const engine = new SqliteEngine<Bound>(parts)
  const domain = domainOf(engine, { ...defaults, clock, random })
  const base = {
    ...domain,
    ...operationsOf(engine, { ...defaults, clock, random }),
    seen: engine.seen,
    messages: engine.messages,
    ...sequencesOf<SqliteTransaction<Bound>>(
      engine,
      sqlSequences(sqliteDialect, (table) => quoteName(engine.prefix + table)),
      domain.transact,
      engine.records.pepper,
    ),
  }
  return {
    ...base,
    ...upkeepOf(base),
    // The one who failed may be another process, which left its COMMIT in the log and did not live to write over it:
    // what is then answered to be aborted must not come back with a recovery.
    resolve: (token, limit) => {
      engine.connections.distrustLog()
      return domain.resolve(token, limit)
    },
    migrate: async (given = {}) => {
      refuseInside()
      demandKnown(given, ['rename'], 'options')
      return migrate(engine, clock, random, given)
    },
    migrationSql: () => printMigrations(sqliteMigrations(engine.prefix, engine.records.pepper)),
    doctor: async () => [...(await doctor(engine, clock)), ...budgetFindings(domain.budget, clock.monotonicMs())],
    close: () => engine.connections.close(),
  }
}
