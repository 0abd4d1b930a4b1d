// Records in a file, as statements on one connection. Whoever writes has the lock of the file, so that what was read a statement before is what is there.

import {
  changedRecord,
  draftedRecord,
  type RecordChange,
  type RecordDraft,
  type RecordOutcome,
  recordFormat,
  type Seen,
  type StoredRecord,
} from '../../../atomicity/index.js'
import type { StoredKey } from '../../../identity/index.js'
import {
  isOurFormat,
  migrationMissing,
  recordColumns,
  recordIn,
  recordSelection,
  recordValues,
  wholeMs,
} from '../../sql/index.js'
import type { SqliteHandle } from '../connection/driver.js'
import { listsIn, rowsIn, writesIn } from '../connection/statements.js'
import { nowMs, type SqliteTables } from '../migrations.js'

const claimColumns = [
  'format',
  'version',
  'mode',
  'operation',
  'scope',
  'fingerprint',
  'state',
  'token',
  'claims',
  'looks',
  'input',
] as const satisfies readonly (typeof recordColumns)[number][]

/** The records of a file. */
export class RecordRows {
  readonly #tables: SqliteTables
  readonly #read: string
  readonly #claim: string
  readonly #insert: string
  readonly #update: string
  readonly #outcome: string

  constructor(tables: SqliteTables) {
    const { marker } = tables
    const columns = recordColumns.join(', ')
    const marks = recordColumns.map(() => '?').join(', ')
    this.#tables = tables
    this.#read = `SELECT ${nowMs} AS now_ms, ${recordSelection('m')} FROM (SELECT 1) AS one LEFT JOIN ${marker} AS m ON m.id = ?`
    // Only what a claim in a transaction has: the rest is empty until its outcome. The time is one for the whole of a statement.
    this.#claim = `INSERT INTO ${marker} (id, ${claimColumns.join(', ')}, first_claimed_at_ms, claimed_at_ms) VALUES (?, ${claimColumns.map(() => '?').join(', ')}, ${nowMs}, ${nowMs}) ON CONFLICT (id) DO NOTHING`
    this.#insert = `INSERT INTO ${marker} (id, ${columns}) VALUES (?, ${marks}) ON CONFLICT (id) DO NOTHING`
    this.#update = `UPDATE ${marker} SET ${recordColumns.map((name) => `${name} = ?`).join(', ')} WHERE id = ? AND version = ? AND ${isOurFormat}`
    this.#outcome = `UPDATE ${marker} SET state = ?, codec = ?, value = ?, completed_at_ms = ${nowMs}, expires_at_ms = ${nowMs} + ? WHERE id = ? AND token = ? AND state = 'claimed'`
  }

  /** Reads one, and the time also where there is none. */
  read(handle: SqliteHandle, id: StoredKey): Seen {
    const [cells = []] = this.explained(() => listsIn(handle, this.#read, [id]))
    return { record: recordIn(cells, 1), nowMs: Number(cells[0]) }
  }

  /** Inserts the claim of a transaction, in one statement where it has no lease; false: the unique index has one. */
  claim(handle: SqliteHandle, id: StoredKey, draft: RecordDraft): boolean {
    const { mode, operation = null, scope = null, fingerprint = null, token, leaseMs, input = null } = draft
    if (leaseMs !== undefined) return this.insert(handle, id, draft, this.read(handle, id).nowMs) !== undefined
    const values = [id, recordFormat, 1, mode, operation, scope, fingerprint, 'claimed', token, 1, 0, input]
    return this.explained(() => writesIn(handle, this.#claim, values)) === 1
  }

  /** Inserts a claim; undefined: the unique index has one. */
  insert(handle: SqliteHandle, id: StoredKey, draft: RecordDraft, atMs: number): StoredRecord | undefined {
    const record = draftedRecord(draft, atMs, () => this.#nextFence(handle))
    const written = this.explained(() => writesIn(handle, this.#insert, [id, ...recordValues(record)]))
    return written === 1 ? record : undefined
  }

  /** Writes a record over one of this version; false: it is not there, or of a newer format. */
  overwrite(handle: SqliteHandle, id: StoredKey, version: number, record: StoredRecord): boolean {
    return writesIn(handle, this.#update, [...recordValues(record), id, version]) === 1
  }

  /** Writes an outcome into the claim with this token; false: it is not there. One transaction is one write to whoever comes after it, so the version stays. */
  complete(handle: SqliteHandle, id: StoredKey, token: string, outcome: RecordOutcome): boolean {
    const { state, codec = null, value = null, rememberedMs } = outcome
    const remembered = rememberedMs === Number.POSITIVE_INFINITY ? null : wholeMs(rememberedMs)
    return writesIn(handle, this.#outcome, [state, codec, value, remembered, id, token]) === 1
  }

  /** What a change makes of a record. */
  changed(handle: SqliteHandle, record: StoredRecord, change: RecordChange, atMs: number): StoredRecord {
    return changedRecord(record, change, atMs, () => this.#nextFence(handle))
  }

  /** What a new claim makes of a record whose memory has ended. */
  drafted(handle: SqliteHandle, version: number, draft: RecordDraft, atMs: number): StoredRecord {
    return { ...draftedRecord(draft, atMs, () => this.#nextFence(handle)), version: version + 1 }
  }

  #nextFence(handle: SqliteHandle): number {
    const { fence } = this.#tables
    writesIn(handle, `UPDATE ${fence} SET number = number + 1`)
    return Number(rowsIn(handle, `SELECT number FROM ${fence}`)[0]?.['number'])
  }

  /** Does work on the tables; where they are not there, or of an older version, it is refused with MIGRATION_MISSING. */
  explained<Result>(work: () => Result): Result {
    try {
      return work()
    } catch (error) {
      throw this.#isMissing(error) ? migrationMissing(error) : error
    }
  }

  // SQLite has one code for all mistakes in a statement, so its words decide; they are never translated.
  #isMissing(error: unknown): boolean {
    if (!(error instanceof Error)) return false
    const { message } = error
    const { marker, audit, fence } = this.#tables
    const isAbsent = [marker, audit, fence].some((table) => message.includes(`no such table: ${table.slice(1, -1)}`))
    return isAbsent || message.includes('no such column: ') || message.includes('has no column named')
  }
}
