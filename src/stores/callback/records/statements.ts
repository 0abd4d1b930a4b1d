// Reprise's own tables in a database that somebody else connects to, and the statements on them, for both dialects. All of them answer with rows: how many rows a write touched is not
// told by every ORM.

import {
  draftedRecord,
  type Expected,
  type RecordDraft,
  type RecordOutcome,
  type Seen,
  type StoredRecord,
} from '../../../atomicity/index.js'
import type { StoredKey } from '../../../identity/index.js'
import { RepriseError } from '../../../kernel/index.js'
import {
  checkPrefix,
  checkSchema,
  isOurFormat,
  migrationMissing,
  placeholder,
  quoteName,
  recordColumns,
  recordOf,
  recordSelection,
  recordValues,
  type SqlDialect,
  storeNowMs,
  Values,
  wholeMs,
} from '../../sql/index.js'
import { signsOf } from '../classification.js'

/** Runs one statement inside a transaction, and gives its rows. */
export type Run = (text: string, values: readonly unknown[]) => Promise<readonly Readonly<Record<string, unknown>>[]>

/** Where Reprise's own tables are. */
export interface CallbackTables {
  /** Whose SQL it is. */
  readonly dialect: SqlDialect
  /** The table of records, quoted. */
  readonly marker: string
  /** The table of audit notes, quoted. */
  readonly audit: string
  /** The fence: a sequence as PostgreSQL names it in a text, or a table of one row. */
  readonly fence: string
}

/** The setting of a transaction on PostgreSQL that ends with it: whoever finds it is inside. */
export const markSetting = 'reprise.transaction'

/** The tables with a prefix; only PostgreSQL has schemas, `public` by default. */
export function callbackTables(
  dialect: SqlDialect,
  prefix: string = 'reprise_',
  schema: string | undefined = undefined,
): CallbackTables {
  if (dialect !== 'postgres' && dialect !== 'sqlite') {
    throw new RepriseError('ARGUMENT_INVALID', "The dialect is 'postgres' or 'sqlite'.")
  }
  if (dialect === 'sqlite' && schema !== undefined) {
    throw new RepriseError('ARGUMENT_INVALID', 'SQLite has no schemas; give a prefix.')
  }
  const before = dialect === 'postgres' ? `${quoteName(checkSchema(schema ?? 'public'))}.` : ''
  const table = (name: string): string => before + quoteName(checkPrefix(prefix) + name)
  return { dialect, marker: table('marker'), audit: table('audit'), fence: table('fence') }
}

/** Statements on single records. */
export class RecordStatements {
  readonly tables: CallbackTables
  readonly #nowMs: string

  constructor(tables: CallbackTables) {
    this.tables = tables
    this.#nowMs = storeNowMs[tables.dialect]
  }

  /** The store's time. */
  async nowMs(run: Run): Promise<number> {
    const [row] = await run(`SELECT ${this.#nowMs} AS now_ms`, [])
    return Number(row?.['now_ms'])
  }

  /**
   * SQLite: becomes the writer of the file, without writing. What an ORM begins is mostly DEFERRED, and a transaction that reads first and writes later can lose its snapshot; after
   * BEGIN IMMEDIATE it has nothing left to do.
   */
  async lockFile(run: Run): Promise<void> {
    const { fence } = this.tables
    await this.#explained(() => run(`UPDATE ${fence} SET number = number WHERE 1 = 0`, []))
  }

  /** Reads one, and the time also where there is none. */
  async read(run: Run, id: StoredKey): Promise<Seen> {
    const { marker, dialect } = this.tables
    const text = `SELECT ${this.#nowMs} AS now_ms, ${recordSelection('m')} FROM (SELECT 1) AS one LEFT JOIN ${marker} AS m ON m.id = ${placeholder(dialect, 1)}`
    const [row] = await this.#explained(() => run(text, [id]))
    return { record: recordOf(row), nowMs: Number(row?.['now_ms']) }
  }

  /** Inserts a claim; undefined: the unique index has one. Waits for a transaction that is about to. */
  async insert(run: Run, id: StoredKey, draft: RecordDraft, nowMs: number): Promise<StoredRecord | undefined> {
    const { marker, dialect } = this.tables
    const record = draftedRecord(draft, nowMs, () => 0)
    const values = new Values(dialect)
    const cells = [values.place(id), ...(await this.#cells(run, values, record, draft.leaseMs !== undefined))]
    const text = `INSERT INTO ${marker} (id, ${recordColumns.join(', ')}) VALUES (${cells.join(', ')}) ON CONFLICT (id) DO NOTHING RETURNING fence`
    const [row] = await this.#explained(() => run(text, values.list))
    return row === undefined ? undefined : withFence(record, row)
  }

  /** Writes a record over the one that was read; undefined: that is not there any more, or of a newer format. */
  async overwrite(
    run: Run,
    id: StoredKey,
    over: Expected,
    record: StoredRecord,
    fence: 'same' | 'next',
  ): Promise<StoredRecord | undefined> {
    const { marker, dialect } = this.tables
    const values = new Values(dialect)
    const cells = await this.#cells(run, values, record, fence === 'next')
    const set = recordColumns.map((name, position) => `${name} = ${cells[position]}`).join(', ')
    const text = `UPDATE ${marker} SET ${set} WHERE ${isThatOne(id, over, values)} RETURNING fence`
    const [row] = await run(text, values.list)
    return row === undefined ? undefined : withFence(record, row)
  }

  /** Removes the record that was read; false: it is not there any more, or of a newer format. */
  async remove(run: Run, id: StoredKey, over: Expected): Promise<boolean> {
    const { marker, dialect } = this.tables
    const values = new Values(dialect)
    const rows = await run(`DELETE FROM ${marker} WHERE ${isThatOne(id, over, values)} RETURNING id`, values.list)
    return rows.length === 1
  }

  /**
   * Writes the outcome into a claim of this transaction; false: it is not there. On PostgreSQL it is only written inside the transaction that `mark` was set in, and fails in one that an
   * error has ended.
   */
  async outcome(run: Run, id: StoredKey, token: string, outcome: RecordOutcome, mark: string): Promise<boolean> {
    const { marker, dialect } = this.tables
    const { state, codec = null, value = null, rememberedMs } = outcome
    const values = new Values(dialect)
    const told = `state = ${values.place(state)}, codec = ${values.place(codec)}, value = ${values.place(value)}`
    const expires = rememberedMs === Number.POSITIVE_INFINITY ? 'NULL' : `clock.ms + ${wholeMs(rememberedMs)}`
    const set = `${told}, completed_at_ms = clock.ms, expires_at_ms = ${expires}`
    const ours = `id = ${values.place(id)} AND token = ${values.place(token)} AND state = 'claimed'`
    const inside = dialect === 'postgres' ? ` AND current_setting('${markSetting}', true) = ${values.place(mark)}` : ''
    const text = `UPDATE ${marker} SET ${set} FROM (SELECT ${this.#nowMs} AS ms) AS clock WHERE ${ours}${inside} RETURNING 1 AS written`
    return (await run(text, values.list)).length === 1
  }

  // The number of the fence is taken by the statement that stores it, as far as the engine lets it.
  async #cells(run: Run, values: Values, record: StoredRecord, takesFence: boolean): Promise<readonly string[]> {
    const { dialect, fence } = this.tables
    const next = dialect === 'postgres' ? `nextval('${fence}')` : `(SELECT number FROM ${fence})`
    if (takesFence && dialect === 'sqlite') await run(`UPDATE ${fence} SET number = number + 1 RETURNING number`, [])
    const cells = recordValues(record)
    return recordColumns.map((name, position) =>
      name === 'fence' && takesFence ? next : values.place(cells[position] ?? null),
    )
  }

  async #explained<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      throw this.#isMissing(error) ? migrationMissing(error) : error
    }
  }

  #isMissing(error: unknown): boolean {
    const signs = signsOf(error)
    if (signs.includes('42P01') || signs.includes('42703')) return true
    // SQLite has one code for all mistakes in a statement, so its words decide; they are never translated.
    return error instanceof Error && /no such table: |no such column: m\.|has no column named/.test(error.message)
  }
}

// The version alone would not tell a row from one that was removed and inserted again.
function isThatOne(id: StoredKey, { version, token, fence }: Expected, values: Values): string {
  const name = values.place(id)
  const sameToken = token === undefined ? 'token IS NULL' : `token = ${values.place(token)}`
  const sameFence = fence === undefined ? 'fence IS NULL' : `fence = ${wholeMs(fence)}`
  return `id = ${name} AND version = ${wholeMs(version)} AND ${sameToken} AND ${sameFence} AND ${isOurFormat}`
}

function withFence(record: StoredRecord, row: Readonly<Record<string, unknown>>): StoredRecord {
  const { fence } = row
  return { ...record, fence: fence === null || fence === undefined ? undefined : Number(fence) }
}
