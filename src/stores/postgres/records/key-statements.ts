// Claim and outcome of a transaction's key: the claim goes in one write with BEGIN, the outcome with COMMIT.
//
// Neither of them searches a table by a plan that could grow stale: an INSERT goes by its unique index.

import type { Expected, RecordDraft } from '../../../atomicity/index.js'
import type { StoredKey } from '../../../identity/index.js'
import type { Query, RecordStatements } from '../../sql/index.js'
import { type OwnStatement, ownStatement, type Step } from '../connection/batch.js'
import { nowMs } from '../migrations.js'

/** What the error of an outcome shows when the claim is not there. */
export const goneSign = 'reprise marker'

/** COMMIT. */
export const commitStep: Step = { statement: ownStatement('COMMIT'), values: [] }

/** Has values read as UTF-8 until the end of the transaction. Seldom needed, so it is not prepared. */
export const utf8Step: Step = {
  statement: { name: '', text: "SELECT 1 WHERE set_config('client_encoding', 'UTF8', true) IS NULL" },
  values: [],
}

/** The statements of a store for the keys of transactions. */
export class KeyStatements {
  /** Inserts a claim where there is no record; its places: id, mode, token, operation, scope, fingerprint, input. */
  readonly claim: OwnStatement
  /**
   * Writes the outcome into a claim of this transaction, and fails where that is gone. Its places: id, token, state,
   * codec, value, and how long it is remembered, in ms.
   */
  readonly outcome: OwnStatement
  /**
   * Prepares what ends a transaction. It goes with the claim, so that a backend that lacks it is found out before the
   * body has run.
   */
  readonly prepareEnd: readonly Step[]
  readonly #records: RecordStatements

  constructor(records: RecordStatements) {
    this.#records = records
    this.claim = ownStatement(records.claim('' as StoredKey, { mode: 'atomic', token: '' }).text)
    this.outcome = ownStatement(outcomeText(records))
    this.prepareEnd = [this.outcome, commitStep.statement].map((statement) => ({ statement, values: undefined }))
  }

  /** The claim with its values. */
  claimAlone(id: StoredKey, draft: RecordDraft): Step {
    return stepOf(this.#records.claim(id, draft))
  }

  /** Reads a record, and the time. */
  read(id: StoredKey): Step {
    return stepOf(this.#records.read(id))
  }

  /** Puts a claim in the place of a record that was read. */
  reclaim(id: StoredKey, over: Expected, draft: RecordDraft): Step {
    return stepOf(this.#records.reclaim(id, over, draft))
  }
}

function stepOf({ text, values }: Query): Step {
  return { statement: ownStatement(text), values: values.map((value) => (value === null ? null : String(value))) }
}

/** The row of {@link RecordStatements.read}, out of its cells. */
export function rowOfRecord(cells: readonly (string | null)[] | undefined): Readonly<Record<string, unknown>> {
  const [now_ms, packed, value, input] = cells ?? []
  return { now_ms, packed, value, input }
}

// The row is met by its unique index, as a claim meets it, so there is nothing to plan; one that had to be inserted, or
// is somebody else's, is the failure.
function outcomeText({ tables }: RecordStatements): string {
  // Made of a column, or it would be computed, and fail, when the statement is planned.
  const gone = `(m.looks::text || ' ${goneSign}')::integer`
  return `INSERT INTO ${tables.marker} AS m (id, claimed_at_ms, looks) VALUES ($1, ${nowMs}, -1)
    ON CONFLICT (id) DO UPDATE SET state = CASE WHEN m.token = $2 AND m.state = 'claimed' THEN $3 ELSE ${gone}::text END,
    codec = $4, value = $5, completed_at_ms = excluded.claimed_at_ms, expires_at_ms = excluded.claimed_at_ms + $6::bigint
    RETURNING CASE WHEN m.looks < 0 THEN ${gone} ELSE 1 END`
}
