// A record as a row: the columns that every SQL store has, and the way between both. PostgreSQL gives 64-bit numbers as
// text, SQLite as numbers.

import {
  type AuditEntry,
  type NamedRecord,
  recordFormat,
  type Seen,
  type StoredRecord,
} from '../../../atomicity/index.js'
import type { StoredKey } from '../../../identity/index.js'
import { RepriseError } from '../../../kernel/index.js'
import type { SqlDialect } from '../dialect.js'

/** A column of a record. */
export type RecordColumn =
  | 'format'
  | 'version'
  | 'mode'
  | 'operation'
  | 'scope'
  | 'fingerprint'
  | 'state'
  | 'token'
  | 'fence'
  | 'first_claimed_at_ms'
  | 'claimed_at_ms'
  | 'due_at_ms'
  | 'completed_at_ms'
  | 'expires_at_ms'
  | 'claims'
  | 'looks'
  | 'codec'
  | 'value'
  | 'input'
  | 'because'

/** The columns of a record without its name, in the order of {@link recordValues}. */
export const recordColumns: readonly RecordColumn[] = [
  'format',
  'version',
  'mode',
  'operation',
  'scope',
  'fingerprint',
  'state',
  'token',
  'fence',
  'first_claimed_at_ms',
  'claimed_at_ms',
  'due_at_ms',
  'completed_at_ms',
  'expires_at_ms',
  'claims',
  'looks',
  'codec',
  'value',
  'input',
  'because',
]

/** A column as an expression. What format 1 does not have, its first claim, is its only claim. */
function cellOf(name: RecordColumn, table: string): string {
  return name === 'first_claimed_at_ms'
    ? `coalesce(${table}first_claimed_at_ms, ${table}claimed_at_ms)`
    : `${table}${name}`
}

/**
 * The columns as a list to select.
 *
 * @param table What stands before each column: `'m.'`, or nothing.
 */
export function recordSelection(table: string): string {
  const named = (name: RecordColumn): string => (name === 'first_claimed_at_ms' ? ` AS ${name}` : '')
  return recordColumns.map((name) => `${cellOf(name, table)}${named(name)}`).join(', ')
}

// What may be long is not written twice; by their places in a record, the first one first.
const long = recordColumns.flatMap((name, place) => (name === 'value' || name === 'input' ? [{ name, place }] : []))
const short = recordColumns.filter((name) => !long.some((one) => one.name === name))

/**
 * The same in as few columns as the dialect allows: to describe and decode twenty columns costs some drivers more than
 * everything else about reading one row.
 */
export function selection({ jsonArray }: SqlDialect, table: string): string {
  if (jsonArray === undefined) return recordSelection(table)
  const cells = jsonArray(short.map((name) => cellOf(name, table)).join(', '))
  return `${cells} AS packed, ${table}value, ${table}input`
}

/** What may be written to: a row of a newer format is left to those who understand it. */
export const isOurFormat: string = `format <= ${recordFormat}`

/** The words of the states that are over. */
export const isOver: string = "state IN ('succeeded', 'failed')"

/** A row by column names, or as a list of its cells. */
export type RecordRow = Readonly<Record<string, unknown>> | readonly unknown[]

/** The record of a row, and the time that is before it as `now_ms`. */
export function seenIn(row: RecordRow | undefined): Seen {
  if (isList(row)) return { record: recordIn(row, 1), nowMs: Number(row[0]) }
  return { record: recordOf(row), nowMs: Number(row?.['now_ms']) }
}

/**
 * The record of a row; undefined where the row has none (an outer join that found nothing). Of a newer format nothing
 * is checked: its `format` can be relied on, the rest is whatever is there.
 */
export function recordOf(row: Readonly<Record<string, unknown>> | undefined): StoredRecord | undefined {
  if (row === undefined) return undefined
  const { packed } = row
  if (packed === undefined) return recordIn(recordColumns.map((name) => row[name]))
  if (packed === null) return undefined
  const cells = JSON.parse(String(packed)) as unknown[]
  for (const { name, place } of long) cells.splice(place, 0, row[name])
  return recordIn(cells)
}

// Where each column is among the cells of a record.
const at = Object.fromEntries(recordColumns.map((name, index) => [name, index])) as Record<RecordColumn, number>

// The same of cells in the order of the columns: rows as lists cost some drivers half as much as rows by name.
function recordIn(cells: readonly unknown[], from = 0): StoredRecord | undefined {
  if (isAbsent(cells[from + at.format])) return undefined
  return {
    format: Number(cells[from + at.format]),
    version: Number(cells[from + at.version]),
    mode: cells[from + at.mode] as StoredRecord['mode'],
    operation: textOf(cells[from + at.operation]),
    scope: textOf(cells[from + at.scope]),
    fingerprint: textOf(cells[from + at.fingerprint]),
    state: cells[from + at.state] as StoredRecord['state'],
    token: textOf(cells[from + at.token]),
    fence: numberOf(cells[from + at.fence]),
    firstClaimedAtMs: Number(cells[from + at.first_claimed_at_ms]),
    claimedAtMs: Number(cells[from + at.claimed_at_ms]),
    dueAtMs: numberOf(cells[from + at.due_at_ms]),
    completedAtMs: numberOf(cells[from + at.completed_at_ms]),
    expiresAtMs: numberOf(cells[from + at.expires_at_ms]),
    claims: Number(cells[from + at.claims]),
    looks: Number(cells[from + at.looks]),
    codec: textOf(cells[from + at.codec]),
    value: textOf(cells[from + at.value]),
    input: textOf(cells[from + at.input]),
    because: textOf(cells[from + at.because]),
  }
}

/** The values of a record, in the order of {@link recordColumns}. */
export function recordValues(record: StoredRecord): (string | number | null)[] {
  return [
    record.format,
    record.version,
    record.mode,
    record.operation ?? null,
    record.scope ?? null,
    record.fingerprint ?? null,
    record.state,
    record.token ?? null,
    record.fence ?? null,
    record.firstClaimedAtMs,
    record.claimedAtMs,
    wholeOf(record.dueAtMs),
    record.completedAtMs ?? null,
    wholeOf(record.expiresAtMs),
    record.claims,
    record.looks,
    record.codec ?? null,
    record.value ?? null,
    record.input ?? null,
    record.because ?? null,
  ]
}

/** The records of rows with their names. */
export function namedRecords(rows: readonly Readonly<Record<string, unknown>>[]): NamedRecord[] {
  return rows.map((row) => ({ id: row['id'] as StoredKey, record: recordOf(row) as StoredRecord }))
}

/** The most audit notes that are handed out at once. */
export const mostNotes = 1_000

/** What an audit note is read by. */
export const auditSelection: string = 'id, at_ms, action, actor, reason, from_state, to_state'

/** The audit note of a row. */
export function auditOf(row: Readonly<Record<string, unknown>>): AuditEntry {
  return {
    id: row['id'] as StoredKey,
    atMs: Number(row['at_ms']),
    action: row['action'] as AuditEntry['action'],
    actor: String(row['actor']),
    reason: String(row['reason']),
    from: row['from_state'] as AuditEntry['from'],
    to: row['to_state'] as AuditEntry['to'],
  }
}

/** A span in whole ms, rounded up, and short enough that no sum of it and a time is inexact. */
export function storableMs(ms: number): number {
  return Math.min(Math.ceil(ms), 2 ** 52)
}

/**
 * A limit of rows as the port states it. Refuses another one with ARGUMENT_INVALID: a negative LIMIT means none at all
 * to SQLite.
 */
export function checkRows(limit: number, most: number): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= most) return limit
  throw new RepriseError('ARGUMENT_INVALID', `The limit of rows is a whole number from 1 to ${most}.`)
}

function wholeOf(ms: number | undefined): number | null {
  return ms === undefined ? null : storableMs(ms)
}

function isList(row: RecordRow | undefined): row is readonly unknown[] {
  return Array.isArray(row)
}

function isAbsent(cell: unknown): cell is null | undefined {
  return cell === null || cell === undefined
}

function textOf(cell: unknown): string | undefined {
  return isAbsent(cell) ? undefined : String(cell)
}

function numberOf(cell: unknown): number | undefined {
  return isAbsent(cell) ? undefined : Number(cell)
}
