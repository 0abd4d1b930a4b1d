// Claim and outcome prepared on a connection: to parse and plan them anew costs the server more than to carry them out.
//
// Both share a message with BEGIN or COMMIT, so they are prepared and called by SQL. That the backend has them is seen from the claim, before the body has done anything: where a pooler
// changed the backend, or somebody threw its statements away, the claim is sent once more as a plain text. Neither of them searches a table by a plan that could grow stale: an INSERT goes
// by its unique index.

import type { RecordDraft, RecordOutcome } from '../../../atomicity/index.js'
import type { StoredKey } from '../../../identity/index.js'
import { sha256 } from '../../../kernel/index.js'
import { wholeMs } from '../../sql/index.js'
import { signsOf } from '../classification.js'
import { type Binding, claimText, literals, outcomeText, type RecordTables } from './statements.js'

/** As often may a backend turn out not to have them; from then on a pooler is taken to be in between, and all is sent as text. */
const mostFailures = 3

// Of all stores of the process: two on one pool and one schema share what is prepared.
const preparedOn = new WeakMap<object, Set<string>>()

/** The kept statements of a store. */
export class KeptStatements {
  readonly #claim: string
  readonly #outcome: string
  readonly #preparation: string
  #failures = 0

  constructor(tables: RecordTables) {
    const claim = claimText(tables, '$1' as StoredKey, claimPlaces, places)
    const outcome = outcomeText(tables, outcomePlaces)
    this.#claim = nameOf('claim', claim)
    this.#outcome = nameOf('outcome', outcome)
    this.#preparation = [
      `PREPARE ${this.#claim} (text, text, text, text, text, text) AS ${claim}; `,
      `PREPARE ${this.#outcome} (text, text, text, text, text, bigint) AS ${outcome}; `,
    ].join('')
  }

  /** The claim as a call, with what has to come before it on this connection; undefined: it is none that is kept, or nothing is kept any more. */
  claim(client: object, id: StoredKey, draft: RecordDraft): string | undefined {
    const { mode, token, operation, scope, fingerprint, input, leaseMs } = draft
    if (this.#failures >= mostFailures || input !== undefined || leaseMs !== undefined) return undefined
    const values = [id, mode, token, operation, scope, fingerprint].map(cell).join(', ')
    const call = `EXECUTE ${this.#claim} (${values})`
    return preparedOn.get(client)?.has(this.#claim) ? call : `${this.#preparation}${call}`
  }

  /** The outcome as a call, on a connection on which the claim was one. */
  outcome(id: StoredKey, token: string, { state, codec, value, rememberedMs }: RecordOutcome): string {
    const remembered = rememberedMs === Number.POSITIVE_INFINITY ? 'NULL' : String(wholeMs(rememberedMs))
    return `EXECUTE ${this.#outcome} (${[id, token, state, codec, value].map(cell).join(', ')}, ${remembered})`
  }

  /** The server took a claim that is a call, or came to it: both are prepared now. */
  areOn(client: object): void {
    const names = preparedOn.get(client)
    if (names === undefined) preparedOn.set(client, new Set([this.#claim]))
    else names.add(this.#claim)
  }

  /** Whether an error says that the backend does not have what it should, or has what it should not. It is prepared anew the next time, or never again. */
  isLost(client: object, error: unknown): boolean {
    const signs = signsOf(error)
    const lost = signs.includes('26000') || signs.includes('42P05')
    if (lost) {
      this.#failures += 1
      preparedOn.get(client)?.delete(this.#claim)
    } else if (!signs.some((sign) => sign.startsWith('42'))) this.areOn(client)
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
const outcomePlaces = { id: '$1', token: '$2', state: '$3', codec: '$4', value: '$5', rememberedMs: '$6' }

// By the text, so that the same name is the same statement, whoever prepared it.
function nameOf(kind: 'claim' | 'outcome', text: string): string {
  return `reprise_marker_${kind}_${sha256(text)
    .replace(/[^A-Za-z0-9]/g, '')
    .slice(-32)}`
}

function cell(value: string | undefined): string {
  return value === undefined ? 'NULL' : literals.text(value)
}
