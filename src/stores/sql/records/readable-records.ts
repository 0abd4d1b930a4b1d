// Looking at records, on every SQL store alike: each call is one statement that changes nothing.

import type { AuditEntry, NamedRecord, RecordInspection, RecordLimits, RecordQuery } from '../../../atomicity/index.js'
import type { StoredKey } from '../../../identity/index.js'
import { type SqlDialect, storeNowMs } from '../dialect.js'
import { Values } from '../values.js'
import { auditOf, auditSelection, checkRows, liveText, mostNotes, namedRecords, recordSelection } from './rows.js'

/** Where records are, and whose SQL it is. */
export interface ReadableTables {
  /** Whose SQL it is. */
  readonly dialect: SqlDialect
  /** The table of records, quoted. */
  readonly marker: string
  /** The table of audit notes, quoted. */
  readonly audit: string
}

/** Records that can be looked at; a store adds the way to its rows, and how to write. */
export abstract class ReadableRecords implements RecordInspection {
  readonly inspection: RecordInspection = this
  readonly #tables: ReadableTables

  constructor(tables: ReadableTables) {
    this.#tables = tables
  }

  /** The rows of a statement that reads. */
  protected abstract rows(
    text: string,
    values: readonly unknown[],
    limits: RecordLimits,
  ): Promise<readonly Readonly<Record<string, unknown>>[]>

  /** See the port. */
  async list({ state, operation, limit, after }: RecordQuery, limits: RecordLimits): Promise<readonly NamedRecord[]> {
    const { dialect, marker } = this.#tables
    const values = new Values(dialect)
    const wanted = ['1 = 1']
    if (state !== undefined) wanted.push(`m.state = ${values.place(state)}`)
    if (operation !== undefined) wanted.push(`m.operation = ${values.place(operation)}`)
    if (after !== undefined) wanted.push(`m.id > ${values.place(after)}`)
    const text = `SELECT m.id, ${recordSelection('m')} FROM ${marker} AS m WHERE ${wanted.join(' AND ')} ORDER BY m.id LIMIT ${checkRows(limit, 1_000)}`
    return namedRecords(await this.rows(text, values.list, limits))
  }

  /** See the port. */
  async live(scope: string, most: number, limits: RecordLimits): Promise<number> {
    const { dialect, marker } = this.#tables
    const values = new Values(dialect)
    // One look at the clock, not one for each row.
    const nowMs = `(SELECT ${storeNowMs[dialect]})`
    const text = liveText(marker, values.place(scope), nowMs, String(checkRows(most, 1_000_000)))
    const [row] = await this.rows(text, values.list, limits)
    return Number(row?.['live'])
  }

  /** See the port. */
  async notes(id: StoredKey, limits: RecordLimits): Promise<readonly AuditEntry[]> {
    const { dialect, audit } = this.#tables
    const values = new Values(dialect)
    const text = `SELECT ${auditSelection} FROM ${audit} WHERE id = ${values.place(id)} ORDER BY number LIMIT ${mostNotes}`
    return (await this.rows(text, values.list, limits)).map(auditOf)
  }
}
