// The records of a store in PostgreSQL. Each call is one statement in a transaction of its own, which can be sent again: what it did the first time, it finds then.

import {
  type AuditNote,
  type DueQuery,
  type Expected,
  isStill,
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
import { RepriseError } from '../../../kernel/index.js'
import { checkRows, namedRecords, ReadableRecords, recordOf } from '../../sql/index.js'
import { packedSeen } from './packed.js'
import { type RunnerParts, StatementRunner } from './statement-runner.js'
import {
  changeText,
  dueText,
  insertText,
  packedReadText,
  parameters,
  purgeText,
  type RecordTables,
  removeText,
} from './statements.js'

/** A row that comes and goes between two statements is looked for this often. */
const mostRounds = 4

type AnswerRow = Readonly<Record<string, unknown>>

/** All records of a store. */
export class PostgresRecords extends ReadableRecords implements Records {
  readonly #tables: RecordTables
  readonly #runner: StatementRunner
  readonly #read: string
  readonly #due: string

  constructor(tables: RecordTables, parts: RunnerParts) {
    super({ ...tables, dialect: 'postgres' })
    this.#tables = tables
    this.#runner = new StatementRunner(parts)
    this.#read = packedReadText(tables, '$1')
    this.#due = dueText(tables)
  }

  async read(id: StoredKey, limits: RecordLimits): Promise<Seen> {
    const [row] = await this.#runner.rows(this.#read, [id], limits)
    return packedSeen(row)
  }

  async insert(id: StoredKey, draft: RecordDraft, limits: RecordLimits): Promise<Written> {
    for (let round = 1; round <= mostRounds; round++) {
      const bind = parameters()
      const text = insertText(this.#tables, id, draft, bind)
      const [row] = await this.#runner.rows(text, bind.values, limits)
      const answer = writtenOf(row)
      if (answer.written || answer.record !== undefined) return answer
      // It came after the statement had begun, so only another one sees it; and by then it may be gone.
      const seen = await this.read(id, limits)
      if (seen.record !== undefined) return { ...seen, written: false }
    }
    throw new RepriseError('ROW_UNSETTLED', `The record came and went ${mostRounds} times while it was claimed.`)
  }

  async swap(
    id: StoredKey,
    over: Expected,
    change: RecordChange | null,
    limits: RecordLimits,
    note?: AuditNote,
  ): Promise<Written> {
    const bind = parameters()
    const text =
      change === null
        ? removeText(this.#tables, id, over, note, bind)
        : changeText(this.#tables, id, over, change, note, bind)
    const [row] = await this.#runner.rows(text, bind.values, limits)
    const answer = writtenOf(row)
    // Somebody was quicker, after the statement had begun: what it saw is not there any more.
    const stale = !answer.written && isStill(answer.record, over)
    return stale ? { ...(await this.read(id, limits)), written: false } : answer
  }

  async due(query: DueQuery, limits: RecordLimits): Promise<readonly NamedRecord[]> {
    const { operations, limit, marginMs, baseMs, capMs } = query
    const values = [operations, Math.ceil(marginMs), checkRows(limit, 1_000), baseMs, capMs]
    return namedRecords(await this.#runner.rows(this.#due, values, limits))
  }

  async purge(query: PurgeQuery, limits: RecordLimits): Promise<Purged> {
    checkRows(query.limit, 10_000)
    const bind = parameters()
    const [row = {}] = await this.#runner.rows(purgeText(this.#tables, query, bind), bind.values, limits)
    const count = (name: string): number => Number(row[name])
    return {
      finished: count('finished'),
      unknown: count('unknown'),
      audit: count('audit'),
      markers: count('markers'),
    }
  }

  protected rows(text: string, values: readonly unknown[], limits: RecordLimits): ReturnType<ReadableRecords['rows']> {
    return this.#runner.rows(text, values, limits)
  }
}

function writtenOf(row: AnswerRow | undefined): Written {
  return { written: row?.['written'] === true, record: recordOf(row), nowMs: Number(row?.['now_ms']) }
}
