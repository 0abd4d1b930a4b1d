// The key of one transaction: its claim, which goes out with BEGIN, and its outcome, which goes out with COMMIT. Until the claim is known to be ours, the body can do nothing.

import type { Expected, RecordDraft, RecordOutcome, Stored } from '../../../atomicity/index.js'
import type { StoredKey } from '../../../identity/index.js'
import { RepriseError } from '../../../kernel/index.js'
import { LockTimeoutError, migrationMissing, recordOf } from '../../sql/index.js'
import { signsOf } from '../classification.js'
import type { PostgresAnswer } from '../options.js'
import { wholeMs } from '../wire.js'
import type { KeptStatements } from './kept-statements.js'
import {
  claimText,
  goneSign,
  literals,
  outcomeCells,
  outcomeText,
  type RecordTables,
  readText,
  reclaimText,
} from './statements.js'

/** Sends a statement of ours inside the transaction. */
export type Send = (text: string) => Promise<PostgresAnswer>

/** What became of a claim that was sent with BEGIN. */
export type SentClaim = { readonly inserted: boolean } | { readonly error: unknown }

/** How long statements wait for a lock, in ms. */
export interface ClaimWaits {
  /** The claim. */
  readonly waitMs: number
  /** What comes after it. */
  readonly afterwardsMs: number
}

/** A row that comes and goes between two statements is looked for this often. */
const mostRounds = 4

/** The key of a transaction. */
export class TransactionClaim {
  readonly #tables: RecordTables
  readonly #send: Send
  #waits: ClaimWaits | undefined
  // `none`: no key. `sent`: the answer is not asked for yet. `theirs`: somebody else has it.
  #holder: 'none' | 'sent' | 'ours' | 'theirs' = 'none'
  #sent: { readonly id: StoredKey; readonly token: string; readonly became: SentClaim } | undefined
  #ours: { readonly id: StoredKey; readonly token: string } | undefined
  #outcome: string | undefined
  // Where the claim was a call of one that is kept on the connection, the outcome can be one too.
  #kept: { readonly statements: KeptStatements; readonly client: object } | undefined

  constructor(tables: RecordTables, send: Send) {
    this.#tables = tables
    this.#send = send
  }

  /** The claim waits for less long than the statements after it. */
  limit(waits: ClaimWaits): void {
    this.#waits = waits
  }

  /** The claim as a message, alone or behind BEGIN. */
  message(id: StoredKey, draft: RecordDraft): string {
    return this.#limited(claimText(this.#tables, id, draft, literals))
  }

  /** The claim as a call of a statement that is kept on the connection; undefined: it can be none. */
  keptMessage(kept: KeptStatements, client: object, id: StoredKey, draft: RecordDraft): string | undefined {
    const call = kept.claim(client, id, draft)
    return call === undefined ? undefined : this.#limited(call)
  }

  /** The claim that was sent with BEGIN was such a call. */
  wasKept(statements: KeptStatements, client: object): void {
    this.#kept = { statements, client }
  }

  /** Whether the claim of a {@link message} was inserted, by the answer to it. */
  insertedBy(answer: PostgresAnswer | readonly PostgresAnswer[]): boolean {
    return this.#rowsOf(answer) === 1
  }

  /** It was sent with BEGIN, and this became of it. */
  sent(id: StoredKey, { token }: RecordDraft, became: SentClaim): void {
    this.#holder = 'sent'
    this.#sent = { id, token, became }
  }

  /** Why a body may not do anything: the key is not known to be this transaction's. Undefined: it may. */
  get refusal(): RepriseError | undefined {
    if (this.#holder === 'none' || this.#holder === 'ours') return undefined
    const message = 'The key is not claimed by this transaction; nothing may be done under it.'
    return new RepriseError('MARKER_INVALID', message)
  }

  /** Claims the key, or reads who has it. */
  async claim(id: StoredKey, draft: RecordDraft): Promise<'claimed' | Stored> {
    for (let round = 1; round <= mostRounds; round++) {
      if (await this.#inserted(id, draft)) {
        this.#hold(id, draft)
        return 'claimed'
      }
      this.#holder = 'theirs'
      const { rows } = await this.#send(readText(this.#tables, literals.text(id)))
      const [row] = rows
      const record = recordOf(row)
      if (record !== undefined) return { record, nowMs: Number(row?.['now_ms']) }
    }
    throw new RepriseError('ROW_UNSETTLED', `The record came and went ${mostRounds} times while it was claimed.`)
  }

  /** Takes the place of a record that was read. */
  async reclaim(id: StoredKey, over: Expected, draft: RecordDraft): Promise<boolean> {
    const answer = await this.#send(this.#limited(reclaimText(this.#tables, id, over, draft, literals)))
    if (this.#rowsOf(answer) !== 1) return false
    this.#hold(id, draft)
    return true
  }

  /** Keeps the outcome until COMMIT. */
  record(id: StoredKey, outcome: RecordOutcome): void {
    const ours = this.#ours
    if (ours?.id !== id) {
      throw new RepriseError('MARKER_INVALID', 'The marker of the key was not claimed by this transaction.')
    }
    const { token } = ours
    this.#outcome =
      this.#kept?.statements.outcome(id, token, outcome) ?? outcomeText(this.#tables, outcomeCells(id, token, outcome))
  }

  /** COMMIT, with the outcome before it: where that cannot be written, the server does not come to COMMIT. */
  get commit(): string {
    return this.#outcome === undefined ? 'COMMIT' : `${this.#outcome}; COMMIT`
  }

  /** What an error of {@link commit} means to the caller. The error itself is its cause, and says that nothing was stored. */
  explained(error: unknown): unknown {
    // The body may have thrown away what is prepared.
    this.#kept?.statements.isLost(this.#kept.client, error)
    const isGone =
      this.#outcome !== undefined &&
      signsOf(error).includes('22P02') &&
      error instanceof Error &&
      error.message.includes(goneSign)
    return isGone
      ? new RepriseError('MARKER_INVALID', 'The marker that this transaction claimed is gone.', { cause: error })
      : error
  }

  // All of it in one message; where the statement fails, its transaction has failed, and the limit with it.
  #limited(text: string): string {
    const waits = this.#waits
    if (waits === undefined) return text
    return `SET LOCAL lock_timeout = ${wholeMs(waits.waitMs)}; ${text}; SET LOCAL lock_timeout = ${wholeMs(waits.afterwardsMs)}`
  }

  #rowsOf(answer: PostgresAnswer | readonly PostgresAnswer[]): number | null | undefined {
    const fromEnd = this.#waits === undefined ? -1 : -2
    const one = Array.isArray(answer) ? (answer as readonly PostgresAnswer[]).at(fromEnd) : (answer as PostgresAnswer)
    return one?.rowCount
  }

  #hold(id: StoredKey, { token }: RecordDraft): void {
    this.#holder = 'ours'
    this.#ours = { id, token }
  }

  async #inserted(id: StoredKey, draft: RecordDraft): Promise<boolean> {
    const sent = this.#sent
    this.#sent = undefined
    try {
      if (sent === undefined) return this.insertedBy(await this.#send(this.message(id, draft)))
      if ('error' in sent.became) throw sent.became.error
    } catch (error) {
      const signs = signsOf(error)
      throw signs.includes('42P01') || signs.includes('42703') ? migrationMissing(error) : withBlockers(draft, error)
    }
    if (sent.id === id && sent.token === draft.token) return sent.became.inserted
    throw new RepriseError('MARKER_INVALID', 'Another claim than this one was sent with BEGIN.')
  }
}

// By the draft, which all attempts of a call share.
const seenBlockers = new WeakMap<RecordDraft, LockTimeoutError['blockers']>()

// When the wait for a claim is nearly over, its last attempts are too short to ask who stands before them: it is whom an earlier one was told of.
function withBlockers(draft: RecordDraft, error: unknown): unknown {
  if (!(error instanceof LockTimeoutError)) return error
  if (error.blockers.length > 0) seenBlockers.set(draft, error.blockers)
  const seen = seenBlockers.get(draft)
  return seen === undefined || seen === error.blockers ? error : new LockTimeoutError(error.cause, seen)
}
