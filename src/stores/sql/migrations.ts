// Numbered migrations that only go forward, with a table that remembers them. Two processes at once are safe: a lock
// lets one go first. Each says with which older code it works, so that a deployment can be rolled back.

import { otherPepper, type Pepper } from '../../identity/index.js'
import { RepriseError } from '../../kernel/index.js'
import { hideNames } from './records/hide-names.js'
import { markerName } from './records/statements.js'

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
  /** The records, whose table has another name under each pepper; the migrations use its plain one. Default: none. */
  readonly records?: PepperedRecords
}

/** Where the records are, and under which pepper. */
interface PepperedRecords {
  /** The quoted name of a table, with its schema where there is one. */
  table(name: string): string
  /** The same without its schema. */
  bare(name: string): string
  /** Undefined: none. */
  readonly pepper: Pepper | undefined
}

/** What a migration may do beside its steps. */
export interface MigrationOptions {
  /**
   * Whether records that are there may be renamed, so that they are found under the pepper that was given: names made
   * without one, or under an earlier one. Whoever works without it is refused from then on. Default false: that is
   * refused with PEPPER_MISMATCH.
   */
  readonly rename?: boolean
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
  /** How many records were renamed for a pepper; absent: it was their pepper already. */
  readonly renamed?: number
}

/** How far a schema is. */
export interface SchemaState {
  /** The number of the last migration that was applied; 0: none. */
  readonly applied: number
  /** The last migration that code has to know to work on it, by what the migrations said which this code lacks. */
  readonly needed: number
  /** Whether the version table has a place for what older code a migration works with. */
  readonly saysWorksWith: boolean
  /** The id of the pepper under which its records are; undefined: none. */
  readonly pepper: string | undefined
}

/**
 * Brings a schema up to date. The target is an open transaction that holds a lock which nobody else who migrates this
 * schema can hold. Leaves a schema alone that newer code has made and that this code may work on, and refuses others
 * with MIGRATION_NEWER. Refuses records under another pepper with PEPPER_MISMATCH.
 */
export async function applyMigrations(
  target: MigrationTarget,
  plan: MigrationPlan,
  options: MigrationOptions = {},
): Promise<MigrationResult> {
  checkNumbers(plan.migrations)
  for (const statement of plan.prepare) await target.run(statement)
  const state = await schemaState(target, plan)
  refuseNewer(state, plan)
  const { records } = plan
  const given = records?.pepper?.ids ?? []
  if (state.pepper !== undefined && !given.includes(state.pepper)) throw otherPepper(state.pepper, given)
  let present = state.pepper
  // It also waits for all who work on the table: what is read from then on stays as it is.
  const rename = async (pepper: string | undefined): Promise<void> => {
    if (records !== undefined && pepper !== present) await target.run(renameTable(records, present, pepper))
    present = pepper
  }
  const missing = plan.migrations.slice(state.applied)
  // Tables of the first versions have no such column. It is added with the next migration and not before, so that
  // migrating an up-to-date schema changes nothing.
  if (missing.length > 0 && !state.saysWorksWith) {
    await target.run(`ALTER TABLE ${plan.versionTable} ADD COLUMN works_with integer`)
  }
  if (missing.length > 0) await rename(undefined)
  for (const migration of missing) {
    for (const statement of migration.statements) await target.run(statement)
    await target.run(insertVersion(plan, migration))
  }
  await rename(given.at(-1))
  const done = { from: state.applied, to: state.applied + missing.length }
  if (records?.pepper === undefined || state.pepper === records.pepper.id) return done
  const renamed = await hideRecords(target, plan, { ...records, pepper: records.pepper }, state, options)
  return { ...done, renamed }
}

async function hideRecords(
  target: MigrationTarget,
  plan: MigrationPlan,
  { table, pepper }: PepperedRecords & { readonly pepper: Pepper },
  { pepper: before }: SchemaState,
  options: MigrationOptions,
): Promise<number> {
  const marker = table(markerName(pepper.id))
  const [window, seen] = [table('window'), table('seen')]
  const some = await target.run(`SELECT 1 AS one FROM ${marker} UNION ALL SELECT 1 AS one FROM ${window} LIMIT 1`)
  if (some.length > 0 && options.rename !== true) {
    const { details } = otherPepper(before, pepper.ids)
    const message =
      'There are records, and their names were made without this pepper: stop whoever works on them, then migrate({ rename: true }), or reprise migrate --rename.'
    throw new RepriseError('PEPPER_MISMATCH', message, { details })
  }
  const renamed = await hideNames(target, { marker, audit: table('audit'), window, seen, nowMs: plan.nowMs }, pepper)
  await target.run(insertPepper(plan, pepper))
  return renamed
}

function renameTable({ table, bare }: PepperedRecords, from: string | undefined, to: string | undefined): string {
  return `ALTER TABLE ${table(markerName(from))} RENAME TO ${bare(markerName(to))}`
}

// Peppers count down from -1, so that no code takes one for a migration.
function insertPepper({ versionTable, nowMs }: MigrationPlan, { id, ids }: Pepper): string {
  return `INSERT INTO ${versionTable} (number, name, applied_at_ms) VALUES (${-ids.length}, '${pepperWord}${id}', ${nowMs})`
}

const pepperWord = 'pepper '

/** How far a schema is. The version table must be there. */
export async function schemaState(target: MigrationTarget, plan: MigrationPlan): Promise<SchemaState> {
  // All columns, since the table may lack one; there are as many rows as migrations.
  const rows = await target.run(`SELECT * FROM ${plan.versionTable}`)
  const known = plan.migrations.length
  let applied = 0
  let needed = 0
  let last = 0
  let pepper: string | undefined
  for (const row of rows) {
    const number = Number(row['number'])
    if (number < last) {
      last = number
      pepper = String(row['name']).slice(pepperWord.length)
    }
    applied = Math.max(applied, number)
    // One that says nothing works with no older code.
    if (number > known) needed = Math.max(needed, Number(row['works_with'] ?? number))
  }
  return { applied, needed, saysWorksWith: rows.every((row) => 'works_with' in row), pepper }
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
  const { records } = plan
  if (records?.pepper !== undefined) {
    lines.push('', `-- for the pepper ${records.pepper.id}`, `${renameTable(records, undefined, records.pepper.id)};`)
    lines.push(`${insertPepper(plan, records.pepper)};`)
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
    'The tables of Reprise are not there, older than this version, or under another pepper than this process has: run db.migrate(), which tells, or what migrationSql() prints, before work with a key.'
  return new RepriseError('MIGRATION_MISSING', message, { cause })
}
