// The port to a store's records: five methods, none of which needs SQL or transactions. Each call is one commit of its
// own, and each write depends on the record that was read. Looking around (lists, counts, notes) is a port of its own.

import type { Pepper, StoredKey } from '../identity/index.js'
import { type Deadline, RepriseError } from '../kernel/index.js'
import type { RecordManifest } from './manifest.js'
import type { AuditEntry, AuditNote, Expected, RecordChange, RecordDraft, RecordState, StoredRecord } from './record.js'

/** How long a call may take. */
export interface RecordLimits {
  /** When the call is rejected with DEADLINE_EXCEEDED; whether it happened is not known then. */
  readonly deadline: Deadline
  /** Ends the wait for a connection. Default: none. */
  readonly signal?: AbortSignal | undefined
  /**
   * When the wait for a lock of the whole store ends, where it can be called off: with LOCK_TIMEOUT, or with
   * POOL_EXHAUSTED where this process holds the lock. Nothing was written then. Default: the deadline.
   */
  readonly lockDeadline?: Deadline
  /**
   * Whether the call goes before others that wait for a connection, where the store hands those out itself. What an
   * owner writes about its claim is short, and useless when it is late. Default false.
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
  /**
   * True: this call wrote it, and `record` is what it wrote. False: it was not as expected, and `record` is what is
   * there.
   */
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

/** Which of the newest records to look for. */
export interface RecentQuery extends Pick<RecordQuery, 'state' | 'operation'> {
  /** The digest of the scope. Default: any. */
  readonly scope?: string
  /** At most this many, 1 to 1,000. */
  readonly limit: number
}

/** A record with its name. */
export interface NamedRecord {
  readonly id: StoredKey
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
   * A record that is taken is put off by `min(capMs, baseMs · 2^looks)` from now, in the same commit, and its looks
   * grow by 1. So nobody else takes it meanwhile, and one that stays unsolved is looked at less and less often. A
   * claim whose lease is over becomes unknown (`lease-expired`), so that its owner is stale from then on.
   */
  readonly baseMs: number
  /** The longest wait between two looks, in ms. */
  readonly capMs: number
}

/** What to forget. */
export interface PurgeQuery {
  /** At most this many rows, 1 to 10,000. */
  readonly limit: number
  /**
   * Also forget unknown ones that were claimed first longer than this ago, in ms, each with an audit note. Default:
   * never.
   */
  readonly unknownAfterMs?: number
  /** Also forget audit notes older than this, in ms. Default: never. */
  readonly auditAfterMs?: number
  /**
   * Also forget markers of transactions with a key and no window, older than this, in ms. Default: never.
   */
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
 * The records of a store. A call that fails may have happened. Reading again tells: a claim knows its token, and a
 * write knows what it depended on.
 */
export interface Records {
  /** Reads one record, as it is committed. */
  read(id: StoredKey, limits: RecordLimits): Promise<Seen>
  /**
   * Inserts a claim; the unique index decides. Not written: somebody has the key, and `record` is what is there, or
   * undefined where that is gone again: then the caller inserts once more.
   */
  insert(id: StoredKey, draft: RecordDraft, limits: RecordLimits): Promise<Written>
  /**
   * Changes a record if its version, token and fence are still those of the one that was read; `null` removes it. The
   * note is stored in the same commit. Never writes to a record of a newer format.
   */
  swap(
    id: StoredKey,
    over: Expected,
    change: RecordChange | null,
    limits: RecordLimits,
    note?: AuditNote,
  ): Promise<Written>
  /**
   * Takes leased records that are due, past the margin, oldest first, and puts each off. Leaves alone what others are
   * taking at this moment, and records of a newer format.
   */
  due(query: DueQuery, limits: RecordLimits): Promise<readonly NamedRecord[]>
  /** Forgets what is past its time, in one small batch; never a record of a newer format. */
  purge(query: PurgeQuery, limits: RecordLimits): Promise<Purged>
  /**
   * Under which names and fingerprints are stored; whoever computes a name asks here. The store takes names as they are
   * given, and sees to it that nobody with another pepper works on the same records. Undefined: there is none.
   */
  readonly pepper?: Pepper | undefined
  /** For looking around among the records. Undefined: the store cannot, and what needs it is refused. */
  readonly inspection?: RecordInspection
}

/** Looking around among the records of a store, for people, reports and limits. Each call only reads. */
export interface RecordInspection {
  /** Lists records in the order of their names. */
  list(query: RecordQuery, limits: RecordLimits): Promise<readonly NamedRecord[]>
  /**
   * Lists records, newest first: by their end, or their claim where they have none. So that a large table is not read,
   * a store may look at no more than the 1,000 whose memory ends last, the 1,000 that are to be looked at last, and of
   * those with neither time what is among the first 10,000 by name. Default: the store has no such order.
   */
  recent?(query: RecentQuery, limits: RecordLimits): Promise<readonly NamedRecord[]>
  /**
   * How many records of a scope are remembered: all but finished ones past their window, whether they are purged or
   * not. Counting ends at `most`, 1 to 1,000,000, and then `most` is the answer.
   */
  live(scope: string, most: number, limits: RecordLimits): Promise<number>
  /** The audit notes of a record, oldest first, at most 1,000. */
  notes(id: StoredKey, limits: RecordLimits): Promise<readonly AuditEntry[]>
}

/**
 * A store of records without transactions: all that a leased operation needs. Every domain is one; a store that is
 * nothing else (Redis, a table behind an API) has no atomic operations.
 */
export interface RecordStore {
  /** Its name, in events and answers. */
  readonly name: string
  readonly manifest: RecordManifest
  readonly records: Records
}

/** The inspection of a store's records. Refuses a store that has none with CAPABILITY_UNSUPPORTED. */
export function inspectionOf({ inspection }: Records): RecordInspection {
  if (inspection !== undefined) return inspection
  const message = 'The store cannot list its records, count them or show notes about them.'
  throw new RepriseError('CAPABILITY_UNSUPPORTED', message, { details: { option: 'inspection' } })
}
