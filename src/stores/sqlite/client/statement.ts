// A prepared statement of the client: values checked, rows plain, whatever the driver.

import { RepriseError } from '../../../kernel/index.js'
import { listOfValues, type SqlAnswer } from '../../sql/index.js'
import {
  bindable,
  call,
  firstOf,
  plain,
  readExactly,
  rowsOf,
  type SqliteHandle,
  type SqliteHandleStatement,
  type SqliteValue,
} from '../connection/driver.js'
import { givesRows, runKept } from '../connection/statements.js'
import { refuseUnpreparable } from './refusals.js'

/** What a statement did. */
export interface SqliteRunResult {
  /** How many rows it inserted, updated or deleted. */
  readonly changes: number
  /** The rowid of the last row that was inserted on this connection. */
  readonly lastInsertRowid: number | bigint
}

/** A prepared statement, as better-sqlite3 has it. Values come one by one or as one list; named values are refused. */
export interface SqliteClientStatement {
  readonly source: string
  /** Whether it gives rows. */
  readonly reader: boolean
  /** Runs it for its effect. */
  run(...values: readonly unknown[]): SqliteRunResult
  /** Its first row, or undefined. Where the driver cannot be trusted with one row (libsql), all are read. */
  get(...values: readonly unknown[]): unknown
  all(...values: readonly unknown[]): unknown[]
  /** Its rows, one by one. They are read at once: a statement left half read would hold up COMMIT. */
  iterate(...values: readonly unknown[]): IterableIterator<unknown>
  /** Rows as lists from now on. Default of the switch: true. */
  raw(toggle?: boolean): this
  /** The first column alone from now on. Default of the switch: true. */
  pluck(toggle?: boolean): this
  /**
   * All whole numbers as bigint from now on; otherwise those beyond 2^53 alone, which a number could not hold. Default
   * of the switch: true.
   */
  safeIntegers(toggle?: boolean): this
  /** The columns of its rows. */
  columns(): readonly { readonly name: string }[]
  /** Refused: values are given with each call. */
  bind(): never
  /** Refused: name the columns of a join apart, with AS. */
  expand(): never
  /** Refused: statements run in this thread, and there is none to interrupt. */
  interrupt(): never
}

/** Runs something on the connection, if the transaction still lives, and notes its failure. */
export type Act = <Result>(work: () => Result) => Result

/** The statement of a client over that of a driver. */
export function clientStatement(
  handle: SqliteHandle,
  statement: SqliteHandleStatement,
  source: string,
  act: Act,
): SqliteClientStatement {
  let lists = false
  let first = false
  let bigints = false
  const reader = givesRows(statement)
  const read = (method: 'all' | 'get', given: readonly unknown[]): unknown => {
    const values = valuesOf(given)
    return act(() => {
      asLists(statement, lists, reader)
      if (reader) readExactly(statement)
      return method === 'all' ? call(statement, 'all', values) : firstOf(statement, values)
    })
  }
  const shape = (row: unknown): unknown => {
    const cells = plain(row, bigints)
    return first && typeof cells === 'object' && cells !== null ? Object.values(cells)[0] : cells
  }
  const client: SqliteClientStatement = {
    source,
    reader,
    run: (...given) => {
      const values = valuesOf(given)
      return act(() => {
        // The rowid counts as a whole number too.
        if (bigints) readExactly(statement)
        return runFor(handle, statement, reader, values)
      })
    },
    get: (...given) => shape(read('get', given)) ?? undefined,
    all: (...given) => (read('all', given) as unknown[]).map(shape),
    iterate: (...given) => oneByOne(client.all(...given), act),
    raw(toggle = true) {
      lists = toggle
      return client
    },
    pluck(toggle = true) {
      first = toggle
      return client
    },
    safeIntegers(toggle = true) {
      bigints = toggle
      return client
    },
    columns: () => act(() => statement.columns?.() ?? []),
    bind: refuseBind,
    expand: refuseExpand,
    interrupt: refuseInterrupt,
  }
  return client
}

function refuseBind(): never {
  throw new RepriseError('STATEMENT_UNSUPPORTED', 'Values are given with each call of a statement.')
}

function refuseExpand(): never {
  throw new RepriseError('STATEMENT_UNSUPPORTED', 'Rows of a join are not taken apart; name their columns with AS.')
}

function refuseInterrupt(): never {
  throw new RepriseError('STATEMENT_UNSUPPORTED', 'Statements run in this thread: there is none to interrupt.')
}

// They were read while it lived, and are handed out only as long as it does.
function* oneByOne(rows: readonly unknown[], act: Act): Generator<unknown> {
  for (const row of rows) yield act(() => row)
}

/** Runs one statement with its values, prepared anew or kept from before. */
export function answerOf(handle: SqliteHandle, text: string, values: readonly unknown[], act: Act): SqlAnswer {
  refuseUnpreparable(text)
  const given = boundValues(listOfValues(values))
  const found = act(() => runKept(handle, text, given, (statement) => rowsOf(statement, given)))
  return typeof found === 'number' ? { rows: [], rowCount: found } : { rows: found, rowCount: found.length }
}

/** The values of a call, given one by one or as one list. */
function valuesOf(given: readonly unknown[]): readonly SqliteValue[] {
  const [only] = given
  return boundValues(given.length === 1 && Array.isArray(only) ? only : given)
}

function boundValues(values: readonly unknown[]): readonly SqliteValue[] {
  return values.map((value, position) => {
    // Drizzle and Kysely number their values; names would have to be looked up differently in each driver.
    if (typeof value === 'object' && value !== null && !(value instanceof Uint8Array)) {
      throw new RepriseError('ARGUMENT_INVALID', 'Values are given by position, one for each question mark.', {
        details: { position },
      })
    }
    return bindable(value, position)
  })
}

// libsql leaves a statement with RETURNING unfinished when it is run for its effect, and COMMIT is then refused: its
// rows are read instead.
function runFor(
  handle: SqliteHandle,
  statement: SqliteHandleStatement,
  reader: boolean,
  values: readonly SqliteValue[],
): SqliteRunResult {
  if (!reader) {
    const { changes, lastInsertRowid } = call(statement, 'run', values) as SqliteRunResult
    return { changes: Number(changes), lastInsertRowid }
  }
  call(statement, 'all', values)
  const counted = handle.prepare('SELECT changes() AS changes, last_insert_rowid() AS rowid')
  readExactly(counted)
  const row = plain(firstOf(counted, [])) as { readonly changes: number; readonly rowid: number | bigint }
  return { changes: Number(row.changes), lastInsertRowid: row.rowid }
}

// better-sqlite3 refuses to be asked this of a statement without rows.
function asLists(statement: SqliteHandleStatement, lists: boolean, reader: boolean): void {
  if (!reader) return
  if (statement.raw !== undefined) statement.raw(lists)
  else statement.setReturnArrays?.(lists)
}
