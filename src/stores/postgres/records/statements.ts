// What PostgreSQL says in its own way about records: values as part of the text, for statements that share a message
// with BEGIN or COMMIT, and an outcome that fails where its claim is gone.

import type { Binding, RecordStatements } from '../../sql/index.js'
import { nowMs } from '../migrations.js'
import { literal } from './literal.js'

/** Values as part of the text. */
export const literals: Binding = { text: literal, number: (value) => `${value}::bigint` }

/** What the error of {@link outcomeText} shows when the claim is not there. */
export const goneSign = 'reprise marker'

/** The values of {@link outcomeText}, as SQL expressions. */
export type OutcomeCells = Readonly<Record<'id' | 'token' | 'state' | 'codec' | 'value' | 'rememberedMs', string>>

/**
 * Writes an outcome into a claim of this transaction, and fails where that is not there: what follows in the same
 * message is not reached then. The row is met by its unique index, as a claim meets it, so there is nothing to plan;
 * one that had to be inserted, or is somebody else's, is the failure.
 */
export function outcomeText({ tables }: RecordStatements, cells: OutcomeCells): string {
  const { id, token, state, codec, value, rememberedMs } = cells
  // Made of a column, or it would be computed, and fail, when the statement is planned.
  const gone = `(m.looks::text || ' ${goneSign}')::integer`
  return `INSERT INTO ${tables.marker} AS m (id, claimed_at_ms, looks) VALUES (${id}, ${nowMs}, -1)
    ON CONFLICT (id) DO UPDATE SET state = CASE WHEN m.token = ${token} AND m.state = 'claimed' THEN ${state} ELSE ${gone}::text END,
    codec = ${codec}, value = ${value}, completed_at_ms = excluded.claimed_at_ms, expires_at_ms = excluded.claimed_at_ms + ${rememberedMs}
    RETURNING CASE WHEN m.looks < 0 THEN ${gone} ELSE 1 END`
}
