// Reprise's own tables in PostgreSQL, as numbered SQL.

import type { Pepper } from '../../identity/index.js'
import { type Clock, type Random, RepriseError, sleep } from '../../kernel/index.js'
import {
  addedColumns,
  applyMigrations,
  auditColumns,
  type ColumnTypes,
  checkPrefix,
  checkSchema,
  hasDue,
  hasEnd,
  type MigrationOptions,
  type MigrationPlan,
  type MigrationResult,
  memoryMigrationName,
  memoryStatements,
  messageMigrationName,
  messageStatements,
  messageTables,
  postgresDialect,
  printMigrations,
  quoteName,
  RecordStatements,
  recordMigrationName,
  recordTables,
  type SchemaState,
  schemaState,
  sequenceColumns,
  sequenceMigrationName,
  windowMigrationName,
  windowStatements,
} from '../sql/index.js'
import { signsOf } from './classification.js'
import type { PostgresPoolClient } from './options.js'
import { isStatementPooling, poolingUnsupported, timeoutMs } from './wire.js'

/** Where Reprise's own tables are. */
export interface PostgresSchema {
  /** The schema, checked. */
  readonly schema: string
  /** What their names begin with, checked. */
  readonly prefix: string
  /** The quoted name of a table, by what follows the prefix. */
  readonly named: (table: string) => string
  /** The statements on its records. */
  readonly statements: RecordStatements
  /** How they are made. */
  readonly plan: MigrationPlan
}

/** Milliseconds since 1970 by the server's clock, at this statement and not at the transaction's begin. */
export const nowMs: string = postgresDialect.nowMs

const types: ColumnTypes = { text: 'text', integer: 'integer', bigint: 'bigint' }

/** The tables with a prefix, in a schema. Defaults: `reprise_`, `public`, no pepper. */
export function postgresSchema(
  prefix: string = 'reprise_',
  schema: string = 'public',
  pepper?: Pepper,
): PostgresSchema {
  const table = (name: string): string => `${quoteName(checkSchema(schema))}.${quoteName(checkPrefix(prefix) + name)}`
  const index = (name: string): string => quoteName(checkPrefix(prefix) + name)
  const versionTable = table('migration')
  return {
    schema,
    prefix,
    named: table,
    statements: new RecordStatements(postgresDialect, recordTables(postgresDialect, table, pepper)),
    plan: {
      versionTable,
      nowMs,
      records: { table, bare: index, pepper },
      prepare: [
        // Asks first: CREATE SCHEMA IF NOT EXISTS needs a right on the database even where the schema is there.
        `DO $$ BEGIN IF to_regnamespace('${schema}') IS NULL THEN CREATE SCHEMA ${quoteName(schema)}; END IF; END $$`,
        `CREATE TABLE IF NOT EXISTS ${versionTable} (number integer PRIMARY KEY, name text NOT NULL, applied_at_ms bigint NOT NULL, works_with integer)`,
      ],
      migrations: migrationsOf(table, index),
    },
  }
}

function migrationsOf(table: (name: string) => string, index: (name: string) => string): MigrationPlan['migrations'] {
  const { marker, audit } = recordTables(postgresDialect, table)
  return [
    {
      number: 1,
      name: 'markers of keys',
      worksWith: 1,
      statements: [
        `CREATE TABLE ${marker} (id text PRIMARY KEY, format integer NOT NULL DEFAULT 1, value text, claimed_at_ms bigint NOT NULL)`,
      ],
    },
    {
      number: 2,
      name: recordMigrationName,
      worksWith: 1,
      statements: [
        `ALTER TABLE ${marker} ${addedColumns(types)
          .map((column) => `ADD COLUMN ${column}`)
          .join(', ')}`,
        `CREATE INDEX ${index('marker_due')} ON ${marker} (due_at_ms) WHERE ${hasDue}`,
        `CREATE INDEX ${index('marker_expires')} ON ${marker} (expires_at_ms) WHERE ${hasEnd}`,
        `CREATE TABLE ${audit} (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ${auditColumns(types).join(', ')})`,
        `CREATE INDEX ${index('audit_id')} ON ${audit} (id, number)`,
        `CREATE INDEX ${index('audit_at')} ON ${audit} (at_ms)`,
        // Never restarts: its numbers fence off claims that are long gone. Without a cache they grow in the order
        // in which they are taken.
        `CREATE SEQUENCE ${table('fence')} AS bigint NO CYCLE CACHE 1`,
      ],
    },
    {
      number: 3,
      name: windowMigrationName,
      worksWith: 1,
      statements: windowStatements(types, { window: table('window'), seen: table('seen') }, index('seen_order')),
    },
    {
      number: 4,
      name: sequenceMigrationName,
      worksWith: 1,
      statements: [`CREATE TABLE ${table('sequence')} (${sequenceColumns(types).join(', ')})`],
    },
    {
      number: 5,
      name: messageMigrationName,
      worksWith: 1,
      statements: messageStatements(types, messageTables(table), index),
    },
    {
      number: 6,
      name: memoryMigrationName,
      worksWith: 1,
      statements: memoryStatements(types, messageTables(table)),
    },
  ]
}

/** How long a migration waits, and for what; and what it may do. */
export interface MigrationLimits extends MigrationOptions {
  /** The longest wait for another process that migrates, in ms. Nobody else waits behind it. Default 60,000. */
  readonly turnMs?: number
  /**
   * The longest wait of one try for the lock of a table, in ms. All work with a key waits behind it, so it is shorter
   * than the lock wait of a transaction. Default 1,000.
   */
  readonly lockMs?: number
  /** How often the tables are tried to be had at most. Default 10. */
  readonly tries?: number
  /** The longest pause between two tries, in ms, in which others go on; the shortest is half of it. Default 1,000. */
  readonly pauseMs?: number
}

/** What the pauses between two tries are made of. */
export interface MigrationPauses {
  readonly clock: Clock
  readonly random: Random
}

/**
 * Brings the tables up to date, in one transaction. Whoever comes second waits for the first. A table that somebody
 * holds is waited for in short tries, each a transaction of its own, since everybody else who wants the table waits
 * behind the one who wants it alone. Refuses with MIGRATION_BLOCKED in the end.
 */
export async function migratePostgres(
  client: PostgresPoolClient,
  schema: PostgresSchema,
  { clock, random }: MigrationPauses,
  limits: MigrationLimits = {},
): Promise<MigrationResult> {
  const { turnMs = 60_000, lockMs = 1_000, tries = 10, pauseMs = 1_000, rename = false } = limits
  for (let number = 1; ; number++) {
    const result = await migrateOnce(client, schema, { turnMs, lockMs, rename })
    if (!('busy' in result)) return result
    const { busy: relation, error: cause } = result
    if (number >= tries) {
      const message = `Other transactions held ${relation} in each of ${tries} tries of ${lockMs} ms. Nothing was changed; migrate again when they have ended.`
      throw new RepriseError('MIGRATION_BLOCKED', message, { cause, details: { relation, tries, lockMs } })
    }
    await sleep(pauseMs * (1 + random.next()) * 0.5, { clock })
  }
}

interface Busy {
  readonly busy: string
  readonly error: unknown
}

async function migrateOnce(
  client: PostgresPoolClient,
  { plan, schema, prefix }: PostgresSchema,
  { turnMs, lockMs, rename }: Required<Pick<MigrationLimits, 'turnMs' | 'lockMs' | 'rename'>>,
): Promise<MigrationResult | Busy> {
  let last = ''
  const run = async (statement: string) => {
    last = statement
    return (await client.query(statement)).rows
  }
  try {
    await run(`BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = ${timeoutMs(turnMs)}`)
    // A lock of the transaction, not of the session: it also holds behind a pooler.
    await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`reprise:${schema}.${prefix}`])
    await run(`SET LOCAL lock_timeout = ${timeoutMs(lockMs)}`)
    const result = await applyMigrations({ run }, plan, { rename })
    await run('COMMIT')
    return result
  } catch (error) {
    // Where the connection is gone the server rolls back by itself, and the first error is the one to see.
    await client.query('ROLLBACK').catch(() => undefined)
    if (isStatementPooling(error)) throw poolingUnsupported(error)
    if (!signsOf(error).includes('55P03')) throw error
    const relation = relationIn(last)
    if (relation !== undefined) return { busy: relation, error }
    const message = `Another process has been migrating for longer than ${turnMs} ms. Nothing was changed.`
    throw new RepriseError('MIGRATION_BLOCKED', message, { cause: error, details: { turnMs } })
  }
}

// The tables are the only names in the statements with a schema before them.
function relationIn(statement: string): string | undefined {
  const [, schema, table] = /"([^"]+)"\."([^"]+)"/.exec(statement) ?? []
  return table === undefined ? undefined : `${schema}.${table}`
}

/** How far the tables are; undefined: they were never made. */
export async function migrationState(
  client: PostgresPoolClient,
  schema: PostgresSchema,
): Promise<SchemaState | undefined> {
  const { versionTable } = schema.plan
  // By the number of rows: what a boolean becomes is up to the types of the pool.
  const there = await client.query('SELECT 1 WHERE to_regclass($1) IS NOT NULL', [versionTable])
  if (there.rows.length === 0) return undefined
  return schemaState({ run: async (statement) => (await client.query(statement)).rows }, schema.plan)
}

/** The tables as SQL, to be run once by other means. */
export function postgresMigrationSql({ plan }: PostgresSchema): string {
  return printMigrations(plan)
}
