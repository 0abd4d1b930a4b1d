// The tables that Reprise keeps in a file, as numbered migrations.

import { type MigrationPlan, quoteName } from '../sql/index.js'

/** The names of Reprise's tables, quoted. */
export interface SqliteTables {
  /** One row for each key that was committed. */
  readonly marker: string
  /** What Reprise notes about the file itself. */
  readonly meta: string
  /** Which migrations were applied. */
  readonly migration: string
}

/** The time of the store in ms since 1970, as whole SQL. SQLite's clock is that of the machine. */
export const nowMs: string = "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"

/** The names of the tables for a prefix. */
export function sqliteTables(prefix: string): SqliteTables {
  return {
    marker: quoteName(`${prefix}marker`),
    meta: quoteName(`${prefix}meta`),
    migration: quoteName(`${prefix}migration`),
  }
}

/** All migrations for a prefix. */
export function sqliteMigrations(prefix: string): MigrationPlan {
  const { marker, meta, migration } = sqliteTables(prefix)
  return {
    versionTable: migration,
    nowMs,
    prepare: [
      `CREATE TABLE IF NOT EXISTS ${migration} (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at_ms INTEGER NOT NULL)`,
    ],
    migrations: [
      {
        number: 1,
        name: 'markers of keys',
        statements: [
          `CREATE TABLE ${marker} (id TEXT NOT NULL PRIMARY KEY, format INTEGER NOT NULL DEFAULT 1, value TEXT, claimed_at_ms INTEGER NOT NULL) WITHOUT ROWID`,
          // Also made by the first write after a COMMIT that failed, which may come before any migration.
          `CREATE TABLE IF NOT EXISTS ${meta} (name TEXT PRIMARY KEY, value TEXT NOT NULL)`,
        ],
      },
    ],
  }
}
