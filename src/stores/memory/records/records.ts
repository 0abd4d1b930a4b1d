// The records of a store in memory. Each call is done before it returns, so each is a commit of its own.

import {
  type AuditEntry,
  type AuditNote,
  changedRecord,
  type DueQuery,
  draftedRecord,
  droppedNote,
  type Expected,
  type Forgettable,
  forgettableSince,
  isDue,
  isLive,
  isOurFormat,
  isStill,
  lookedAt,
  type NamedRecord,
  type Purged,
  type PurgeQuery,
  type RecentQuery,
  type RecordChange,
  type RecordDraft,
  type RecordInspection,
  type RecordQuery,
  type RecordState,
  type Records,
  type Seen,
  type StoredRecord,
  type Written,
} from '../../../atomicity/index.js'
import type { Pepper, StoredKey } from '../../../identity/index.js'
import { type Clock, RepriseError } from '../../../kernel/index.js'
import { TimeOrder } from './time-order.js'

const mostNotes = 1_000
// More entries of an order than twice the records, and these, are mostly of records that were written anew since.
const spareEntries = 1_000

/** All records of a store. */
export class MemoryRecords implements Records, RecordInspection {
  readonly inspection: RecordInspection = this
  readonly pepper: Pepper | undefined
  /** Committed records by name, in the order of their first claim. */
  readonly committed: Map<StoredKey, StoredRecord> = new Map()
  /** Takes the next number of the sequence. */
  readonly nextFence: () => number
  readonly #notes: AuditEntry[] = []
  // What a purge forgets, the oldest first, so that it looks at no others. Entries of records that were written anew
  // stay until their time comes, and are passed over then.
  readonly #forgettable: Record<Forgettable['as'], TimeOrder> = {
    finished: new TimeOrder(),
    markers: new TimeOrder(),
    unknown: new TimeOrder(),
  }
  readonly #clock: Clock
  #closed = false

  constructor(clock: Clock, pepper?: Pepper) {
    this.pepper = pepper
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

  /** Writes a record, whatever is there. */
  put(id: StoredKey, record: StoredRecord): void {
    const before = this.committed.get(id)
    this.committed.set(id, record)
    const found = forgettableSince(record)
    if (found === undefined || (before !== undefined && isSame(forgettableSince(before), found))) return
    this.#forgettable[found.as].add({ id, atMs: found.sinceMs })
    if (this.#forgettable[found.as].size > 2 * this.committed.size + spareEntries) this.#sortAnew(found.as)
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
    this.put(id, record)
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
    if (there === undefined || !isStill(there, over) || !isOurFormat(there))
      return { written: false, record: there, nowMs }
    const record = change === null ? undefined : changedRecord(there, change, nowMs, this.nextFence)
    if (record === undefined) this.committed.delete(id)
    else this.put(id, record)
    if (note !== undefined) this.#note(id, note, there.state, record?.state ?? 'absent', nowMs)
    return { written: true, record, nowMs }
  }

  async due(query: DueQuery): Promise<readonly NamedRecord[]> {
    this.#demandOpen()
    const nowMs = this.nowMs()
    const found = this.#named().filter(({ record }) => isDue(record, query, nowMs))
    found.sort((a, b) => (a.record.dueAtMs ?? 0) - (b.record.dueAtMs ?? 0))
    return found.slice(0, query.limit).map(({ id, record }) => {
      const taken = lookedAt(record, query, nowMs)
      this.put(id, taken)
      return { id, record: taken }
    })
  }

  async purge(query: PurgeQuery): Promise<Purged> {
    this.#demandOpen()
    const { limit, auditAfterMs, markersAfterMs, unknownAfterMs } = query
    const nowMs = this.nowMs()
    const until = (afterMs: number | undefined): number => (afterMs === undefined ? -Infinity : nowMs - afterMs)
    const finished = this.#forget('finished', nowMs, limit).length
    const markers = this.#forget('markers', until(markersAfterMs), limit).length
    const unknown = this.#forget('unknown', until(unknownAfterMs), limit)
    for (const id of unknown) this.#note(id, droppedNote, 'unknown', 'absent', nowMs)
    // Notes are in the order of their times.
    let audit = 0
    while (audit < limit && (this.#notes[audit]?.atMs ?? Infinity) <= until(auditAfterMs)) audit += 1
    this.#notes.splice(0, audit)
    return { finished, unknown: unknown.length, audit, markers }
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

  async recent({ state, operation, scope, limit }: RecentQuery): Promise<readonly NamedRecord[]> {
    this.#demandOpen()
    const atMs = ({ record }: NamedRecord): number => record.completedAtMs ?? record.claimedAtMs
    return this.#named()
      .filter(
        ({ record }) =>
          (state === undefined || record.state === state) &&
          (operation === undefined || record.operation === operation) &&
          (scope === undefined || record.scope === scope),
      )
      .sort((a, b) => atMs(b) - atMs(a) || (a.id < b.id ? -1 : 1))
      .slice(0, limit)
  }

  async live(scope: string, most: number): Promise<number> {
    this.#demandOpen()
    const nowMs = this.nowMs()
    let live = 0
    for (const record of this.committed.values()) {
      if (live === most) break
      if (record.scope === scope && isLive(record, nowMs)) live += 1
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

  /** Deletes the oldest records of a kind up to a time; their names. */
  #forget(kind: Forgettable['as'], untilMs: number, limit: number): readonly StoredKey[] {
    const order = this.#forgettable[kind]
    const gone: StoredKey[] = []
    for (let first = order.first(); first !== undefined && gone.length < limit; first = order.first()) {
      const { id, atMs } = first
      if (atMs > untilMs) break
      order.removeFirst()
      const record = this.committed.get(id)
      if (record === undefined || !isSame(forgettableSince(record), { as: kind, sinceMs: atMs })) continue
      this.committed.delete(id)
      gone.push(id)
    }
    return gone
  }

  #sortAnew(kind: Forgettable['as']): void {
    const order = new TimeOrder()
    for (const [id, record] of this.committed) {
      const found = forgettableSince(record)
      if (found?.as === kind) order.add({ id, atMs: found.sinceMs })
    }
    this.#forgettable[kind] = order
  }

  #named(): NamedRecord[] {
    return [...this.committed].map(([id, record]) => ({ id, record }))
  }

  #note(id: StoredKey, note: AuditNote, from: RecordState, to: RecordState | 'absent', atMs: number): void {
    const { action, actor, reason } = note
    this.#notes.push({ id, action, actor, reason, from, to, atMs })
  }
}

function isSame(one: Forgettable | undefined, other: Forgettable): boolean {
  return one?.as === other.as && one.sinceMs === other.sinceMs
}
