// Numbered migrations that only go forward, with a table that remembers them. Two processes at once are safe: a lock
// lets one go first.

import { RepriseError } from '../../kernel/index.js'

/** One step of a schema. Once released it never changes. */
interface Migration {
  /** Its number; the first is 1, without gaps. */
  readonly number: number
  /** What it is for, in a few words. */
  readonly name: string
  /** Its statements, each without a semicolon. */
  readonly statements: readonly string[]
}

/** A schema, and how it is kept. */
export interface MigrationPlan {
  /** All steps, in order. */
  readonly migrations: readonly Migration[]
  /** The table that remembers which ones have been applied, quoted. */
  readonly versionTable: string
  /** Statements that make the version table, and its schema, if they are not there. */
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

/**
 * Brings a schema up to date. The target is an open transaction that holds a lock which nobody else who migrates this
 * schema can hold. Refuses a schema newer than the code with MIGRATION_NEWER.
 */
export async function applyMigrations(target: MigrationTarget, plan: MigrationPlan): Promise<MigrationResult> {
  checkNumbers(plan.migrations)
  for (const statement of plan.prepare) await target.run(statement)
  const from = await appliedNumber(target, plan)
  refuseNewer(from, plan)
  for (const migration of plan.migrations.slice(from)) {
    for (const statement of migration.statements) await target.run(statement)
    await target.run(insertVersion(plan, migration))
  }
  return { from, to: plan.migrations.length }
}

/** How far a schema is; 0 where its version table is empty. The table must be there. */
export async function appliedNumber(target: MigrationTarget, plan: MigrationPlan): Promise<number> {
  const [row] = await target.run(`SELECT coalesce(max(number), 0) AS number FROM ${plan.versionTable}`)
  return Number(row?.['number'] ?? 0)
}

/** Refuses a schema that a newer version of the code has made. */
export function refuseNewer(applied: number, plan: MigrationPlan): void {
  const known = plan.migrations.length
  if (applied <= known) return
  throw new RepriseError(
    'MIGRATION_NEWER',
    `The schema is at migration ${applied}, and this version knows ${known}: a newer version has migrated it.`,
    { details: { applied, known } },
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

function insertVersion({ versionTable, nowMs }: MigrationPlan, { number, name }: Migration): string {
  const text = name.replaceAll("'", "''")
  return `INSERT INTO ${versionTable} (number, name, applied_at_ms) VALUES (${number}, '${text}', ${nowMs})`
}

function checkNumbers(migrations: readonly Migration[]): void {
  for (const [place, { number }] of migrations.entries()) {
    if (number !== place + 1) {
      throw new RepriseError('ARGUMENT_INVALID', `Migration ${place + 1} has the number ${number}.`, {
        details: { place, number },
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
