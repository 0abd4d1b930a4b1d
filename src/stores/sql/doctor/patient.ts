// What is looked at in every SQL store: its migrations and tables, whether there is room to write, and its clock.

import type { Finding } from '../../../atomicity/index.js'
import { otherPepper, type Pepper } from '../../../identity/index.js'
import type { Clock } from '../../../kernel/index.js'
import type { SqlDialect } from '../dialect.js'
import { messageIndexNames, messageTableNames } from '../messages/migration.js'
import type { SchemaState } from '../migrations.js'
import { addedColumns, auditColumns, hasDue, hasEnd } from '../records/migration.js'
import { isOurFormat, isOver } from '../records/rows.js'
import { markerName } from '../records/statements.js'
import { sequenceColumns } from '../sequences.js'
import { seenColumns, windowColumns } from '../windows/migration.js'
import { found, sharedFindings } from './findings.js'

type Row = Readonly<Record<string, unknown>>

/** A store that is looked at. */
export interface Patient {
  readonly dialect: SqlDialect
  /** What the names of Reprise's tables begin with. */
  readonly prefix: string
  /** The pepper that its records should be under; undefined: none. */
  readonly pepper?: Pepper | undefined
  /** The quoted name of a table of Reprise, by what follows the prefix. */
  named(table: string): string
  readonly clock: Clock
  /** Asks one question that waits for nobody, in a transaction of its own or in none. */
  ask(text: string, values?: readonly string[]): Promise<readonly Row[]>
  /** Runs a statement in a transaction of its own that is rolled back. */
  tryOut(text: string): Promise<unknown>
  /** The names that an error of the store goes by. */
  signsOf(error: unknown): readonly string[]
}

/** What the last migration leaves behind, by what follows the prefix: tables with their columns, and indexes. */
const types = { text: '', integer: '', bigint: '' }
const namesOf = (columns: readonly string[]): readonly string[] =>
  columns.map((column) => column.split(' ', 1)[0] ?? '')
const tablesUnder = (pepper: Pepper | undefined): Readonly<Record<string, readonly string[]>> => ({
  [markerName(pepper?.id)]: ['id', 'format', 'value', 'claimed_at_ms', ...namesOf(addedColumns(types))],
  audit: ['number', ...namesOf(auditColumns(types))],
  fence: [],
  sequence: namesOf(sequenceColumns(types)).filter((name) => name !== 'PRIMARY'),
  window: namesOf(windowColumns(types)),
  seen: namesOf(seenColumns(types)),
  ...Object.fromEntries(messageTableNames.map((name) => [name, []])),
})
const indexes: readonly string[] = [
  'marker_due',
  'marker_expires',
  'audit_id',
  'audit_at',
  'seen_order',
  ...messageIndexNames,
]

/** The names of all that the migrations make for records, to look for. */
export function partNames({ prefix, pepper }: Pick<Patient, 'prefix' | 'pepper'>): readonly string[] {
  return [...Object.keys(tablesUnder(pepper)), ...indexes].map((name) => prefix + name)
}

/** What is there of a schema, by the names of its parts: for a table those of its columns, for others none. */
export type Parts = ReadonlyMap<string, ReadonlySet<string>>

/** The parts out of rows with a `name` and, for a column, its `column`. */
export function partsOf(rows: readonly Row[]): Parts {
  const parts = new Map<string, Set<string>>()
  for (const { name, column } of rows) {
    const columns = parts.get(String(name)) ?? new Set()
    parts.set(String(name), columns)
    if (column !== null && column !== undefined) columns.add(String(column))
  }
  return parts
}

/** What a look at the parts says. */
export function partFindings(patient: Pick<Patient, 'prefix' | 'pepper'>, parts: Parts): readonly Finding[] {
  const { prefix, pepper } = patient
  const missing = partNames(patient).filter((name) => !parts.has(name))
  if (missing.length === partNames(patient).length) return [found(sharedFindings, 'MIGRATIONS_MISSING')]
  for (const [table, columns] of Object.entries(tablesUnder(pepper))) {
    const there = parts.get(prefix + table)
    if (there === undefined) continue
    missing.push(...columns.filter((column) => !there.has(column)).map((column) => `${prefix}${table}.${column}`))
  }
  if (missing.length === 0) return []
  return [found(sharedFindings, 'TABLES_INCOMPLETE', `It is missing: ${missing.join(', ')}.`)]
}

/**
 * What the number of the last migration says, and the pepper; `known` is how many migrations this version has.
 * Undefined: none was applied.
 */
export function migrationFindings(state: SchemaState | undefined, known: number, pepper?: Pepper): readonly Finding[] {
  if (state !== undefined && state.applied > 0 && state.pepper !== pepper?.id) {
    return [found(sharedFindings, 'PEPPER_MISMATCH', otherPepper(state.pepper, pepper?.ids ?? []).message)]
  }
  const { applied, needed } = state ?? { applied: 0, needed: 0 }
  if (applied === known) return []
  const seen = `They are at migration ${applied}; this version knows ${known}`
  if (applied < known) return [found(sharedFindings, 'MIGRATIONS_MISSING', `${seen}.`)]
  if (needed <= known) return [found(sharedFindings, 'MIGRATIONS_AHEAD', `${seen}.`)]
  return [found(sharedFindings, 'MIGRATIONS_NEWER', `${seen}, and ${needed} is needed.`)]
}

/**
 * Whether the fence has given out a number that it is below of now: somebody made it anew. `current` is the last one,
 * as an expression. Only claims that are not over are compared, which an index finds, and epochs of producers and of
 * keys of messages.
 */
export async function fenceFindings(patient: Patient, current: string): Promise<readonly Finding[]> {
  const inUse = `SELECT max(fence) AS taken FROM ${patient.named(markerName(patient.pepper?.id))} WHERE ${hasDue}`
  const opened = `SELECT max(epoch) AS taken FROM ${patient.named('sequence')}`
  const numbered = `SELECT max(epoch) AS taken FROM ${patient.named('head')}`
  const [row] = await patient.ask(
    `SELECT max(taken) AS highest, ${current} AS current FROM (${inUse} UNION ALL ${opened} UNION ALL ${numbered}) AS numbers`,
  )
  const [highest, last] = [Number(row?.['highest'] ?? 0), Number(row?.['current'] ?? 0)]
  return highest > last ? [found(sharedFindings, 'FENCE_BEHIND', `It is at ${last}, and ${highest} is in use.`)] : []
}

/** So long after its time a record is still there only where nobody purges, in ms: whoever does does it every day. */
const purgeLateMs = 86_400_000
/** What consumers have processed is forgotten after a month, where nobody says otherwise. */
const processedLateMs = 31 * purgeLateMs
/** So long after its time a record is due only where nobody sweeps, in ms. */
const sweepLateMs = 3_600_000

/**
 * Whether anybody does the upkeep, by what it should have forgotten or looked at long ago. Each question reads one end
 * of an index.
 */
export async function upkeepFindings({ ask, dialect, named, pepper }: Patient): Promise<readonly Finding[]> {
  const marker = named(markerName(pepper?.id))
  const now = `(SELECT ${dialect.nowMs})`
  const ended = `SELECT min(expires_at_ms) FROM ${marker} WHERE ${hasEnd} AND ${isOver} AND ${isOurFormat}`
  const memory = `(SELECT coalesce(max(memory_ms), 0) FROM ${named('reader')})`
  const processed = `SELECT min(at_ms) + ${memory} FROM ${named('processed')}`
  const due = `SELECT min(due_at_ms) FROM ${marker} WHERE ${hasDue} AND mode = 'leased' AND state IN ('claimed', 'unknown') AND ${isOurFormat}`
  const [row] = await ask(
    `SELECT ${now} - (${ended}) AS ended_ms, ${now} - (${processed}) AS processed_ms, ${now} - (${due}) AS due_ms`,
  )
  const lateMs = (column: string): number => Number(row?.[column] ?? 0)
  const findings: Finding[] = []
  if (lateMs('ended_ms') > purgeLateMs) {
    const seen = `A window ended ${inHours(lateMs('ended_ms'))} ago.`
    findings.push(found(sharedFindings, 'PURGE_OVERDUE', seen))
  } else if (lateMs('processed_ms') > processedLateMs) {
    const seen = `The memory of a processed message ended ${inHours(lateMs('processed_ms'))} ago.`
    findings.push(found(sharedFindings, 'PURGE_OVERDUE', seen))
  }
  if (lateMs('due_ms') > sweepLateMs) {
    findings.push(found(sharedFindings, 'SWEEP_OVERDUE', `One is ${inHours(lateMs('due_ms'))} late.`))
  }
  return findings
}

function inHours(ms: number): string {
  return `${Math.floor(ms / 3_600_000)} hours`
}

/** As much as is tried to be written: more than what a page has left. */
const probeBytes = 65_536

/** What an error of the store means; undefined: nothing that is known. */
export type Judge = (error: unknown) => Finding | undefined

/** What is found, or what the error means that comes instead. Throws what means nothing. */
export async function foundOr(judge: Judge, find: () => Promise<readonly Finding[]>): Promise<readonly Finding[]> {
  try {
    return await find()
  } catch (error) {
    const finding = judge(error)
    if (finding === undefined) throw error
    return [finding]
  }
}

/**
 * Writes something that is rolled back, to see whether it can be written. `full` is the sign of an error that says that
 * there is no room; `refusal` gives the code of another one with which the store refused the row.
 */
export async function writeFindings(
  patient: Patient,
  bytes: string,
  { full, refusal }: { readonly full: string; refusal(error: unknown): string | undefined },
): Promise<readonly Finding[]> {
  const text = `INSERT INTO ${patient.named(markerName(patient.pepper?.id))} (id, claimed_at_ms, value) VALUES ('doctor', 0, ${bytes})`
  const judge: Judge = (error) => {
    const isFull = patient.signsOf(error).includes(full)
    const code = isFull ? full : refusal(error)
    if (code === undefined) return undefined
    return found(sharedFindings, isFull ? 'DISK_FULL' : 'WRITE_REFUSED', `${code} was the answer to a write.`)
  }
  return foundOr(judge, async () => {
    await patient.tryOut(text.replace('$bytes', String(probeBytes)))
    return []
  })
}

/** Clocks that differ by less are taken for equal, in ms. */
const mostApartMs = 1_000
/** Of so many answers the quickest is believed, which knows best when it was given. */
const clockQuestions = 3

/**
 * By how many ms at least the clock of the store is ahead of the one of this process; negative: behind; 0: not for
 * certain. The store read its clock at some moment between question and answer, and nobody knows at which: that much is
 * taken off.
 */
export async function clocksApartMs({ ask, dialect, clock }: Patient): Promise<number> {
  let best = { tookMs: Number.POSITIVE_INFINITY, aheadMs: 0 }
  for (let asked = 0; asked < clockQuestions; asked += 1) {
    const [sentAtMs, wallMs] = [clock.monotonicMs(), clock.wallMs()]
    const [row] = await ask(`SELECT ${dialect.nowMs} AS now_ms`)
    const tookMs = clock.monotonicMs() - sentAtMs
    if (tookMs < best.tookMs) best = { tookMs, aheadMs: Number(row?.['now_ms']) - (wallMs + tookMs / 2) }
  }
  const { tookMs, aheadMs } = best
  const certainMs = Math.abs(aheadMs) - tookMs / 2
  return certainMs > mostApartMs ? Math.sign(aheadMs) * Math.floor(certainMs) : 0
}
