// Numbered migrations that only go forward, with a table that remembers them. Two processes at once are safe: a lock
// lets one go first. Each says with which older code it works, so that a deployment can be rolled back.

import { RepriseError } from '../../kernel/index.js'

/** One step of a schema. Once released it never changes. */
interface Migration {
  /** Its number; the first is 1, without gaps. */
  readonly number: number
  /** What it is for, in a few words. */
  readonly name: string
  /**
   * The oldest code that works on the tables once it was applied: the number of the last migration which that code
   * knows. Its own number: none that is older.
   */
  readonly worksWith: number
  /** Its statements, each without a semicolon. */
  readonly statements: readonly string[]
}

/** A schema, and how it is kept. */
export interface MigrationPlan {
  /** All steps, in order. */
  readonly migrations: readonly Migration[]
  /** The table that remembers which ones have been applied, quoted. */
  readonly versionTable: string
  /** Statements that make the version table, with all of its columns, and its schema, if they are not there. */
  readonly prepare: readonly string[]
  /** An SQL expression for the store's time in ms since 1970. */
  readonly nowMs: string
}

/** A transaction to migrate in. */
export interface MigrationTarget {
  /** Runs a statement and gives its rows. */
  run(statement: string): Promise<readonly Readonly<Record<string, unknown>>[]>
}

/** What a migration did. */
export interface MigrationResult {
  /** The number the schema had before; 0: none. */
  readonly from: number
  /** The number it has now. */
  readonly to: number
}

/** How far a schema is. */
export interface SchemaState {
  /** The number of the last migration that was applied; 0: none. */
  readonly applied: number
  /** The last migration that code has to know to work on it, by what the migrations said which this code lacks. */
  readonly needed: number
  /** Whether the version table has a place for what older code a migration works with. */
  readonly saysWorksWith: boolean
}

/**
 * Brings a schema up to date. The target is an open transaction that holds a lock which nobody else who migrates this
 * schema can hold. Leaves a schema alone that newer code has made and that this code may work on, and refuses others
 * with MIGRATION_NEWER.
 */
export async function applyMigrations(target: MigrationTarget, plan: MigrationPlan): Promise<MigrationResult> {
  checkNumbers(plan.migrations)
  for (const statement of plan.prepare) await target.run(statement)
  const state = await schemaState(target, plan)
  refuseNewer(state, plan)
  const missing = plan.migrations.slice(state.applied)
  // Tables of the first versions have no such column. It is added with the next migration and not before, so that
  // migrating an up-to-date schema changes nothing.
  if (missing.length > 0 && !state.saysWorksWith) {
    await target.run(`ALTER TABLE ${plan.versionTable} ADD COLUMN works_with integer`)
  }
  for (const migration of missing) {
    for (const statement of migration.statements) await target.run(statement)
    await target.run(insertVersion(plan, migration))
  }
  return { from: state.applied, to: state.applied + missing.length }
}

/** How far a schema is. The version table must be there. */
export async function schemaState(target: MigrationTarget, plan: MigrationPlan): Promise<SchemaState> {
  // All columns, since the table may lack one; there are as many rows as migrations.
  const rows = await target.run(`SELECT * FROM ${plan.versionTable}`)
  const known = plan.migrations.length
  let applied = 0
  let needed = 0
  for (const row of rows) {
    const number = Number(row['number'])
    applied = Math.max(applied, number)
    // One that says nothing works with no older code.
    if (number > known) needed = Math.max(needed, Number(row['works_with'] ?? number))
  }
  return { applied, needed, saysWorksWith: rows.every((row) => 'works_with' in row) }
}

// Refuses a schema that a newer version of the code has made, and that this one cannot work on.
function refuseNewer({ applied, needed }: SchemaState, plan: MigrationPlan): void {
  const known = plan.migrations.length
  if (needed <= known) return
  throw new RepriseError(
    'MIGRATION_NEWER',
    `A newer version has brought the schema to migration ${applied}, and this version knows ${known}: deploy a version that knows migration ${needed} or a later one, since migrations only go forward.`,
    { details: { applied, known, needed } },
  )
}

/**
 * The whole schema as SQL, to be run once by other means: every migration from the first on, and its entry in the
 * version table.
 */
export function printMigrations(plan: MigrationPlan): string {
  checkNumbers(plan.migrations)
  const lines = plan.prepare.map((statement) => `${statement};`)
  for (const migration of plan.migrations) {
    lines.push('', `-- ${migration.number}: ${migration.name}`)
    lines.push(...migration.statements.map((statement) => `${statement};`), `${insertVersion(plan, migration)};`)
  }
  return `${lines.join('\n')}\n`
}

function insertVersion({ versionTable, nowMs }: MigrationPlan, { number, name, worksWith }: Migration): string {
  const text = name.replaceAll("'", "''")
  return `INSERT INTO ${versionTable} (number, name, applied_at_ms, works_with) VALUES (${number}, '${text}', ${nowMs}, ${worksWith})`
}

function checkNumbers(migrations: readonly Migration[]): void {
  for (const [place, { number, worksWith }] of migrations.entries()) {
    if (number !== place + 1) {
      throw new RepriseError('ARGUMENT_INVALID', `Migration ${place + 1} has the number ${number}.`, {
        details: { place, number },
      })
    }
    if (!(worksWith >= 1 && worksWith <= number)) {
      throw new RepriseError('ARGUMENT_INVALID', `Migration ${number} works with ${worksWith}, not 1 to ${number}.`, {
        details: { number, worksWith },
      })
    }
  }
}

/** The error of work with a key where Reprise's tables are not there. */
export function migrationMissing(cause: unknown): RepriseError {
  const message =
    'The tables of Reprise are not there, or older than this version: run db.migrate(), or what migrationSql() prints, before work with a key.'
  return new RepriseError('MIGRATION_MISSING', message, { cause })
}
