// A record as a row: the columns that every SQL store has, and the way between both. PostgreSQL gives 64-bit numbers as text, SQLite as numbers.

import { type AuditEntry, type NamedRecord, recordFormat, type StoredRecord } from '../../../atomicity/index.js'
import type { StoredKey } from '../../../identity/index.js'
import { RepriseError } from '../../../kernel/index.js'

/** The columns of a record without its name, in the order of {@link recordValues}. */
export const recordColumns: readonly string[] = [
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

/** The columns as a list to select, each with `table.` before it. What format 1 does not have, its first claim, is its only claim. */
export function recordSelection(table: string): string {
  const cells = recordColumns.map((name) =>
    name === 'first_claimed_at_ms'
      ? `coalesce(${table}.first_claimed_at_ms, ${table}.claimed_at_ms) AS first_claimed_at_ms`
      : `${table}.${name}`,
  )
  return cells.join(', ')
}

/** What may be written to: a row of a newer format is left to those who understand it. */
export const isOurFormat: string = `format <= ${recordFormat}`

/** The words of the states that are over. */
export const isOver: string = "state IN ('succeeded', 'failed')"

/**
 * The record of a row; undefined where the row has none (an outer join that found nothing). Of a newer format nothing is checked: its `format` can be relied on, the rest
 * is whatever is there.
 */
export function recordOf(row: Readonly<Record<string, unknown>> | undefined): StoredRecord | undefined {
  if (row === undefined || row['format'] === null || row['format'] === undefined) return undefined
  return {
    format: Number(row['format']),
    version: Number(row['version']),
    mode: row['mode'] as StoredRecord['mode'],
    operation: textOf(row['operation']),
    scope: textOf(row['scope']),
    fingerprint: textOf(row['fingerprint']),
    state: row['state'] as StoredRecord['state'],
    token: textOf(row['token']),
    fence: numberOf(row['fence']),
    firstClaimedAtMs: Number(row['first_claimed_at_ms']),
    claimedAtMs: Number(row['claimed_at_ms']),
    dueAtMs: numberOf(row['due_at_ms']),
    completedAtMs: numberOf(row['completed_at_ms']),
    expiresAtMs: numberOf(row['expires_at_ms']),
    claims: Number(row['claims']),
    looks: Number(row['looks']),
    codec: textOf(row['codec']),
    value: textOf(row['value']),
    input: textOf(row['input']),
    because: textOf(row['because']),
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
export function wholeMs(ms: number): number {
  return Math.min(Math.ceil(ms), 2 ** 52)
}

/** A limit of rows as the port states it. Refuses another one with ARGUMENT_INVALID: a negative LIMIT means none at all to SQLite. */
export function checkRows(limit: number, most: number): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= most) return limit
  throw new RepriseError('ARGUMENT_INVALID', `The limit of rows is a whole number from 1 to ${most}.`)
}

function wholeOf(ms: number | undefined): number | null {
  return ms === undefined ? null : wholeMs(ms)
}

function textOf(cell: unknown): string | undefined {
  return cell === null || cell === undefined ? undefined : String(cell)
}

function numberOf(cell: unknown): number | undefined {
  return cell === null || cell === undefined ? undefined : Number(cell)
}
