// Looking a key up: what is known of it, without changing anything.

import { type AuditEntry, type RecordMode, type RecordState, recordFormat } from '../../atomicity/index.js'
import { deadlineAfter } from '../../kernel/index.js'
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
      /** The outcome; undefined where there is none, and where only the operation's name was given. */
      readonly outcome: DecodedOutcome | undefined
      /** The store's clock. */
      readonly nowMs: number
      /** What was done about it, oldest first. */
      readonly notes: readonly AuditEntry[]
    }

/** What is known of a key. Nothing is changed, and nobody is kept from anything. */
export async function lookup(which: Which, call: UpkeepCall = {}): Promise<Known> {
  const { id, records, known } = locate(which)
  const around = timeAndChance(records, call)
  const deadline = deadlineAfter(call.deadline ?? '5s', around.clock)
  const { answer } = await persistently(around, deadline, (limits) => records.read(id, limits))
  const { answer: notes } = await persistently(around, deadline, (limits) => records.notes(id, limits))
  const { record, nowMs } = answer
  if (record === undefined) return { state: 'absent', nowMs, notes }
  const { state, mode, firstClaimedAtMs, claimedAtMs, dueAtMs, completedAtMs, expiresAtMs, claims, looks, because } =
    record
  // Of a newer format nothing can be relied on but that it is one.
  const isOver = record.format <= recordFormat && (state === 'succeeded' || state === 'failed')
  const { codec, value } = record
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
    outcome:
      isOver && known !== undefined
        ? await decodeOutcome(known.values, { state, codec, value }, { id, operation: known.name })
        : undefined,
    nowMs,
    notes,
  }
}
