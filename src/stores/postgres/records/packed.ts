// A record in four columns in place of twenty: what describes and decodes so many columns costs a driver more than everything else about reading one row.

import type { Seen, StoredRecord } from '../../../atomicity/index.js'

// Short words and numbers; what may be long is not written twice.
const packed: readonly string[] = [
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
  'because',
]

/** What to select of a record in a table of this name. As text, since drivers can be told to read JSON in other ways. */
export function packedSelection(table: string): string {
  const cells = packed.map((name) =>
    name === 'first_claimed_at_ms'
      ? `coalesce(${table}.first_claimed_at_ms, ${table}.claimed_at_ms)`
      : `${table}.${name}`,
  )
  return `json_build_array(${cells.join(', ')})::text AS packed, ${table}.value, ${table}.input`
}

/** The record of a row with {@link packedSelection} and `now_ms`. */
export function packedSeen(row: Readonly<Record<string, unknown>> | undefined): Seen {
  const nowMs = Number(row?.['now_ms'])
  const cells = JSON.parse(String(row?.['packed'] ?? '[]')) as readonly unknown[]
  if (row === undefined || (cells[0] ?? null) === null) return { record: undefined, nowMs }
  const text = (place: number): string | undefined => (cells[place] as string | null) ?? undefined
  const perhaps = (place: number): number | undefined => (cells[place] as number | null) ?? undefined
  const record: StoredRecord = {
    format: Number(cells[0]),
    version: Number(cells[1]),
    mode: cells[2] as StoredRecord['mode'],
    operation: text(3),
    scope: text(4),
    fingerprint: text(5),
    state: cells[6] as StoredRecord['state'],
    token: text(7),
    fence: perhaps(8),
    firstClaimedAtMs: Number(cells[9]),
    claimedAtMs: Number(cells[10]),
    dueAtMs: perhaps(11),
    completedAtMs: perhaps(12),
    expiresAtMs: perhaps(13),
    claims: Number(cells[14]),
    looks: Number(cells[15]),
    codec: text(16),
    value: given(row['value']),
    input: given(row['input']),
    because: text(17),
  }
  return { record, nowMs }
}

function given(cell: unknown): string | undefined {
  return cell === null || cell === undefined ? undefined : String(cell)
}
