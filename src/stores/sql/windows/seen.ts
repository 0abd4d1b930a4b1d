// What an SQL store remembers for dedupe windows: the port, on statements that all of them share and the runner of
// their records. Each window has a head, which gives out numbers without a gap; whoever marks holds it until its
// commit.

import type { RecordLimits } from '../../../atomicity/index.js'
import { otherPepper, type Pepper, type StoredKey } from '../../../identity/index.js'
import { RepriseError } from '../../../kernel/index.js'
import type { Mark, SeenStore, WindowBounds } from '../../../messaging/index.js'
import type { SqlDialect } from '../dialect.js'
import type { SqlAnswer } from '../executor.js'
import type { Procedure } from '../records/procedures.js'
import type { RecordRunner } from '../records/records.js'
import type { Query, RecordStatements, RecordTables } from '../records/statements.js'
import { Values } from '../values.js'

/** What a head has for its pepper where there is none. */
export const noPepper = 'none'

/** How many of the oldest rows are looked at when some are marked: twice as many, so that none is left in the end. */
const lookedAt = (marks: number): number => 2 * marks + 8

/** The windows of an SQL store. */
export class SqlSeen implements SeenStore {
  readonly pepper: Pepper | undefined
  readonly #dialect: SqlDialect
  readonly #tables: Pick<RecordTables, 'window' | 'seen'>
  readonly #runner: RecordRunner

  constructor({ dialect, tables }: RecordStatements, runner: RecordRunner, pepper?: Pepper) {
    this.pepper = pepper
    this.#dialect = dialect
    this.#tables = tables
    this.#runner = runner
  }

  async seen(
    { name, withinMs, most }: WindowBounds,
    ids: readonly StoredKey[],
    limits: RecordLimits,
  ): Promise<readonly StoredKey[]> {
    const { window, seen } = this.#tables
    const values = new Values(this.#dialect)
    const given = this.#dialect.rowsIn(values.text(JSON.stringify(ids.map((id) => [id]))), { id: 'text' })
    const text = `SELECT w.pepper AS pepper, s.id AS id FROM ${window} AS w
      LEFT JOIN (SELECT r.id, r.number, r.at_ms FROM ${given} AS g JOIN ${seen} AS r ON r.id = g.id) AS s
      ON s.number > w.last - ${values.number(most)} AND s.at_ms > ${this.#dialect.nowMs} - ${values.number(withinMs)}
      WHERE w.name = ${values.text(name)}`
    const rows = (await this.#runner.read({ text, values: values.list }, limits)) as SqlAnswer['rows']
    this.#demandPepper(rows[0])
    return rows.flatMap(({ id }) => (id === null ? [] : [id as StoredKey]))
  }

  mark(bounds: WindowBounds, marks: readonly Mark[], limits: RecordLimits): Promise<void> {
    return this.#runner.write(() => this.#marking(bounds, marks), limits)
  }

  forget(bounds: WindowBounds, mostRows: number, limits: RecordLimits): Promise<number> {
    return this.#runner.write(() => this.#forgetting(bounds, mostRows), limits)
  }

  // A row that is marked anew meanwhile is left alone: its number and its time are looked at once more when it is
  // deleted. So is a head that has moved on: who marks writes both in one commit.
  *#forgetting({ name, most, withinMs }: WindowBounds, mostRows: number): Procedure<number> {
    const { window, seen } = this.#tables
    const { nowMs, among } = this.#dialect
    const head = yield* this.#headOf(name)
    if (head === undefined) return 0
    const last = Number(head['last'])
    const { rowCount } = yield this.#counting((values) => {
      const isForgotten = (): string =>
        `(number <= ${values.number(last - most)} OR at_ms <= ${nowMs} - ${values.number(withinMs)})`
      const forgotten = `SELECT id FROM ${seen} WHERE window_name = ${values.text(name)} AND ${isForgotten()} LIMIT ${values.number(mostRows)}`
      return `DELETE FROM ${seen} WHERE id ${among(forgotten)} AND ${isForgotten()}`
    })
    if (rowCount === mostRows) return rowCount
    yield this.#counting((values) => {
      const unmoved = `name = ${values.text(name)} AND last = ${values.number(last)}`
      const rows = `SELECT 1 FROM ${seen} WHERE window_name = ${values.text(name)}`
      return `DELETE FROM ${window} WHERE ${unmoved} AND NOT EXISTS (${rows})`
    })
    return rowCount
  }

  *#marking(bounds: WindowBounds, marks: readonly Mark[]): Procedure<void> {
    const steps = (): Procedure<boolean> =>
      this.#dialect.writesInWith ? this.#markAtOnce(bounds, marks) : this.#markByStep(bounds, marks)
    if (yield* steps()) return
    // Its first mark, or it is under another pepper.
    const { window } = this.#tables
    const values = new Values(this.#dialect)
    const row = `VALUES (${values.text(bounds.name)}, ${values.text(this.#pepperId)}, 0)`
    yield {
      text: this.#dialect.insertNew(window, 'name, pepper, last', row, 'name'),
      values: values.list,
      counts: true,
    }
    if (yield* steps()) return
    yield* this.#headOf(bounds.name)
    throw new RepriseError('ROW_UNSETTLED', 'The head of the window came and went.')
  }

  // The head is locked before anything that depends on it is read. One statement must not write a row twice: what is
  // marked anew, though it was forgotten, is left alone by what forgets.
  *#markAtOnce(bounds: WindowBounds, marks: readonly Mark[]): Procedure<boolean> {
    const values = new Values(this.#dialect)
    const head = `head AS (${this.#advance(bounds, marks, values)} RETURNING name, last)`
    const given = `given AS MATERIALIZED (SELECT * FROM ${this.#rowsOf(marks, values)} AS g)`
    const marked = `marked AS (${this.#insert('head', 'given', bounds, values)} RETURNING id)`
    const others = 'AND o.id NOT IN (SELECT id FROM given)'
    const forgotten = `forgotten AS (${this.#forget('head', bounds, marks, values, others)} RETURNING id)`
    const { rows } = yield {
      text: `WITH ${head}, ${given}, ${marked}, ${forgotten}
      SELECT (SELECT count(*) FROM head) AS heads, (SELECT count(*) FROM marked) AS marked, (SELECT count(*) FROM forgotten) AS forgotten`,
      values: values.list,
    }
    return Number(rows[0]?.['heads']) === 1
  }

  *#markByStep(bounds: WindowBounds, marks: readonly Mark[]): Procedure<boolean> {
    const { window } = this.#tables
    const { rowCount } = yield this.#counting((values) => this.#advance(bounds, marks, values))
    if (rowCount !== 1) return false
    yield this.#counting((values) => this.#insert(window, this.#rowsOf(marks, values), bounds, values))
    yield this.#counting((values) => this.#forget(window, bounds, marks, values))
    return true
  }

  // A statement of which only the number of rows is wanted.
  #counting(write: (values: Values) => string): Query {
    const values = new Values(this.#dialect)
    return { text: write(values), values: values.list, counts: true }
  }

  // Refuses a head under another pepper. Undefined: there is none.
  *#headOf(name: string): Procedure<SqlAnswer['rows'][number] | undefined> {
    const values = new Values(this.#dialect)
    const text = `SELECT pepper, last FROM ${this.#tables.window} WHERE name = ${values.text(name)}`
    const { rows } = yield { text, values: values.list }
    this.#demandPepper(rows[0])
    return rows[0]
  }

  #advance({ name }: WindowBounds, marks: readonly Mark[], values: Values): string {
    return `UPDATE ${this.#tables.window} SET last = last + ${values.number(marks.length)} WHERE name = ${values.text(name)} AND pepper = ${values.text(this.#pepperId)}`
  }

  // Each with its distance from the last one, by which it gets its number.
  #rowsOf(marks: readonly Mark[], values: Values): string {
    const rows = marks.map(({ id, agoMs }, place) => [id, agoMs, marks.length - 1 - place])
    const columns = { id: 'text', ago_ms: 'number', before_last: 'number' } as const
    return this.#dialect.rowsIn(values.text(JSON.stringify(rows)), columns)
  }

  #insert(head: string, given: string, { name }: WindowBounds, values: Values): string {
    const source = `SELECT g.id, h.name, h.last - g.before_last, ${this.#dialect.nowMs} - g.ago_ms FROM ${head} AS h, ${given} AS g WHERE h.name = ${values.text(name)}`
    return this.#dialect.insertOrSet(this.#tables.seen, 'id, window_name, number, at_ms', source, 'id', [
      'number',
      'at_ms',
    ])
  }

  // Looks at the oldest rows alone, by their index, so that it costs the same however many there are.
  #forget(head: string, bounds: WindowBounds, marks: readonly Mark[], values: Values, others: string = ''): string {
    const { seen } = this.#tables
    const { nowMs, among } = this.#dialect
    const { name, most, withinMs } = bounds
    const oldest = `SELECT id, number, at_ms FROM ${seen} WHERE window_name = ${values.text(name)} ORDER BY number LIMIT ${values.number(lookedAt(marks.length))}`
    const select = `SELECT o.id FROM (${oldest}) AS o, ${head} AS h WHERE h.name = ${values.text(name)} AND (o.number <= h.last - ${values.number(most)} OR o.at_ms <= ${nowMs} - ${values.number(withinMs)}) ${others}`
    return `DELETE FROM ${seen} WHERE id ${among(select)}`
  }

  get #pepperId(): string {
    return this.pepper?.id ?? noPepper
  }

  #demandPepper(head: Readonly<Record<string, unknown>> | undefined): void {
    const stored = head?.['pepper']
    if (stored === undefined || stored === this.#pepperId) return
    throw otherPepper(stored === noPepper ? undefined : String(stored), this.pepper?.ids ?? [])
  }
}
