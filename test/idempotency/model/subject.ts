// What the model drives: the real machine and the real meaning of writes. A planted bug replaces one of them.

import {
  changedRecord,
  draftedRecord,
  isForgotten,
  isStill,
  type RecordChange,
  type StoredRecord,
} from '../../../src/atomicity/index.js'
import { decide } from '../../../src/idempotency/machine.js'

/** A lease, in ms of the model; a heartbeat begins it anew. */
export const leaseMs = 10
/** By how much the store's clock may be ahead of real time. */
export const skewMs = 4
/** How long an outcome is remembered. */
export const windowMs = 40
/** How long the receiver knows a key, and is declared to. */
export const receiverWindowMs = 60

/** The parts that a planted bug can replace. */
export interface Subject {
  readonly decide: typeof decide
  readonly draft: typeof draftedRecord
  readonly change: typeof changedRecord
  readonly isStill: typeof isStill
  /** Whether it is watched that fences grow; a bug that restarts them may be worse than that. */
  readonly fencesAreWatched: boolean
  /** Whether an insert replaces what is there: the unique index is not asked. */
  readonly insertOver: boolean
  /** The next number of the sequence. */
  readonly nextFence: (last: number, record: StoredRecord | undefined) => number
  /** The key that an effect is sent with, of the claim that sends it. */
  readonly keyOf: (token: string) => string
  /** Whose clock decides. */
  readonly decidesBy: 'store' | 'owner'
  readonly marginMs: number
  /** Whether a purge removes a record. */
  readonly purges: (record: StoredRecord, nowMs: number) => boolean
  /** What a replay writes. */
  readonly replayWrites: RecordChange | undefined
}

/** The real one. */
export const realSubject: Subject = {
  decide,
  draft: draftedRecord,
  change: changedRecord,
  isStill,
  fencesAreWatched: true,
  insertOver: false,
  nextFence: (last) => last + 1,
  keyOf: () => 'derived from the record’s name',
  decidesBy: 'store',
  marginMs: skewMs,
  purges: isForgotten,
  replayWrites: undefined,
}
