// Reprise's own tables in PostgreSQL, as numbered SQL.

import {
  addedColumns,
  appliedNumber,
  applyMigrations,
  auditColumns,
  type ColumnTypes,
  checkPrefix,
  checkSchema,
  hasDue,
  hasEnd,
  type MigrationPlan,
  type MigrationResult,
  printMigrations,
  quoteName,
  recordMigrationName,
  refuseNewer,
  storeNowMs,
} from '../sql/index.js'
import type { PostgresPoolClient } from './options.js'

/** Where Reprise's own tables are. */
export interface PostgresSchema {
  /** The schema, checked. */
  readonly schema: string
  /** What their names begin with, checked. */
  readonly prefix: string
  /** The marker table, quoted. */
  readonly marker: string
  /** The table of audit notes, quoted. */
  readonly audit: string
  /** An SQL expression for the next number of the fence. */
  readonly nextFence: string
  /** How they are made. */
  readonly plan: MigrationPlan
}

/** Milliseconds since 1970 by the server's clock, at this statement and not at the transaction's begin. */
export const nowMs: string = storeNowMs.postgres

const types: ColumnTypes = { text: 'text', integer: 'integer', bigint: 'bigint' }

/** The tables with a prefix, in a schema. Defaults: `reprise_`, `public`. */
export function postgresSchema(prefix: string = 'reprise_', schema: string = 'public'): PostgresSchema {
  const table = (name: string): string => `${quoteName(checkSchema(schema))}.${quoteName(checkPrefix(prefix) + name)}`
  const index = (name: string): string => quoteName(checkPrefix(prefix) + name)
  const marker = table('marker')
  const audit = table('audit')
  const fence = table('fence')
  const versionTable = table('migration')
  return {
    schema,
    prefix,
    marker,
    audit,
    nextFence: `nextval('${fence}')`,
    plan: {
      versionTable,
      nowMs,
      prepare: [
        // Asks first: CREATE SCHEMA IF NOT EXISTS needs a right on the database even where the schema is there.
        `DO $$ BEGIN IF to_regnamespace('${schema}') IS NULL THEN CREATE SCHEMA ${quoteName(schema)}; END IF; END $$`,
        `CREATE TABLE IF NOT EXISTS ${versionTable} (number integer PRIMARY KEY, name text NOT NULL, applied_at_ms bigint NOT NULL)`,
      ],
      migrations: [
        {
          number: 1,
          name: 'markers of keys',
          statements: [
            `CREATE TABLE ${marker} (id text PRIMARY KEY, format integer NOT NULL DEFAULT 1, value text, claimed_at_ms bigint NOT NULL)`,
          ],
        },
        {
          number: 2,
          name: recordMigrationName,
          statements: [
            `ALTER TABLE ${marker} ${addedColumns(types)
              .map((column) => `ADD COLUMN ${column}`)
              .join(', ')}`,
            `CREATE INDEX ${index('marker_due')} ON ${marker} (due_at_ms) WHERE ${hasDue}`,
            `CREATE INDEX ${index('marker_expires')} ON ${marker} (expires_at_ms) WHERE ${hasEnd}`,
            `CREATE TABLE ${audit} (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ${auditColumns(types).join(', ')})`,
            `CREATE INDEX ${index('audit_id')} ON ${audit} (id, number)`,
            `CREATE INDEX ${index('audit_at')} ON ${audit} (at_ms)`,
            // Never restarts: its numbers fence off claims that are long gone. Without a cache they grow in the order in which they are taken.
            `CREATE SEQUENCE ${fence} AS bigint NO CYCLE CACHE 1`,
          ],
        },
      ],
    },
  }
}

/** Brings the tables up to date, in one transaction. Whoever comes second waits for the first, at most `lockWaitMs`. */
export async function migratePostgres(
  client: PostgresPoolClient,
  { plan, schema, prefix }: PostgresSchema,
  lockWaitMs: number,
): Promise<MigrationResult> {
  const run = async (statement: string) => (await client.query(statement)).rows
  await run(`BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = ${Math.max(1, Math.ceil(lockWaitMs))}`)
  try {
    // A lock of the transaction, not of the session: it also holds behind a pooler.
    await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`reprise:${schema}.${prefix}`])
    const result = await applyMigrations({ run }, plan)
    await run('COMMIT')
    return result
  } catch (error) {
    // Where the connection is gone the server rolls back by itself, and the first error is the one to see.
    await run('ROLLBACK').catch(() => undefined)
    throw error
  }
}

/** How far the tables are; undefined: they were never made. Refuses tables newer than the code. */
export async function migrationState(client: PostgresPoolClient, schema: PostgresSchema): Promise<number | undefined> {
  const { versionTable } = schema.plan
  const there = await client.query('SELECT to_regclass($1) IS NOT NULL AS there', [versionTable])
  if (there.rows[0]?.['there'] !== true) return undefined
  const applied = await appliedNumber({ run: async (statement) => (await client.query(statement)).rows }, schema.plan)
  refuseNewer(applied, schema.plan)
  return applied
}

/** The tables as SQL, to be run once by other means. */
export function postgresMigrationSql({ plan }: PostgresSchema): string {
  return printMigrations(plan)
}
