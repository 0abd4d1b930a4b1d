// What PostgreSQL says in its own way about records: values as part of the text, for statements that share a message
// with BEGIN or COMMIT, and an outcome that fails where its claim is gone.

import type { Expected, RecordDraft, RecordOutcome } from '../../../atomicity/index.js'
import type { StoredKey } from '../../../identity/index.js'
import { type Binding, claimCells, recordSelection, storableMs } from '../../sql/index.js'
import { nowMs, type PostgresSchema } from '../migrations.js'
import { literal } from './literal.js'

export type { Binding } from '../../sql/index.js'

/** What statements need to know of a store's tables. */
export type RecordTables = Pick<PostgresSchema, 'statements'>

/** Values as part of the text. */
export const literals: Binding = { text: literal, number: (value) => `${value}::bigint` }

/** Reads a record, and the time also where there is none. */
export function readText({ statements }: RecordTables, id: string): string {
  const { marker } = statements.tables
  return `SELECT ${nowMs} AS now_ms, ${recordSelection('m.')} FROM (SELECT 1) AS one LEFT JOIN ${marker} AS m ON m.id = ${id}`
}

/** Inserts a claim where there is none. */
export function claimText({ statements }: RecordTables, id: StoredKey, draft: RecordDraft, bind: Binding): string {
  return statements.claimText(claimCells(id, draft, bind))
}

/** Puts a new claim in the place of a record that was read. */
export function reclaimText(
  { statements }: RecordTables,
  id: StoredKey,
  over: Expected,
  draft: RecordDraft,
  bind: Binding,
): string {
  return statements.reclaimText(id, over, draft, bind)
}

/** What the error of {@link outcomeText} shows when the claim is not there. */
export const goneSign = 'reprise marker'

/** The values of {@link outcomeText}, as SQL expressions. */
export type OutcomeCells = Readonly<Record<'id' | 'token' | 'state' | 'codec' | 'value' | 'rememberedMs', string>>

/** The values of an outcome as literals. */
export function outcomeCells(id: StoredKey, token: string, outcome: RecordOutcome): OutcomeCells {
  const { state, codec, value, rememberedMs } = outcome
  const cell = (text: string | undefined): string => (text === undefined ? 'NULL' : literal(text))
  return {
    id: literal(id),
    token: literal(token),
    state: literal(state),
    codec: cell(codec),
    value: cell(value),
    rememberedMs:
      rememberedMs === Number.POSITIVE_INFINITY ? 'NULL::bigint' : literals.number(storableMs(rememberedMs)),
  }
}

/**
 * Writes an outcome into a claim of this transaction, and fails where that is not there: what follows in the same
 * message is not reached then. The row is met by its unique index, as a claim meets it, so there is nothing to plan;
 * one that had to be inserted, or is somebody else's, is the failure.
 */
export function outcomeText({ statements }: RecordTables, cells: OutcomeCells): string {
  const { id, token, state, codec, value, rememberedMs } = cells
  // Made of a column, or it would be computed, and fail, when the statement is planned.
  const gone = `(m.looks::text || ' ${goneSign}')::integer`
  return `INSERT INTO ${statements.tables.marker} AS m (id, claimed_at_ms, looks) VALUES (${id}, ${nowMs}, -1)
    ON CONFLICT (id) DO UPDATE SET state = CASE WHEN m.token = ${token} AND m.state = 'claimed' THEN ${state} ELSE ${gone}::text END,
    codec = ${codec}, value = ${value}, completed_at_ms = excluded.claimed_at_ms, expires_at_ms = excluded.claimed_at_ms + ${rememberedMs}
    RETURNING CASE WHEN m.looks < 0 THEN ${gone} ELSE 1 END`
}
