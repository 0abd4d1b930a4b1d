// What the five methods of the port do, statement by statement, once for all SQL stores. Each is a generator that
// yields statements and is given their answers, so that a driver without promises runs it as well as one with them.
//
// Where the engine can write inside WITH, a call is one statement and needs no transaction around it. Where it cannot,
// it is a few statements inside a transaction that reads what is committed, or that has the lock of the whole store.

import {
  type AuditNote,
  type DueQuery,
  droppedNote,
  type Expected,
  isStill,
  type NamedRecord,
  type Purged,
  type PurgeQuery,
  type RecordChange,
  type RecordDraft,
  type Stored,
  type Written,
} from '../../../atomicity/index.js'
import type { StoredKey } from '../../../identity/index.js'
import type { SqlAnswer } from '../executor.js'
import { Values } from '../values.js'
import { checkRows, namedRecords, seenIn, selection, storableMs } from './rows.js'
import { type ClockSource, claimCells, forgettable, type Query, type RecordStatements } from './statements.js'

/** Work of several statements. */
export type Procedure<Result> = Generator<Query, Result, SqlAnswer>

/** Performs a procedure on a driver that answers at once. */
export function perform<Result>(procedure: Procedure<Result>, send: (query: Query) => SqlAnswer): Result {
  let step = procedure.next()
  while (step.done !== true) step = procedure.next(send(step.value))
  return step.value
}

/** The same on one that answers with promises. */
export async function performAsync<Result>(
  procedure: Procedure<Result>,
  send: (query: Query) => Promise<SqlAnswer>,
): Promise<Result> {
  let step = procedure.next()
  while (step.done !== true) step = procedure.next(await send(step.value))
  return step.value
}

/** The writes of the port. */
export interface RecordProcedures {
  insert(id: StoredKey, draft: RecordDraft): Procedure<Written>
  swap(id: StoredKey, over: Expected, change: RecordChange | null, note?: AuditNote): Procedure<Written>
  due(query: DueQuery): Procedure<readonly NamedRecord[]>
  purge(query: PurgeQuery): Procedure<Purged>
}

/** The procedures of a store, as its dialect lets them be. */
export function proceduresOf(statements: RecordStatements): RecordProcedures {
  return statements.dialect.writesInWith ? new OneStatement(statements) : new StepByStep(statements)
}

/** The claim of a transaction: made, or the record that is there. Undefined: that was gone when it was read. */
export function* claimed(
  statements: RecordStatements,
  id: StoredKey,
  draft: RecordDraft,
): Procedure<'claimed' | Stored | undefined> {
  const { advanceFence } = statements.tables
  if (draft.leaseMs !== undefined && advanceFence !== undefined) yield counting(advanceFence)
  // Most keys are new, and the index says so: a look before it would be one statement more for each of them.
  const { rowCount } = yield statements.claim(id, draft)
  if (rowCount === 1) return 'claimed'
  const { record, nowMs } = seenIn((yield statements.read(id)).rows[0])
  return record === undefined ? undefined : { record, nowMs }
}

/** Whether the claim of a transaction could take the place of a record that was read. */
export function* reclaimed(
  statements: RecordStatements,
  id: StoredKey,
  over: Expected,
  draft: RecordDraft,
): Procedure<boolean> {
  const { advanceFence } = statements.tables
  if (draft.leaseMs !== undefined && advanceFence !== undefined) yield counting(advanceFence)
  return (yield statements.reclaim(id, over, draft)).rowCount === 1
}

// The write, its note and the answer are parts of one WITH. All of them see the rows as they were before the statement,
// and one look at the clock.
class OneStatement implements RecordProcedures {
  readonly #statements: RecordStatements
  readonly #clock: ClockSource = { ms: 'clock.ms', from: 'clock' }
  readonly #clockTable: string

  constructor(statements: RecordStatements) {
    this.#statements = statements
    this.#clockTable = `clock AS MATERIALIZED (SELECT ${statements.dialect.nowMs} AS ms)`
  }

  *insert(id: StoredKey, draft: RecordDraft): Procedure<Written> {
    const values = this.#values()
    const insert = this.#statements.claimText(claimCells(id, draft, values), this.#clock)
    const text = this.#answered(`done AS (${insert} RETURNING *)`, values.text(id))
    const answer = writtenIn(yield { text, values: values.list })
    if (answer.written || answer.record !== undefined) return answer
    // The record came after the statement had begun, so only the next one sees it.
    return { ...seenIn((yield this.#statements.read(id)).rows[0]), written: false }
  }

  *swap(id: StoredKey, over: Expected, change: RecordChange | null, note?: AuditNote): Procedure<Written> {
    const values = this.#values()
    const text =
      change === null ? this.#removal(id, over, note, values) : this.#changing(id, over, change, note, values)
    const answer = writtenIn(yield { text, values: values.list })
    // Somebody was quicker, after the statement had begun: what it saw is not there any more.
    if (answer.written || !isStill(answer.record, over)) return answer
    return { ...seenIn((yield this.#statements.read(id)).rows[0]), written: false }
  }

  *due(query: DueQuery): Procedure<readonly NamedRecord[]> {
    const { dialect, tables } = this.#statements
    if (query.operations.length === 0) return []
    const values = this.#values()
    const select = this.#statements.due(query, values, { ms: '(SELECT ms FROM clock)', from: '' })
    const set = this.#statements.lookedAt(query, 'clock.ms')
    const update = `UPDATE ${tables.marker} SET ${set} FROM clock WHERE id IN (SELECT id FROM taken) RETURNING ${tables.marker}.*`
    const text = `WITH ${this.#clockTable}, taken AS MATERIALIZED (${select}), done AS (${update})
      SELECT d.id, ${selection(dialect, 'd.')} FROM done AS d JOIN taken ON taken.id = d.id ORDER BY taken.due_at_ms, d.id`
    return namedRecords((yield { text, values: values.list }).rows)
  }

  *purge(query: PurgeQuery): Procedure<Purged> {
    const limit = checkRows(query.limit, 10_000)
    const statements = this.#statements
    const values = this.#values()
    const before = (afterMs: number): string => `(SELECT ms FROM clock) - ${storableMs(afterMs)}`
    const tables = [this.#clockTable]
    const counts: string[] = []
    for (const [name, kind] of Object.entries(forgettable)) {
      const afterMs = kind.afterMs(query)
      if (afterMs === undefined) continue
      tables.push(`${name} AS (${statements.forget(kind, before(afterMs), limit)})`)
      counts.push(`(SELECT count(*) FROM ${name}) AS ${name}`)
    }
    if (query.unknownAfterMs !== undefined) {
      const cells = noteCells(droppedNote, values)
      tables.push(
        `noted AS (${statements.note(`SELECT unknown.id, clock.ms, ${cells}, 'unknown', 'absent' FROM unknown, clock`)})`,
      )
    }
    if (query.auditAfterMs !== undefined) {
      tables.push(`notes AS (${statements.forgetNotes(before(query.auditAfterMs), limit)})`)
      counts.push('(SELECT count(*) FROM notes) AS audit')
    }
    const text = `WITH ${tables.join(', ')} SELECT ${counts.join(', ')}`
    const [row = {}] = (yield { text, values: values.list }).rows
    const count = (name: string): number => Number(row[name] ?? 0)
    return { finished: count('finished'), unknown: count('unknown'), audit: count('audit'), markers: count('markers') }
  }

  #changing(id: StoredKey, over: Expected, change: RecordChange, note: AuditNote | undefined, values: Values): string {
    const { marker } = this.#statements.tables
    const done = `done AS (${this.#statements.changeText(id, over, change, values, this.#clock)} RETURNING ${marker}.*)`
    // By the number of its row alone: where somebody was quicker, nothing is done and nothing is noted.
    const was = `(SELECT m.state FROM ${marker} AS m WHERE m.id = done.id)`
    const noted = note === undefined ? '' : `, ${this.#noted(note, was, values.text(change.state), values)}`
    return this.#answered(done + noted, values.text(id))
  }

  #removal(id: StoredKey, over: Expected, note: AuditNote | undefined, values: Values): string {
    const { dialect, tables } = this.#statements
    const done = `done AS (${this.#statements.removeText(id, over, values)} RETURNING id, state)`
    const noted = note === undefined ? '' : `, ${this.#noted(note, 'done.state', "'absent'", values)}`
    return `WITH ${this.#clockTable}, ${done}${noted}
      SELECT clock.ms AS now_ms, (SELECT count(*) FROM done) AS written, ${selection(dialect, 'm.')}
      FROM clock LEFT JOIN ${tables.marker} AS m ON m.id = ${values.text(id)} AND NOT EXISTS (SELECT FROM done)`
  }

  #noted(note: AuditNote, from: string, to: string, values: Values): string {
    const cells = noteCells(note, values)
    return `noted AS (${this.#statements.note(`SELECT done.id, clock.ms, ${cells}, ${from}, ${to} FROM done, clock`)})`
  }

  // What was written, or else what is there.
  #answered(work: string, id: string): string {
    const { dialect, tables } = this.#statements
    return `WITH ${this.#clockTable}, ${work}, answer AS (SELECT * FROM done UNION ALL SELECT * FROM ${tables.marker} WHERE id = ${id} AND NOT EXISTS (SELECT FROM done))
      SELECT clock.ms AS now_ms, (SELECT count(*) FROM done) AS written, ${selection(dialect, 'd.')} FROM clock LEFT JOIN answer AS d ON d.id IS NOT NULL`
  }

  #values(): Values {
    return new Values(this.#statements.dialect)
  }
}

// Each write depends on what was read, so that it is refused where somebody was quicker. Where there is one writer,
// nobody can be.
class StepByStep implements RecordProcedures {
  readonly #statements: RecordStatements
  readonly #answer: string

  constructor(statements: RecordStatements) {
    const { dialect } = statements
    this.#statements = statements
    this.#answer = dialect.returning(`${dialect.nowMs} AS now_ms, ${selection(dialect, '')}`)
  }

  *insert(id: StoredKey, draft: RecordDraft): Procedure<Written> {
    const { text, values } = this.#statements.claim(id, draft)
    const there = seenIn((yield this.#statements.read(id)).rows[0])
    if (there.record !== undefined) return { ...there, written: false }
    if (draft.leaseMs !== undefined) yield* this.#advanceFence()
    return yield* this.#written(id, { text: text + this.#answer, values })
  }

  *swap(id: StoredKey, over: Expected, change: RecordChange | null, note?: AuditNote): Procedure<Written> {
    const statements = this.#statements
    const there = seenIn((yield statements.read(id)).rows[0])
    const { record: before, nowMs } = there
    if (before === undefined || !isStill(before, over)) return { ...there, written: false }
    const values = new Values(statements.dialect)
    let answer: Written
    if (change === null) {
      const text = statements.removeText(id, over, values)
      const { rowCount } = yield { text, values: values.list, counts: true }
      if (rowCount !== 1) return { ...seenIn((yield statements.read(id)).rows[0]), written: false }
      answer = { written: true, record: undefined, nowMs }
    } else {
      if (change.fence === 'next') yield* this.#advanceFence()
      const text = statements.changeText(id, over, change, values) + this.#answer
      answer = yield* this.#written(id, { text, values: values.list })
    }
    if (!answer.written || note === undefined) return answer
    yield this.#note(note, [id, before.state, change?.state ?? 'absent'], String(answer.nowMs))
    return answer
  }

  *due(query: DueQuery): Procedure<readonly NamedRecord[]> {
    const { dialect, tables } = this.#statements
    if (query.operations.length === 0) return []
    const values = new Values(dialect)
    const { rows } = yield { text: this.#statements.due(query, values, this.#statements.clock), values: values.list }
    const ids = rows.map((row) => row['id'] as string)
    if (ids.length === 0) return []
    const among = `id IN (${ids.map((_, place) => dialect.placeholder(place + 1)).join(', ')})`
    const set = this.#statements.lookedAt(query, this.#statements.clock.ms)
    yield { text: `UPDATE ${tables.marker} SET ${set} WHERE ${among}`, values: ids, counts: true }
    const taken = yield {
      text: `SELECT id, ${selection(dialect, '')} FROM ${tables.marker} WHERE ${among}`,
      values: ids,
    }
    return namedRecords(taken.rows).sort((a, b) => ids.indexOf(a.id) - ids.indexOf(b.id))
  }

  *purge(query: PurgeQuery): Procedure<Purged> {
    const limit = checkRows(query.limit, 10_000)
    const statements = this.#statements
    const { ms } = statements.clock
    const before = (afterMs: number): string => `${ms} - ${storableMs(afterMs)}`
    const gone = { finished: 0, unknown: 0, audit: 0, markers: 0 }
    for (const [name, kind] of Object.entries(forgettable)) {
      const afterMs = kind.afterMs(query)
      if (afterMs === undefined) continue
      const { rows } = yield { text: statements.forget(kind, before(afterMs), limit), values: [] }
      gone[name as keyof typeof forgettable] = rows.length
      if (kind === forgettable.unknown)
        for (const row of rows) yield this.#note(droppedNote, [row['id'], 'unknown', 'absent'], ms)
    }
    if (query.auditAfterMs !== undefined) {
      const { rows } = yield { text: statements.forgetNotes(before(query.auditAfterMs), limit), values: [] }
      gone.audit = rows.length
    }
    return gone
  }

  *#advanceFence(): Procedure<void> {
    const { advanceFence } = this.#statements.tables
    if (advanceFence !== undefined) yield counting(advanceFence)
  }

  // What the write answered with; where the engine cannot answer with rows, what is read after it.
  *#written(id: StoredKey, write: Query): Procedure<Written> {
    const { rows, rowCount } = yield write
    const [row = (yield this.#statements.read(id)).rows[0]] = rows
    return { ...seenIn(row), written: rowCount === 1 }
  }

  #note(note: AuditNote, [id, from, to]: readonly unknown[], atMs: string): Query {
    const values = new Values(this.#statements.dialect)
    const cells = [values.place(id), atMs, noteCells(note, values), values.place(from), values.place(to)]
    return { text: this.#statements.note(`VALUES (${cells.join(', ')})`), values: values.list, counts: true }
  }
}

function counting(text: string): Query {
  return { text, values: [], counts: true }
}

function noteCells({ action, actor, reason }: AuditNote, values: Values): string {
  return [action, actor, reason].map((word) => values.text(word)).join(', ')
}

function writtenIn({ rows: [row] }: SqlAnswer): Written {
  return { written: Number(row?.['written']) === 1, ...seenIn(row) }
}
