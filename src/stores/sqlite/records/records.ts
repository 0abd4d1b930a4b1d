// The records of a store in SQLite. Each call that writes is one short transaction on the writer; each that reads is one statement on a reader.

import {
  type AuditNote,
  type DueQuery,
  droppedNote,
  type Expected,
  isStill,
  lookedAt,
  type NamedRecord,
  type Purged,
  type PurgeQuery,
  type RecordChange,
  type RecordDraft,
  type RecordLimits,
  type Records,
  type Seen,
  type Written,
} from '../../../atomicity/index.js'
import type { StoredKey } from '../../../identity/index.js'
import {
  auditSelection,
  checkRows,
  type Forgettable,
  finishedRecords,
  hasDue,
  isOurFormat,
  namedRecords,
  oldMarkers,
  ReadableRecords,
  recordSelection,
  unknownRecords,
  wholeMs,
} from '../../sql/index.js'
import type { SqliteHandle, SqliteValue } from '../connection/driver.js'
import { rowsIn, writesIn } from '../connection/statements.js'
import { nowMs, type SqliteTables } from '../migrations.js'
import type { RecordRows } from './rows.js'
import { type ShortTransactionParts, ShortTransactions } from './short-transactions.js'

/** All records of a store. */
export class SqliteRecords extends ReadableRecords implements Records {
  readonly #tables: SqliteTables
  readonly #rows: RecordRows
  readonly #transactions: ShortTransactions

  constructor(tables: SqliteTables, rows: RecordRows, parts: ShortTransactionParts) {
    super({ ...tables, dialect: 'sqlite' })
    this.#tables = tables
    this.#rows = rows
    this.#transactions = new ShortTransactions(parts)
  }

  async read(id: StoredKey, limits: RecordLimits): Promise<Seen> {
    return this.#reading(limits, (handle) => this.#rows.read(handle, id))
  }

  async insert(id: StoredKey, draft: RecordDraft, limits: RecordLimits): Promise<Written> {
    return this.#writing(limits, (handle) => {
      const seen = this.#rows.read(handle, id)
      const record = seen.record === undefined ? this.#rows.insert(handle, id, draft, seen.nowMs) : undefined
      return record === undefined ? { ...seen, written: false } : { written: true, record, nowMs: seen.nowMs }
    })
  }

  async swap(
    id: StoredKey,
    over: Expected,
    change: RecordChange | null,
    limits: RecordLimits,
    note?: AuditNote,
  ): Promise<Written> {
    return this.#writing(limits, (handle) => {
      const { record: before, nowMs } = this.#rows.read(handle, id)
      const refused = { written: false, record: before, nowMs }
      if (before === undefined || !isStill(before, over)) return refused
      const record = change === null ? undefined : this.#rows.changed(handle, before, change, nowMs)
      const { marker } = this.#tables
      const remove = `DELETE FROM ${marker} WHERE id = ? AND version = ? AND ${isOurFormat}`
      const written =
        record === undefined
          ? writesIn(handle, remove, [id, over.version]) === 1
          : this.#rows.overwrite(handle, id, over.version, record)
      if (!written) return refused
      if (note !== undefined) this.#note(handle, [id, nowMs, note, before.state, record?.state ?? 'absent'])
      return { written, record, nowMs }
    })
  }

  async due(query: DueQuery, limits: RecordLimits): Promise<readonly NamedRecord[]> {
    const { operations, limit, marginMs } = query
    checkRows(limit, 1_000)
    return this.#writing(limits, (handle) => {
      const atMs = this.#nowMs(handle)
      const isDue = `m.${hasDue} AND m.due_at_ms <= CASE m.state WHEN 'claimed' THEN ? ELSE ? END AND m.state IN ('claimed', 'unknown')`
      const isWanted = `m.mode = 'leased' AND m.${isOurFormat} AND m.operation IN (SELECT value FROM json_each(?))`
      const text = `SELECT m.id, ${recordSelection('m')} FROM ${this.#tables.marker} AS m WHERE ${isDue} AND ${isWanted} ORDER BY m.due_at_ms, m.id LIMIT ?`
      const values = [atMs - Math.ceil(marginMs), atMs, JSON.stringify(operations), limit]
      return namedRecords(rowsIn(handle, text, values)).map(({ id, record }) => {
        const taken = lookedAt(record, query, atMs)
        this.#rows.overwrite(handle, id, record.version, taken)
        return { id, record: taken }
      })
    })
  }

  async purge(query: PurgeQuery, limits: RecordLimits): Promise<Purged> {
    const { unknownAfterMs, markersAfterMs, auditAfterMs } = query
    const limit = checkRows(query.limit, 10_000)
    const { marker, audit } = this.#tables
    return this.#writing(limits, (handle) => {
      const atMs = this.#nowMs(handle)
      const found = ({ since, where }: Forgettable, afterMs: number | undefined): string[] => {
        if (afterMs === undefined) return []
        const text = `SELECT id FROM ${marker} WHERE ${since} <= ? AND ${where} AND ${isOurFormat} LIMIT ?`
        return rowsIn(handle, text, [atMs - wholeMs(afterMs), limit]).map((row) => String(row['id']))
      }
      const forget = (ids: readonly string[]): number => {
        for (const id of ids) writesIn(handle, `DELETE FROM ${marker} WHERE id = ?`, [id])
        return ids.length
      }
      const finished = forget(found(finishedRecords, 0))
      const markers = forget(found(oldMarkers, markersAfterMs))
      const unknown = found(unknownRecords, unknownAfterMs) as StoredKey[]
      for (const id of unknown) this.#note(handle, [id, atMs, droppedNote, 'unknown', 'absent'])
      forget(unknown)
      const old = `DELETE FROM ${audit} WHERE number IN (SELECT number FROM ${audit} WHERE at_ms <= ? ORDER BY at_ms LIMIT ?)`
      const notes = auditAfterMs === undefined ? 0 : writesIn(handle, old, [atMs - wholeMs(auditAfterMs), limit])
      return { finished, unknown: unknown.length, audit: notes, markers }
    })
  }

  protected rows(text: string, values: readonly unknown[], limits: RecordLimits): ReturnType<ReadableRecords['rows']> {
    return this.#reading(limits, (handle) => rowsIn(handle, text, values as readonly SqliteValue[]))
  }

  #reading<Result>(limits: RecordLimits, work: (handle: SqliteHandle) => Result): Promise<Result> {
    return this.#transactions.reading(limits, (handle) => this.#rows.explained(() => work(handle)))
  }

  #writing<Result>(limits: RecordLimits, work: (handle: SqliteHandle) => Result): Promise<Result> {
    return this.#transactions.writing(limits, (handle) => this.#rows.explained(() => work(handle)))
  }

  #nowMs(handle: SqliteHandle): number {
    return Number(rowsIn(handle, `SELECT ${nowMs} AS now_ms`)[0]?.['now_ms'])
  }

  #note(
    handle: SqliteHandle,
    [id, atMs, { action, actor, reason }, from, to]: readonly [StoredKey, number, AuditNote, string, string],
  ): void {
    const text = `INSERT INTO ${this.#tables.audit} (${auditSelection}) VALUES (?, ?, ?, ?, ?, ?, ?)`
    writesIn(handle, text, [id, atMs, action, actor, reason, from, to])
  }
}
