// The port to a store's records: each call is one commit of its own, and each write depends on the record that was read. Eight methods, none of which needs SQL.

import type { StoredKey } from '../identity/index.js'
import type { Deadline } from '../kernel/index.js'
import type { AuditEntry, AuditNote, Expected, RecordChange, RecordDraft, RecordState, StoredRecord } from './record.js'

/** How long a call may take. */
export interface RecordLimits {
  /** When it ends: the call is rejected with DEADLINE_EXCEEDED, and whether it happened is not known. */
  readonly deadline: Deadline
  /** Ends the wait for a connection. Default: none. */
  readonly signal?: AbortSignal
  /**
   * When the wait for a lock of the whole store ends, where it can be called off: with LOCK_TIMEOUT, or POOL_EXHAUSTED where the lock is held in this process, and nothing was written.
   * Default: the deadline.
   */
  readonly lockDeadline?: Deadline
  /**
   * Whether it goes before others who wait for a connection, as far as the store hands those out itself: what an owner writes about its claim is short, and lost when it is late.
   * Default false.
   */
  readonly urgent?: boolean
}

/** A record as it was at a moment of the store's clock. */
export interface Seen {
  /** Undefined: there is none. */
  readonly record: StoredRecord | undefined
  /** The store's clock at the statement, in ms since 1970. */
  readonly nowMs: number
}

/** What became of a write. */
export interface Written extends Seen {
  /** True: this call wrote it, and `record` is what it wrote. False: it was not as expected, and `record` is what is there. */
  readonly written: boolean
}

/** Which records to look for. */
export interface RecordQuery {
  /** Default: any. */
  readonly state?: RecordState
  /** Default: any. */
  readonly operation?: string
  /** At most this many, 1 to 1,000. */
  readonly limit: number
  /** Only names after this one, in their order. Default: from the first. */
  readonly after?: StoredKey
}

/** A record with its name. */
export interface NamedRecord {
  /** Its name. */
  readonly id: StoredKey
  /** What is stored. */
  readonly record: StoredRecord
}

/** What is due, and what happens to it when it is taken. */
export interface DueQuery {
  /** Only records of these operations. */
  readonly operations: readonly string[]
  /** At most this many, 1 to 1,000. */
  readonly limit: number
  /** How long past its time a lease must be, in ms: the skew between clocks that is allowed for. */
  readonly marginMs: number
  /**
   * Each one that is taken is put off by `min(capMs, baseMs · 2^looks)` from now, in the same statement, and its looks grow by 1. So nobody else takes it meanwhile,
   * and one that stays unsolved is looked at less and less often. A claim whose lease is over becomes unknown (`lease-expired`) with it: its owner is stale from then on.
   */
  readonly baseMs: number
  /** The longest wait between two looks, in ms. */
  readonly capMs: number
}

/** What to forget. */
export interface PurgeQuery {
  /** At most this many rows, 1 to 10,000. */
  readonly limit: number
  /** Also forget unknown ones that were claimed first longer than this ago, in ms, each with an audit note. Default: never. */
  readonly unknownAfterMs?: number
  /** Also forget audit notes older than this, in ms. Default: never. */
  readonly auditAfterMs?: number
  /** Also forget markers of transactions with a key, which have no window of their own, older than this, in ms. Default: never. */
  readonly markersAfterMs?: number
}

/** What was forgotten. */
export interface Purged {
  /** Records of finished operations. */
  readonly finished: number
  /** Unknown ones, each with an audit note. */
  readonly unknown: number
  /** Audit notes. */
  readonly audit: number
  /** Markers of transactions with a key. */
  readonly markers: number
}

/**
 * The records of a store. A call that fails may have happened: reading again tells, since a claim knows its token and a write what it depended on.
 */
export interface Records {
  /** Reads one record, as it is committed. */
  read(id: StoredKey, limits: RecordLimits): Promise<Seen>
  /** Inserts a claim; the unique index decides. Not written: somebody has the key, and `record` says what is there. */
  insert(id: StoredKey, draft: RecordDraft, limits: RecordLimits): Promise<Written>
  /** Changes a record if its version, token and fence are still those of the one that was read; `null` removes it. The note is stored in the same commit. */
  swap(
    id: StoredKey,
    over: Expected,
    change: RecordChange | null,
    limits: RecordLimits,
    note?: AuditNote,
  ): Promise<Written>
  /** Takes leased records that are due, past the margin, oldest first, and puts each off. What others are taking at this moment is left to them, and so is a newer format. */
  due(query: DueQuery, limits: RecordLimits): Promise<readonly NamedRecord[]>
  /** Forgets what is past its time, in one small batch; never a record of a newer format. */
  purge(query: PurgeQuery, limits: RecordLimits): Promise<Purged>
  /** Lists records in the order of their names. */
  list(query: RecordQuery, limits: RecordLimits): Promise<readonly NamedRecord[]>
  /**
   * How many records of a scope are remembered: all but finished ones past their window, whether they are purged or not. Counting ends at `most`, 1 to 1,000,000, and then `most` is
   * the answer.
   */
  live(scope: string, most: number, limits: RecordLimits): Promise<number>
  /** The audit notes of a record, oldest first, at most 1,000. */
  notes(id: StoredKey, limits: RecordLimits): Promise<readonly AuditEntry[]>
}
