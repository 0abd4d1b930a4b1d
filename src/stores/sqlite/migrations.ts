// The tables that Reprise keeps in a file, as numbered migrations.

import type { Pepper } from '../../identity/index.js'
import {
  addedColumns,
  auditColumns,
  type ColumnTypes,
  hasDue,
  hasEnd,
  type MigrationPlan,
  memoryMigrationName,
  memoryStatements,
  messageMigrationName,
  messageStatements,
  messageTables,
  quoteName,
  type RecordTables,
  recordMigrationName,
  recordTables,
  sequenceColumns,
  sequenceMigrationName,
  sqliteDialect,
  windowMigrationName,
  windowStatements,
} from '../sql/index.js'

/** The names of Reprise's tables, quoted. */
export interface SqliteTables extends RecordTables {
  /** One row: the last number of the fence. */
  readonly fence: string
  /** What Reprise notes about the file itself. */
  readonly meta: string
  /** Which migrations were applied. */
  readonly migration: string
}

/** The columns of the first migration. */
const firstColumns = [
  'id TEXT NOT NULL PRIMARY KEY',
  'format INTEGER NOT NULL DEFAULT 1',
  'value TEXT',
  'claimed_at_ms INTEGER NOT NULL',
]

const types: ColumnTypes = { text: 'TEXT', integer: 'INTEGER', bigint: 'INTEGER' }

/** The names of the tables for a prefix. */
export function sqliteTables(prefix: string, pepper?: Pepper): SqliteTables {
  const named = (name: string): string => quoteName(prefix + name)
  return {
    ...recordTables(sqliteDialect, named, pepper),
    fence: named('fence'),
    meta: named('meta'),
    migration: named('migration'),
  }
}

/** All migrations for a prefix. */
export function sqliteMigrations(prefix: string, pepper?: Pepper): MigrationPlan {
  const { marker, audit, fence, meta, migration } = sqliteTables(prefix)
  const index = (name: string): string => quoteName(prefix + name)
  return {
    versionTable: migration,
    nowMs: sqliteDialect.nowMs,
    records: { table: index, bare: index, pepper },
    prepare: [
      `CREATE TABLE IF NOT EXISTS ${migration} (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at_ms INTEGER NOT NULL, works_with INTEGER)`,
    ],
    migrations: [
      {
        number: 1,
        name: 'markers of keys',
        worksWith: 1,
        statements: [
          `CREATE TABLE ${marker} (${firstColumns.join(', ')}) WITHOUT ROWID`,
          // Also made by the first write after a COMMIT that failed, which may come before any migration.
          `CREATE TABLE IF NOT EXISTS ${meta} (name TEXT PRIMARY KEY, value TEXT NOT NULL)`,
        ],
      },
      {
        number: 2,
        name: recordMigrationName,
        worksWith: 1,
        statements: [
          ...addedColumns(types).map((column) => `ALTER TABLE ${marker} ADD COLUMN ${column}`),
          ...markerIndexes(prefix),
          `CREATE TABLE ${audit} (number INTEGER PRIMARY KEY, ${auditColumns(types).join(', ')})`,
          `CREATE INDEX ${index('audit_id')} ON ${audit} (id, number)`,
          `CREATE INDEX ${index('audit_at')} ON ${audit} (at_ms)`,
          `CREATE TABLE ${fence} (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL)`,
          `INSERT INTO ${fence} (one, number) VALUES (1, 0)`,
        ],
      },
      { number: 3, name: 'records in the order of their arrival', worksWith: 1, statements: byArrival(prefix) },
      {
        number: 4,
        name: windowMigrationName,
        worksWith: 1,
        statements: windowStatements(types, sqliteTables(prefix), index('seen_order')),
      },
      {
        number: 5,
        name: sequenceMigrationName,
        worksWith: 1,
        statements: [`CREATE TABLE ${index('sequence')} (${sequenceColumns(types).join(', ')}) WITHOUT ROWID`],
      },
      {
        number: 6,
        name: messageMigrationName,
        worksWith: 1,
        statements: messageStatements(types, messageTables(index), index),
      },
      {
        number: 7,
        name: memoryMigrationName,
        worksWith: 1,
        statements: memoryStatements(types, messageTables(index)),
      },
    ],
  }
}

function markerIndexes(prefix: string): readonly string[] {
  const { marker } = sqliteTables(prefix)
  return [
    `CREATE INDEX ${quoteName(`${prefix}marker_due`)} ON ${marker} (due_at_ms) WHERE ${hasDue}`,
    `CREATE INDEX ${quoteName(`${prefix}marker_expires`)} ON ${marker} (expires_at_ms) WHERE ${hasEnd}`,
  ]
}

// Names are digests. A table that is sorted by them puts each new row, with all it holds, between others, and splits a
// page for every few of them; by arrival only the short names are sorted.
function byArrival(prefix: string): readonly string[] {
  const { marker } = sqliteTables(prefix)
  const moved = quoteName(`${prefix}marker_moved`)
  const columns = [...firstColumns, ...addedColumns(types)]
  const names = columns.map((column) => column.split(' ', 1)[0]).join(', ')
  return [
    `CREATE TABLE ${moved} (${columns.join(', ')})`,
    `INSERT INTO ${moved} (${names}) SELECT ${names} FROM ${marker} ORDER BY claimed_at_ms`,
    `DROP TABLE ${marker}`,
    `ALTER TABLE ${moved} RENAME TO ${marker}`,
    ...markerIndexes(prefix),
  ]
}
