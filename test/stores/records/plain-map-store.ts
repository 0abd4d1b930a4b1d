// A store of records without an engine: a Map that stands for a server, and a client of it behind promises. It has five
// methods and a manifest, and keeps neither lists nor notes. This is all that a leased operation needs of a store.

import {
  changedRecord,
  type DueQuery,
  draftedRecord,
  type Expected,
  forgettableAs,
  isDue,
  isOurFormat,
  isStill,
  lookedAt,
  type NamedRecord,
  type Purged,
  type PurgeQuery,
  type RecordChange,
  type RecordDraft,
  type RecordManifest,
  type RecordStore,
  type Records,
  type Seen,
  type StoredRecord,
  type Written,
} from '../../../src/atomicity/index.js'
import type { StoredKey } from '../../../src/identity/index.js'
import { eventLoopTurn, systemClock } from '../../../src/kernel/index.js'

const manifest: RecordManifest = {
  engine: 'plain map',
  reach: 'network',
  durability: 'process',
  inspection: false,
  because: {
    durability: 'The Map ends with its process.',
    inspection: 'Names are looked up one by one, and notes are not kept.',
  },
}

/** The server: what all clients share. */
export class PlainMap {
  readonly records: Map<StoredKey, StoredRecord> = new Map()
  #fence = 0

  readonly nextFence = (): number => {
    this.#fence += 1
    return this.#fence
  }
}

/** A client, with a connection of its own. */
export function plainMapStore(server: PlainMap, name = 'plain'): RecordStore {
  return { name, manifest, records: new PlainMapRecords(server) }
}

class PlainMapRecords implements Records {
  readonly #server: PlainMap

  constructor(server: PlainMap) {
    this.#server = server
  }

  read(id: StoredKey): Promise<Seen> {
    return this.#request((nowMs) => ({ record: this.#server.records.get(id), nowMs }))
  }

  insert(id: StoredKey, draft: RecordDraft): Promise<Written> {
    return this.#request((nowMs) => {
      const there = this.#server.records.get(id)
      if (there !== undefined) return { written: false, record: there, nowMs }
      const record = draftedRecord(draft, nowMs, this.#server.nextFence)
      this.#server.records.set(id, record)
      return { written: true, record, nowMs }
    })
  }

  swap(id: StoredKey, over: Expected, change: RecordChange | null): Promise<Written> {
    return this.#request((nowMs) => {
      const there = this.#server.records.get(id)
      if (there === undefined || !isOurFormat(there) || !isStill(there, over)) {
        return { written: false, record: there, nowMs }
      }
      const record = change === null ? undefined : changedRecord(there, change, nowMs, this.#server.nextFence)
      if (record === undefined) this.#server.records.delete(id)
      else this.#server.records.set(id, record)
      return { written: true, record, nowMs }
    })
  }

  due(query: DueQuery): Promise<readonly NamedRecord[]> {
    return this.#request((nowMs) => {
      const all = [...this.#server.records].map(([id, record]) => ({ id, record }))
      const found = all.filter(({ record }) => isDue(record, query, nowMs))
      found.sort((a, b) => (a.record.dueAtMs ?? 0) - (b.record.dueAtMs ?? 0))
      return found.slice(0, query.limit).map(({ id, record }) => {
        const taken = lookedAt(record, query, nowMs)
        this.#server.records.set(id, taken)
        return { id, record: taken }
      })
    })
  }

  purge(query: PurgeQuery): Promise<Purged> {
    return this.#request((nowMs) => {
      const gone = { finished: 0, unknown: 0, audit: 0, markers: 0 }
      for (const [id, record] of this.#server.records) {
        const kind = forgettableAs(record, query, nowMs)
        if (kind === undefined || gone[kind] === query.limit) continue
        gone[kind] += 1
        this.#server.records.delete(id)
      }
      return gone
    })
  }

  // On its way to the server and back others come in between; on the server nobody does.
  async #request<Answer>(work: (nowMs: number) => Answer): Promise<Answer> {
    await eventLoopTurn()
    return structuredClone(work(systemClock.wallMs()))
  }
}
