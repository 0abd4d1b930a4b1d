// The records of a callback domain. Each call is a transaction of its own: what was read is written over if it is still there.

import {
  type AuditNote,
  changedRecord,
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
  recordFormat,
  type Seen,
  type Written,
} from '../../../atomicity/index.js'
import type { StoredKey } from '../../../identity/index.js'
import { RepriseError } from '../../../kernel/index.js'
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
  Values,
  wholeMs,
} from '../../sql/index.js'
import type { ShortTransactions } from './short-transactions.js'
import type { RecordStatements, Run } from './statements.js'

/** A row that comes and goes between two statements is looked for this often. */
const mostRounds = 4

/** All records of a store. */
export class CallbackRecords<Tx> extends ReadableRecords implements Records {
  readonly #statements: RecordStatements
  readonly #transactions: ShortTransactions<Tx>

  constructor(statements: RecordStatements, transactions: ShortTransactions<Tx>) {
    super(statements.tables)
    this.#statements = statements
    this.#transactions = transactions
  }

  async read(id: StoredKey, limits: RecordLimits): Promise<Seen> {
    return this.#transactions.reading(limits, (run) => this.#statements.read(run, id))
  }

  async insert(id: StoredKey, draft: RecordDraft, limits: RecordLimits): Promise<Written> {
    return this.#transactions.writing(limits, async (run) => {
      for (let round = 1; round <= mostRounds; round++) {
        const seen = await this.#statements.read(run, id)
        if (seen.record !== undefined) return { ...seen, written: false }
        const record = await this.#statements.insert(run, id, draft, seen.nowMs)
        if (record !== undefined) return { written: true, record, nowMs: seen.nowMs }
      }
      throw new RepriseError('ROW_UNSETTLED', `The record came and went ${mostRounds} times while it was claimed.`)
    })
  }

  async swap(
    id: StoredKey,
    over: Expected,
    change: RecordChange | null,
    limits: RecordLimits,
    note?: AuditNote,
  ): Promise<Written> {
    return this.#transactions.writing(limits, async (run) => {
      const seen = await this.#statements.read(run, id)
      const { record: before, nowMs } = seen
      if (before === undefined || !isStill(before, over) || before.format > recordFormat) {
        return { ...seen, written: false }
      }
      const wanted = change === null ? undefined : changedRecord(before, change, nowMs, () => 0)
      const fence = change?.fence === 'next' ? 'next' : 'same'
      const record = wanted === undefined ? undefined : await this.#statements.overwrite(run, id, over, wanted, fence)
      const written = wanted === undefined ? await this.#statements.remove(run, id, over) : record !== undefined
      // Somebody was quicker, after it was read.
      if (!written) return { ...(await this.#statements.read(run, id)), written: false }
      if (note !== undefined) await this.#note(run, [id, nowMs, note, before.state, record?.state ?? 'absent'])
      return { written, record, nowMs }
    })
  }

  async due(query: DueQuery, limits: RecordLimits): Promise<readonly NamedRecord[]> {
    const { operations, limit, marginMs } = query
    const most = checkRows(limit, 1_000)
    if (operations.length === 0) return []
    return this.#transactions.writing(limits, async (run) => {
      const atMs = await this.#statements.nowMs(run)
      const { marker, dialect } = this.#statements.tables
      const values = new Values(dialect)
      const isDue = `m.${hasDue} AND m.due_at_ms <= ${atMs} AND (m.state = 'unknown' OR m.state = 'claimed' AND m.due_at_ms <= ${atMs - wholeMs(marginMs)})`
      const isWanted = `m.mode = 'leased' AND m.${isOurFormat} AND m.operation IN (${operations.map((name) => values.place(name)).join(', ')})`
      const text = `SELECT m.id, ${recordSelection('m')} FROM ${marker} AS m WHERE ${isDue} AND ${isWanted} ORDER BY m.due_at_ms, m.id LIMIT ${most}${this.#locked}`
      const taken: NamedRecord[] = []
      for (const { id, record } of namedRecords(await run(text, values.list))) {
        const written = await this.#statements.overwrite(run, id, record, lookedAt(record, query, atMs), 'same')
        if (written !== undefined) taken.push({ id, record: written })
      }
      return taken
    })
  }

  async purge(query: PurgeQuery, limits: RecordLimits): Promise<Purged> {
    const { unknownAfterMs, markersAfterMs, auditAfterMs } = query
    const limit = checkRows(query.limit, 10_000)
    const { marker, audit } = this.#statements.tables
    return this.#transactions.writing(limits, async (run) => {
      const atMs = await this.#statements.nowMs(run)
      const forget = async ({ since, where }: Forgettable, afterMs: number | undefined): Promise<StoredKey[]> => {
        if (afterMs === undefined) return []
        const old = `SELECT id FROM ${marker} WHERE ${since} <= ${atMs - wholeMs(afterMs)} AND ${where} AND ${isOurFormat} LIMIT ${limit}${this.#locked}`
        const rows = await run(`DELETE FROM ${marker} WHERE id ${this.#among(old)} RETURNING id`, [])
        return rows.map((row) => row['id'] as StoredKey)
      }
      const finished = await forget(finishedRecords, 0)
      const markers = await forget(oldMarkers, markersAfterMs)
      const unknown = await forget(unknownRecords, unknownAfterMs)
      for (const id of unknown) await this.#note(run, [id, atMs, droppedNote, 'unknown', 'absent'])
      const notes =
        auditAfterMs === undefined ? [] : await run(this.#oldNotes(audit, atMs - wholeMs(auditAfterMs), limit), [])
      return { finished: finished.length, unknown: unknown.length, audit: notes.length, markers: markers.length }
    })
  }

  protected rows(text: string, values: readonly unknown[], limits: RecordLimits): ReturnType<ReadableRecords['rows']> {
    return this.#transactions.reading(limits, (run) => run(text, values))
  }

  // What others are taking at this moment is left to them; a writer of SQLite is alone.
  get #locked(): string {
    return this.#statements.tables.dialect === 'postgres' ? ' FOR UPDATE SKIP LOCKED' : ''
  }

  // As an array it is computed once: joined to it, PostgreSQL might compute a selection that locks, and its limit, several times.
  #among(select: string): string {
    return this.#statements.tables.dialect === 'postgres' ? `= ANY (ARRAY (${select}))` : `IN (${select})`
  }

  #oldNotes(audit: string, beforeMs: number, limit: number): string {
    const old = `SELECT number FROM ${audit} WHERE at_ms <= ${beforeMs} ORDER BY at_ms LIMIT ${limit}${this.#locked}`
    return `DELETE FROM ${audit} WHERE number ${this.#among(old)} RETURNING number`
  }

  async #note(
    run: Run,
    [id, atMs, { action, actor, reason }, from, to]: readonly [StoredKey, number, AuditNote, string, string],
  ): Promise<void> {
    const { audit, dialect } = this.#statements.tables
    const values = new Values(dialect)
    const cells = [id, atMs, action, actor, reason, from, to].map((value) => values.place(value)).join(', ')
    await run(`INSERT INTO ${audit} (${auditSelection}) VALUES (${cells}) RETURNING number`, values.list)
  }
}
