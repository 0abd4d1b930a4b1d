// The tables that Reprise keeps in a file, as numbered migrations.

import {
  addedColumns,
  auditColumns,
  type ColumnTypes,
  hasDue,
  hasEnd,
  type MigrationPlan,
  quoteName,
  recordMigrationName,
  storeNowMs,
} from '../sql/index.js'

/** The names of Reprise's tables, quoted. */
export interface SqliteTables {
  /** One row for each key that was committed. */
  readonly marker: string
  /** Audit notes. */
  readonly audit: string
  /** One row: the last number of the fence. */
  readonly fence: string
  /** What Reprise notes about the file itself. */
  readonly meta: string
  /** Which migrations were applied. */
  readonly migration: string
}

/** The time of the store in ms since 1970, as whole SQL. SQLite's clock is that of the machine. */
export const nowMs: string = storeNowMs.sqlite

const types: ColumnTypes = { text: 'TEXT', integer: 'INTEGER', bigint: 'INTEGER' }

/** The names of the tables for a prefix. */
export function sqliteTables(prefix: string): SqliteTables {
  return {
    marker: quoteName(`${prefix}marker`),
    audit: quoteName(`${prefix}audit`),
    fence: quoteName(`${prefix}fence`),
    meta: quoteName(`${prefix}meta`),
    migration: quoteName(`${prefix}migration`),
  }
}

/** All migrations for a prefix. */
export function sqliteMigrations(prefix: string): MigrationPlan {
  const { marker, audit, fence, meta, migration } = sqliteTables(prefix)
  const index = (name: string): string => quoteName(prefix + name)
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
      {
        number: 2,
        name: recordMigrationName,
        statements: [
          ...addedColumns(types).map((column) => `ALTER TABLE ${marker} ADD COLUMN ${column}`),
          `CREATE INDEX ${index('marker_due')} ON ${marker} (due_at_ms) WHERE ${hasDue}`,
          `CREATE INDEX ${index('marker_expires')} ON ${marker} (expires_at_ms) WHERE ${hasEnd}`,
          `CREATE TABLE ${audit} (number INTEGER PRIMARY KEY, ${auditColumns(types).join(', ')})`,
          `CREATE INDEX ${index('audit_id')} ON ${audit} (id, number)`,
          `CREATE INDEX ${index('audit_at')} ON ${audit} (at_ms)`,
          `CREATE TABLE ${fence} (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL)`,
          `INSERT INTO ${fence} (one, number) VALUES (1, 0)`,
        ],
      },
    ],
  }
}
