// The key of an atomic operation, as its transaction claims it: what a record that is there means, and how long to wait for one that is not.

import type { RecordDraft, RecordOutcome, Seen, Stored, StoredRecord } from '../../atomicity/index.js'
import { type Key, keyScope, type StoredKey } from '../../identity/index.js'
import { RepriseError, type ScopeValue } from '../../kernel/index.js'
import type { Keyed, Met } from '../../transaction/index.js'
import { type CallIdentity, isSameContent } from '../call/identity.js'
import { inFlight, refusalError } from '../call/refusals.js'
import type { Place } from '../define/place.js'
import type { OperationSettings } from '../define/settings.js'
import { operationScope } from '../in-process/reentry.js'
import { decide } from '../machine.js'
import type { EncodedOutcome } from '../values.js'

/** How an operation ended, as its transaction knows it. */
export interface Ending extends EncodedOutcome {
  /** What the record is bound to. */
  readonly fingerprint: string | undefined
  /** Whether this very call brought it about. */
  readonly own: boolean
  /** What was thrown, where a thrown error became a final failure. */
  readonly cause?: unknown
}

/** The key of one call. */
export class OperationKey implements Keyed<Ending> {
  readonly id: StoredKey
  readonly #identity: CallIdentity<unknown>
  readonly #settings: OperationSettings<never>
  readonly #place: Place
  readonly #waitUntilMs: number
  readonly #sinceMs: number
  #draft: RecordDraft | undefined
  #blockedBy: unknown

  /** @param waitUntilMs When the wait for others ends, in ms of monotonic time. */
  constructor(identity: CallIdentity<unknown>, settings: OperationSettings<never>, place: Place, waitUntilMs: number) {
    this.id = identity.id
    this.#identity = identity
    this.#settings = settings
    this.#place = place
    this.#waitUntilMs = waitUntilMs
    this.#sinceMs = place.clock.monotonicMs()
  }

  // Made for the first transaction: a repeat that finds the outcome by one look claims nothing.
  get draft(): RecordDraft {
    if (this.#draft === undefined) {
      const { scope, fingerprint } = this.#identity
      const draft = { mode: 'atomic', operation: this.#settings.name, scope, token: this.#place.nextToken() } as const
      this.#draft = fingerprint === undefined ? draft : { ...draft, fingerprint }
    }
    return this.#draft
  }

  meet({ record, nowMs }: Stored): Met<Ending> {
    return this.look({ record, nowMs }) ?? { takeOver: record }
  }

  /** The outcome in a record; undefined: there is none, or its memory has ended. Throws what refuses the call. */
  look({ record, nowMs }: Seen): { readonly replay: Ending } | undefined {
    if (record === undefined) return undefined
    const token = this.#draft?.token ?? unclaimed
    const decision = decide(
      record,
      {
        kind: 'claim',
        mode: 'atomic',
        token,
        sameContent: isSameContent(this.#identity, record),
        fingerprint: this.#identity.fingerprint,
        leaseMs: undefined,
        marginMs: 0,
        recovery: undefined,
        input: undefined,
      },
      nowMs,
    )
    if (decision.act === 'replay') return { replay: endingOf(record, token) }
    if (decision.act === 'execute') return undefined
    if (decision.act === 'refuse') throw refusalError(decision, record)
    throw new RepriseError('MARKER_INVALID', 'The stored record of the key is not one that this operation writes.')
  }

  // The record's name is the key that calls below derive theirs from: two operations never share one.
  scopes(): readonly ScopeValue[] {
    return [operationScope(this.#place.queue, this.id), keyScope(this.id as string as Key)]
  }

  outcomeOf(ending: Ending): { readonly outcome: RecordOutcome; readonly value: Ending } {
    const { state, codec, value } = ending
    const { windowMs } = this.#settings
    const outcome = { state, value, rememberedMs: windowMs, ...(codec === undefined ? {} : { codec }) }
    return { outcome, value: ending }
  }

  // The unique index lets nobody through, so that a short wait tells that somebody is there; not so short that the store's own short locks are mistaken for it.
  claimWaitMs(): number {
    const leftMs = this.#waitUntilMs - this.#place.clock.monotonicMs()
    return this.#refusesAtOnce ? shortWaitMs : Math.max(1, leftMs)
  }

  blocked(error: unknown): { readonly refusal: unknown } | undefined {
    this.#blockedBy = error
    const { clock } = this.#place
    if (!this.#refusesAtOnce && clock.monotonicMs() < this.#waitUntilMs) return undefined
    return { refusal: this.#inFlight(error) }
  }

  // Where only the whole store can be locked, whoever holds it may be at work on any key: a call with a key of its own has to wait for its turn.
  get #refusesAtOnce(): boolean {
    return this.#settings.refusesDuplicates && this.#place.manifest.refuse !== 'coarse'
  }

  /** What a call ends with: a wait for the key that used up all attempts is told as such. */
  explained(error: unknown): unknown {
    return this.#blockedBy !== undefined && error === this.#blockedBy ? this.#inFlight(error) : error
  }

  #inFlight(cause: unknown): RepriseError {
    const { clock, manifest } = this.#place
    const waitedMs = Math.round(clock.monotonicMs() - this.#sinceMs)
    return inFlight({ waitedMs, certain: manifest.refuse !== 'coarse' }, { cause })
  }
}

const shortWaitMs = 25

// No claim has it.
const unclaimed = ''

function endingOf(record: StoredRecord, token: string): Ending {
  const { state, codec, value, fingerprint } = record
  return {
    state: state === 'failed' ? 'failed' : 'succeeded',
    codec,
    value,
    fingerprint,
    own: record.token === token,
  }
}
