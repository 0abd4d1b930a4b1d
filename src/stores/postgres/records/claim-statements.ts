// Claim and outcome of a transaction's key as text: the claim goes in one message with BEGIN, the outcome with COMMIT.
//
// To parse and plan them anew costs the server more than to carry them out, so they are prepared on the connection, by
// SQL, since a message of several statements takes no parameters. That the backend has them is seen from the claim,
// before the body has done anything: where a pooler changed the backend, or somebody threw its statements away, the
// claim is sent once more as a plain text. Neither of them searches a table by a plan that could grow stale: an INSERT
// goes by its unique index.

import type { RecordDraft, RecordOutcome } from '../../../atomicity/index.js'
import type { StoredKey } from '../../../identity/index.js'
import { sha256 } from '../../../kernel/index.js'
import { type Binding, claimCells, type RecordStatements, storableMs } from '../../sql/index.js'
import { signsOf } from '../classification.js'
import type { KnownConnection } from '../connection/connections.js'
import type { PostgresSchema } from '../migrations.js'
import { literal } from './literal.js'
import { literals, type OutcomeCells, outcomeText } from './statements.js'

/** As often may a backend turn out not to have them; from then on a pooler is taken to be in between. */
const mostFailures = 3

/** The statements of a store for the keys of transactions. */
export class ClaimStatements {
  /** The statements of the records' core. */
  readonly records: RecordStatements
  readonly #claimName: string
  readonly #outcomeName: string
  readonly #preparation: string
  #failures = 0

  constructor({ statements }: Pick<PostgresSchema, 'statements'>) {
    const claim = statements.claimText(claimCells('$1' as StoredKey, claimPlaces, places))
    const outcome = outcomeText(statements, outcomePlaceholders)
    this.records = statements
    this.#claimName = nameOf('claim', claim)
    this.#outcomeName = nameOf('outcome', outcome)
    this.#preparation = [
      `PREPARE ${this.#claimName} (text, text, text, text, text, text) AS ${claim}; `,
      `PREPARE ${this.#outcomeName} (text, text, text, text, text, bigint) AS ${outcome}; `,
    ].join('')
  }

  /**
   * The claim as a call of the prepared statement, with what has to come before it on this connection. Undefined: it
   * has to be sent as text.
   */
  claimCall({ prepared }: KnownConnection, id: StoredKey, draft: RecordDraft): string | undefined {
    const { mode, token, operation, scope, fingerprint, input, leaseMs } = draft
    if (this.#failures >= mostFailures || input !== undefined || leaseMs !== undefined) return undefined
    const values = [id, mode, token, operation, scope, fingerprint].map(cell).join(', ')
    const call = `EXECUTE ${this.#claimName} (${values})`
    return prepared.has(this.#claimName) ? call : `${this.#preparation}${call}`
  }

  /** The claim as text. */
  claim(id: StoredKey, draft: RecordDraft): string {
    return this.records.claimText(claimCells(id, draft, literals))
  }

  /**
   * The outcome, as a call where the claim was one.
   *
   * @param called Whether the claim of this transaction was a call of the prepared statement.
   */
  outcome(called: boolean, id: StoredKey, token: string, outcome: RecordOutcome): string {
    const { state, codec, value, rememberedMs } = outcome
    const cells: OutcomeCells = {
      id: literal(id),
      token: literal(token),
      state: literal(state),
      codec: cell(codec),
      value: cell(value),
      rememberedMs: rememberedMs === Number.POSITIVE_INFINITY ? 'NULL::bigint' : `${storableMs(rememberedMs)}::bigint`,
    }
    if (!called) return outcomeText(this.records, cells)
    // In the order of the placeholders.
    return `EXECUTE ${this.#outcomeName} (${Object.values(cells).join(', ')})`
  }

  /** The server came to the call of a claim: both statements are prepared now. */
  arePrepared({ prepared }: KnownConnection): void {
    prepared.add(this.#claimName)
  }

  /**
   * Whether an error says that the backend does not have what it should, or has what it should not. It is prepared anew
   * the next time, or never again.
   */
  areLost(known: KnownConnection, error: unknown): boolean {
    const signs = signsOf(error)
    const lost = signs.includes('26000') || signs.includes('42P05')
    if (lost) {
      this.#failures += 1
      known.prepared.delete(this.#claimName)
    } else if (!signs.some((sign) => sign.startsWith('42'))) this.arePrepared(known)
    return lost
  }
}

const places: Binding = { text: (place) => place, number: String }
const claimPlaces = {
  mode: '$2',
  token: '$3',
  operation: '$4',
  scope: '$5',
  fingerprint: '$6',
} as unknown as RecordDraft
const outcomePlaceholders: OutcomeCells = {
  id: '$1',
  token: '$2',
  state: '$3',
  codec: '$4',
  value: '$5',
  rememberedMs: '$6',
}

// By the text, so that the same name is the same statement, whoever prepared it.
function nameOf(kind: 'claim' | 'outcome', text: string): string {
  return `reprise_marker_${kind}_${sha256(text)
    .replace(/[^A-Za-z0-9]/g, '')
    .slice(-32)}`
}

function cell(value: string | undefined): string {
  return value === undefined ? 'NULL' : literal(value)
}
