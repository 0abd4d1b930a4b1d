// The records of a store in memory. Each call is done before it returns, so each is a commit of its own.

import {
  type AuditEntry,
  type AuditNote,
  changedRecord,
  type DueQuery,
  draftedRecord,
  droppedNote,
  type Expected,
  isStill,
  lookedAt,
  type NamedRecord,
  type Purged,
  type PurgeQuery,
  type RecordChange,
  type RecordDraft,
  type RecordInspection,
  type RecordQuery,
  type RecordState,
  type Records,
  recordFormat,
  type Seen,
  type StoredRecord,
  type Written,
} from '../../atomicity/index.js'
import type { StoredKey } from '../../identity/index.js'
import { type Clock, RepriseError } from '../../kernel/index.js'

const mostNotes = 1_000

/** All records of a store. */
export class MemoryRecords implements Records, RecordInspection {
  readonly inspection: RecordInspection = this
  /** Committed records by name, in the order of their first claim. */
  readonly committed: Map<StoredKey, StoredRecord> = new Map()
  /** Takes the next number of the sequence. */
  readonly nextFence: () => number
  readonly #notes: AuditEntry[] = []
  readonly #clock: Clock
  #closed = false

  constructor(clock: Clock) {
    let fence = 0
    this.#clock = clock
    this.nextFence = () => {
      fence += 1
      return fence
    }
  }

  /** The store's time, in ms since 1970. */
  nowMs(): number {
    return this.#clock.wallMs()
  }

  /**
   * Refuses whoever comes from now on with STORE_CLOSED. Transactions that are open already may still commit what they
   * claimed.
   */
  close(): void {
    this.#closed = true
  }

  async read(id: StoredKey): Promise<Seen> {
    this.#demandOpen()
    return { record: this.committed.get(id), nowMs: this.nowMs() }
  }

  async insert(id: StoredKey, draft: RecordDraft): Promise<Written> {
    this.#demandOpen()
    const nowMs = this.nowMs()
    const there = this.committed.get(id)
    if (there !== undefined) return { written: false, record: there, nowMs }
    const record = draftedRecord(draft, nowMs, this.nextFence)
    this.committed.set(id, record)
    return { written: true, record, nowMs }
  }

  async swap(
    id: StoredKey,
    over: Expected,
    change: RecordChange | null,
    _limits: unknown,
    note?: AuditNote,
  ): Promise<Written> {
    this.#demandOpen()
    const nowMs = this.nowMs()
    const there = this.committed.get(id)
    if (there === undefined || !isStill(there, over) || !isOurs(there)) return { written: false, record: there, nowMs }
    const record = change === null ? undefined : changedRecord(there, change, nowMs, this.nextFence)
    if (record === undefined) this.committed.delete(id)
    else this.committed.set(id, record)
    if (note !== undefined) this.#note(id, note, there.state, record?.state ?? 'absent', nowMs)
    return { written: true, record, nowMs }
  }

  async due(query: DueQuery): Promise<readonly NamedRecord[]> {
    this.#demandOpen()
    const { operations, limit, marginMs } = query
    const nowMs = this.nowMs()
    const isDue = ({ record }: NamedRecord): boolean =>
      isOurs(record) &&
      (record.state === 'unknown' || record.state === 'claimed') &&
      record.mode === 'leased' &&
      operations.includes(record.operation ?? '') &&
      record.dueAtMs !== undefined &&
      record.dueAtMs + (record.state === 'claimed' ? marginMs : 0) <= nowMs
    const found = this.#named().filter(isDue)
    found.sort((a, b) => (a.record.dueAtMs ?? 0) - (b.record.dueAtMs ?? 0))
    return found.slice(0, limit).map(({ id, record }) => {
      const taken = lookedAt(record, query, nowMs)
      this.committed.set(id, taken)
      return { id, record: taken }
    })
  }

  async purge({ limit, unknownAfterMs, auditAfterMs, markersAfterMs }: PurgeQuery): Promise<Purged> {
    this.#demandOpen()
    const nowMs = this.nowMs()
    const named = this.#named()
    const before = (atMs: number, afterMs: number | undefined): boolean =>
      afterMs !== undefined && atMs + afterMs <= nowMs
    const take = (matches: (record: StoredRecord) => boolean): readonly NamedRecord[] => {
      const found = named.filter(({ record }) => isOurs(record) && matches(record)).slice(0, limit)
      for (const { id } of found) this.committed.delete(id)
      return found
    }
    const isOver = ({ state }: StoredRecord): boolean => state === 'succeeded' || state === 'failed'
    const finished = take((record) => isOver(record) && (record.expiresAtMs ?? Number.POSITIVE_INFINITY) <= nowMs)
    const markers = take(
      (record) => isOver(record) && record.operation === undefined && before(record.claimedAtMs, markersAfterMs),
    )
    const unknown = take((record) => record.state === 'unknown' && before(record.firstClaimedAtMs, unknownAfterMs))
    for (const { id } of unknown) this.#note(id, droppedNote, 'unknown', 'absent', nowMs)
    const old = this.#notes.filter(({ atMs }) => before(atMs, auditAfterMs)).slice(0, limit)
    for (const entry of old) this.#notes.splice(this.#notes.indexOf(entry), 1)
    return { finished: finished.length, unknown: unknown.length, audit: old.length, markers: markers.length }
  }

  async list({ state, operation, limit, after }: RecordQuery): Promise<readonly NamedRecord[]> {
    this.#demandOpen()
    return this.#named()
      .filter(
        ({ id, record }) =>
          (state === undefined || record.state === state) &&
          (operation === undefined || record.operation === operation) &&
          (after === undefined || id > after),
      )
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .slice(0, limit)
  }

  async live(scope: string, most: number): Promise<number> {
    this.#demandOpen()
    const nowMs = this.nowMs()
    let live = 0
    for (const record of this.committed.values()) {
      if (live === most) break
      if (record.scope !== scope) continue
      const isOver = record.state === 'succeeded' || record.state === 'failed'
      if (!isOver || (record.expiresAtMs ?? Number.POSITIVE_INFINITY) > nowMs) live += 1
    }
    return live
  }

  async notes(id: StoredKey): Promise<readonly AuditEntry[]> {
    this.#demandOpen()
    return this.#notes.filter((entry) => entry.id === id).slice(0, mostNotes)
  }

  #demandOpen(): void {
    if (this.#closed) throw new RepriseError('STORE_CLOSED', 'The store was closed.')
  }

  #named(): NamedRecord[] {
    return [...this.committed].map(([id, record]) => ({ id, record }))
  }

  #note(id: StoredKey, note: AuditNote, from: RecordState, to: RecordState | 'absent', atMs: number): void {
    const { action, actor, reason } = note
    this.#notes.push({ id, action, actor, reason, from, to, atMs })
  }
}

// A record of a newer format is left to those who understand it.
function isOurs({ format }: StoredRecord): boolean {
  return format <= recordFormat
}
