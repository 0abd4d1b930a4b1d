// Looking a key up: what is known of it, without changing anything.

import { type AuditEntry, type RecordMode, type RecordState, recordFormat } from '../../atomicity/index.js'
import { deadlineAfter, demandKnown, isRepriseError } from '../../kernel/index.js'
import { decodedInTime } from '../call/call-options.js'
import { persistently } from '../leased/store-calls.js'
import { isForgotten } from '../machine.js'
import { type DecodedOutcome, decodeOutcome } from '../values.js'
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
      /** The outcome; undefined where there is none, where it cannot be read, and where only the operation's name was given. */
      readonly outcome: DecodedOutcome | undefined
      /** Why the outcome cannot be read: what a repeat is refused with. Undefined: it can, or was not to be. */
      readonly unreadable: 'OUTCOME_TOO_LARGE' | 'OUTCOME_UNREADABLE' | undefined
      /** The store's clock. */
      readonly nowMs: number
      /** What was done about it, oldest first. */
      readonly notes: readonly AuditEntry[]
    }

/** What is known of a key. Nothing is changed, and nobody is kept from anything. */
export async function lookup(which: Which, call: UpkeepCall = {}): Promise<Known> {
  demandKnown(call, ['deadline', 'clock', 'random'], 'options of lookup')
  const { id, records, known } = locate(which)
  const around = timeAndChance(records, call)
  const deadline = deadlineAfter(call.deadline ?? '5s', around.clock)
  const { answer } = await persistently(around, deadline, (limits) => records.read(id, limits))
  const { inspection } = records
  const { answer: notes } = await persistently(around, deadline, async (limits) => inspection?.notes(id, limits) ?? [])
  const { record, nowMs } = answer
  if (record === undefined) return { state: 'absent', nowMs, notes }
  const { state, mode, firstClaimedAtMs, claimedAtMs, dueAtMs, completedAtMs, expiresAtMs, claims, looks, because } =
    record
  // Of a newer format nothing can be relied on but that it is one.
  const isOver = record.format <= recordFormat && (state === 'succeeded' || state === 'failed')
  const { codec, value } = record
  let outcome: DecodedOutcome | undefined
  let unreadable: 'OUTCOME_TOO_LARGE' | 'OUTCOME_UNREADABLE' | undefined
  if (isOver && known !== undefined) {
    try {
      const decoding = decodeOutcome(known.values, { state, codec, value }, { id, operation: known.name })
      outcome = await decodedInTime(decoding, { deadline, clock: around.clock })
    } catch (error) {
      // That it is done is known all the same.
      if (isRepriseError(error, 'OUTCOME_TOO_LARGE')) unreadable = 'OUTCOME_TOO_LARGE'
      else if (isRepriseError(error, 'OUTCOME_UNREADABLE')) unreadable = 'OUTCOME_UNREADABLE'
      else throw error
    }
  }
  return {
    state,
    mode,
    firstClaimedAtMs,
    claimedAtMs,
    dueAtMs,
    completedAtMs,
    expiresAtMs,
    forgotten: isForgotten(record, nowMs),
    claims,
    looks,
    because,
    outcome,
    unreadable,
    nowMs,
    notes,
  }
}
