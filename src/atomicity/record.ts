// What a store remembers of a key: one row, made by a claim, ended by an outcome. Times are the store's own.

import { type Content, type Pepper, type StoredKey, sameContent } from '../identity/index.js'

/**
 * How far an operation is, as it is stored. `claimed`: somebody works on it, or died while doing so. `succeeded` and
 * `failed`: it is over, and its outcome is replayed. `unknown`: it may or may not have happened. A key that was
 * released has no row.
 */
export type RecordState = 'claimed' | 'succeeded' | 'failed' | 'unknown'

/** Where marker and effect commit: together in one transaction, or the effect elsewhere under a lease. */
export type RecordMode = 'atomic' | 'leased'

/**
 * The newest format of a record that this version writes and reads. 1: the marker of a transaction with a key, as first
 * released.
 */
export const recordFormat = 2

/** What is stored under the name of a key. */
export interface StoredRecord {
  /**
   * Which version of the format it was written in. One above {@link recordFormat} is not to be trusted in anything
   * else, and never overwritten.
   */
  readonly format: number
  /**
   * Grows by 1 with every write, so that a write can be made to depend on what was read. Begins at 1, also where a row
   * was removed before: see {@link Expected}.
   */
  readonly version: number
  /** Where marker and effect commit. */
  readonly mode: RecordMode
  /** The operation's name; undefined: a transaction with a key, which has none. */
  readonly operation: string | undefined
  /** The digest of the scope; undefined in records of format 1. */
  readonly scope: string | undefined
  /** The fingerprint of the content, with its algorithm; undefined: none was taken. */
  readonly fingerprint: string | undefined
  /** How far it is. */
  readonly state: RecordState
  /** Names the claim that wrote it last; undefined where nobody holds it any more. */
  readonly token: string | undefined
  /** The number of that claim, from a sequence of the whole store that never restarts; undefined in atomic mode. */
  readonly fence: number | undefined
  /** When the key was claimed first, in ms since 1970: from here on something may have left the process. */
  readonly firstClaimedAtMs: number
  /** When the present claim was made, in ms since 1970. */
  readonly claimedAtMs: number
  /** `claimed`: when the lease ends. `unknown`: when it is to be looked at again. Undefined: never. */
  readonly dueAtMs: number | undefined
  /** When it ended, in ms since 1970. */
  readonly completedAtMs: number | undefined
  /** When its memory ends, in ms since 1970: counted from the end, and never moved by a replay. Undefined: never. */
  readonly expiresAtMs: number | undefined
  /** How many claims there were, the first included. */
  readonly claims: number
  /** How often a sweep has looked at it. */
  readonly looks: number
  /** How `value` is to be read; undefined: JSON. */
  readonly codec: string | undefined
  /** The outcome, as text; undefined while there is none. */
  readonly value: string | undefined
  /** The input, as text, where the operation keeps it for its recovery. */
  readonly input: string | undefined
  /** Why it is unknown, or how it was settled: a short word or an error's code. Never input. */
  readonly because: string | undefined
}

/**
 * What a write depends on: the record that was read, told from every other one that has been or will be under the same
 * name. A {@link StoredRecord} is one.
 */
export type Expected = Pick<StoredRecord, 'version' | 'token' | 'fence'>

/** A claim that is to be inserted. */
export interface RecordDraft {
  /** Where marker and effect commit. */
  readonly mode: RecordMode
  /** The operation's name. Default: none. */
  readonly operation?: string
  /** The digest of the scope. Default: none. */
  readonly scope?: string
  /** The fingerprint of the content. Default: none. */
  readonly fingerprint?: string | undefined
  /** Random; names this claim, so that it is recognised after a lost answer. */
  readonly token: string
  /**
   * Leased mode: how long the claim lives without a heartbeat, in ms. The store takes a new fence then. Default: no
   * lease, no fence.
   */
  readonly leaseMs?: number
  /** The input, as text, for recovery. Default: not kept. */
  readonly input?: string
}

/**
 * A line about a decision that somebody, or a sweep, took about a record. Written in the same commit as the decision.
 */
export interface AuditNote {
  /** What was done: `settled`, `swept`, `dropped`. */
  readonly action: 'settled' | 'swept' | 'dropped'
  /** Who did it, as given by the caller; `sweep` for a sweep. */
  readonly actor: string
  /** Why, in the words of who did it. */
  readonly reason: string
}

/** An audit note as it was stored. */
export interface AuditEntry extends AuditNote {
  /** The record's name. */
  readonly id: StoredKey
  /** When, in ms since 1970, by the store's clock. */
  readonly atMs: number
  /** The state before. */
  readonly from: RecordState
  /** The state after; `absent`: the key is free. */
  readonly to: RecordState | 'absent'
}

/**
 * A write to a record that is there. Absent members stay as they are; null empties them. The store adds 1 to the
 * version, counts all times from its own clock at the statement, and brings the record to {@link recordFormat}.
 */
export interface RecordChange {
  /** The new state. */
  readonly state: RecordState
  /** The new mode, where a key is used anew. */
  readonly mode?: RecordMode
  /** The new claim's token, or null where nobody holds it any more. */
  readonly token?: string | null
  /** `'next'`: takes a new number from the store's sequence. */
  readonly fence?: 'next'
  /**
   * True: a new claim begins now; `claimedAtMs` and `claims` follow. With `'first'` it is the first one again (a key
   * used anew after its window).
   */
  readonly claimed?: true | 'first'
  /** The lease, or the wait until the next look, in ms from now; null: none. */
  readonly dueInMs?: number | null
  /** It ended now, and is remembered for this long, in ms. `Infinity`: for ever. */
  readonly remembered?: number
  /** The fingerprint of the new content, where a key is used anew. */
  readonly fingerprint?: string | null
  /** How `value` is to be read; null: JSON. */
  readonly codec?: string | null
  /** The outcome, as text. */
  readonly value?: string | null
  /** The input, as text. */
  readonly input?: string | null
  /** Why it is unknown, or how it was settled. */
  readonly because?: string | null
}

/** Content, with its fingerprint. */
export interface BoundContent {
  /** The fingerprint of the content; undefined: nothing is compared. */
  readonly fingerprint: string | undefined
  /** What the fingerprint was made of, to be compared with fingerprints made otherwise. */
  readonly content: Content | undefined
  /** Under which the fingerprint was made. Default: none. */
  readonly pepper?: Pepper | undefined
}

/**
 * Whether a record is bound to the content of a call, judged by the algorithm and the rule that its fingerprint was
 * made with.
 */
export function isSameContent(
  { fingerprint, content, pepper }: BoundContent,
  { fingerprint: stored, format }: Pick<StoredRecord, 'format' | 'fingerprint'>,
): boolean {
  // One of a newer format is refused for that, and nothing in it is read.
  if (stored === undefined || content === undefined || format > recordFormat) return true
  return stored === fingerprint || sameContent(stored, content, undefined, pepper)
}

/** Whether a record says how its operation ended. */
export function isFinished({ state }: StoredRecord): boolean {
  return state === 'succeeded' || state === 'failed'
}

/** Whether the memory of a finished record has ended: its window is over by the store's clock. */
export function isForgotten(record: StoredRecord, nowMs: number): boolean {
  return isFinished(record) && record.expiresAtMs !== undefined && record.expiresAtMs <= nowMs
}
