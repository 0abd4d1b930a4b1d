// Looking a key up: what is known of it, without changing anything.

import { type AuditEntry, isForgotten, type RecordMode, type RecordState, recordFormat } from '../../atomicity/index.js'
import { deadlineAfter, demandKnown, isRepriseError } from '../../kernel/index.js'
import { persistently } from '../leased/store-calls.js'
import { decodeOutcome, type Outcome } from '../outcome.js'
import { locate, timeAndChance, type UpkeepCall, type Which } from './which.js'

/** What is known of a key. Times are in ms since 1970, by the store's clock. */
export type Known =
  | {
      /** There is no record: the key is free. */
      readonly state: 'absent'
      /** The store's clock. */
      readonly nowMs: number
      /** What was done about it, oldest first. */
      readonly notes: readonly AuditEntry[]
    }
  | {
      /** How far it is. */
      readonly state: RecordState
      /** Where marker and effect commit. */
      readonly mode: RecordMode
      /** When the key was claimed first. */
      readonly firstClaimedAtMs: number
      /** When the present claim was made. */
      readonly claimedAtMs: number
      /** `claimed`: when the lease ends. `unknown`: when a sweep looks at it again. Undefined: never. */
      readonly dueAtMs: number | undefined
      /** When it ended. */
      readonly completedAtMs: number | undefined
      /** When its memory ends. Undefined: never, or it has not ended yet. */
      readonly expiresAtMs: number | undefined
      /** Whether its memory has ended: a repeat executes anew. */
      readonly forgotten: boolean
      /** How many claims there were. */
      readonly claims: number
      /** How often a sweep has looked at it. */
      readonly looks: number
      /** Why it is unknown, or how it was settled. */
      readonly because: string | undefined
      /**
       * The outcome, as a repeat gets it; undefined where there is none, where it cannot be read, and where only the
       * operation's name was given.
       */
      readonly outcome: Outcome<unknown> | undefined
      /** Why the outcome cannot be read: what a repeat is refused with. Undefined: it can, or was not to be. */
      readonly unreadable: 'OUTCOME_TOO_LARGE' | 'OUTCOME_UNREADABLE' | undefined
      /** The store's clock. */
      readonly nowMs: number
      /** What was done about it, oldest first. */
      readonly notes: readonly AuditEntry[]
    }

/**
 * What is known of a key. Nothing is changed, and nobody is kept from anything. A store without an inspection shows no
 * notes.
 *
 * @example
 * ```ts
 * import { lookup, operationId } from 'reprise/idempotency'
 * import { mintKey, scope } from 'reprise/identity'
 * import { memory } from 'reprise/stores/memory'
 *
 * const store = memory({ name: 'shop' })
 * const known = await lookup({ id: operationId('pay', scope('shop'), mintKey()), store })
 * console.log(known.state)
 * ```
 * ```text
 * absent
 * ```
 */
export async function lookup(which: Which, call: UpkeepCall = {}): Promise<Known> {
  demandKnown(call, ['deadline', 'clock', 'random'], 'options of lookup')
  const { id, records, known } = locate(which)
  const time = timeAndChance(records, call)
  const deadline = deadlineAfter(call.deadline ?? '5s', time.clock)
  const { answer } = await persistently(time, deadline, (limits) => records.read(id, limits))
  const { inspection } = records
  const { answer: notes } = await persistently(time, deadline, async (limits) => inspection?.notes(id, limits) ?? [])
  const { record, nowMs } = answer
  if (record === undefined) return { state: 'absent', nowMs, notes }
  const { state, codec, value } = record
  let outcome: Outcome<unknown> | undefined
  let unreadable: 'OUTCOME_TOO_LARGE' | 'OUTCOME_UNREADABLE' | undefined
  // Of a newer format nothing can be relied on but that it is one.
  if (record.format <= recordFormat && (state === 'succeeded' || state === 'failed') && known !== undefined) {
    const ending = { state, codec, value, own: false }
    const limits = { deadline, clock: time.clock }
    try {
      outcome = await decodeOutcome(known.storage, ending, { id, operation: known.name }, limits)
    } catch (error) {
      // That it is done is known all the same.
      if (isRepriseError(error, 'OUTCOME_TOO_LARGE')) unreadable = 'OUTCOME_TOO_LARGE'
      else if (isRepriseError(error, 'OUTCOME_UNREADABLE')) unreadable = 'OUTCOME_UNREADABLE'
      else throw error
    }
  }
  return {
    state,
    mode: record.mode,
    firstClaimedAtMs: record.firstClaimedAtMs,
    claimedAtMs: record.claimedAtMs,
    dueAtMs: record.dueAtMs,
    completedAtMs: record.completedAtMs,
    expiresAtMs: record.expiresAtMs,
    forgotten: isForgotten(record, nowMs),
    claims: record.claims,
    looks: record.looks,
    because: record.because,
    outcome,
    unreadable,
    nowMs,
    notes,
  }
}
