// Statements kept prepared on their connection: preparing one costs as much as running it.
//
// Reprise's own are kept whatever they do. Of a body's, those of `tx.query` and of the repeatable writes come here, and
// only what gives no rows is kept: a change of the schema may change the columns of the rest. What a body prepares
// itself is its own.

import {
  call,
  listOf,
  readLists,
  rowsOf,
  type SqliteHandle,
  type SqliteHandleStatement,
  type SqliteValue,
} from './driver.js'

interface Kept {
  readonly statement: SqliteHandleStatement
  /** How many values it was run with. */
  readonly values: number
  readonly givesRows: boolean
}

const mostKept = 100
const longestText = 4_000
/** A statement holds its values until the next run; large ones are not to be held for long. */
const longestValue = 4_096

const kept = new WeakMap<SqliteHandle, Map<string, Kept>>()

/**
 * Runs a statement of a body, prepared anew or kept from before. One that gives rows is handed to `read`, and what it
 * makes of them comes back; of all others the number of rows that they wrote.
 */
export function runKept<Read>(
  handle: SqliteHandle,
  text: string,
  values: readonly SqliteValue[],
  read: (statement: SqliteHandleStatement) => Read,
): number | Read {
  return using(handle, text, values, 'writes', (statement, reads) =>
    reads ? read(statement) : changesOf(statement, values),
  )
}

/** The rows of a statement of Reprise's own, whose columns are named in its text. */
export function rowsIn(
  handle: SqliteHandle,
  text: string,
  values: readonly SqliteValue[] = [],
): Record<string, unknown>[] {
  return using(handle, text, values, 'all', (statement) => rowsOf(statement, values))
}

/**
 * The only row of such a statement, as a list; undefined: it gives none. A text that is used here is used nowhere else,
 * since a kept statement stays what it was made.
 */
export function listIn(
  handle: SqliteHandle,
  text: string,
  values: readonly SqliteValue[] = [],
): readonly unknown[] | undefined {
  return using(handle, text, values, 'all', (statement) => listOf(statement, values), readLists)
}

/** How many rows a statement of Reprise's own wrote. */
export function writesIn(handle: SqliteHandle, text: string, values: readonly SqliteValue[] = []): number {
  return using(handle, text, values, 'all', (statement) => changesOf(statement, values))
}

/**
 * Lets go of what was kept on a connection that is being closed: libsql keeps the file open as long as one of its
 * statements is alive.
 */
export function forgetStatements(handle: SqliteHandle): void {
  kept.delete(handle)
}

/**
 * Whether a statement gives rows. Where the driver does not tell, it is asked for rows, which all statements then
 * answer.
 */
export function givesRows(statement: SqliteHandleStatement): boolean {
  if (statement.reader !== undefined) return statement.reader
  return statement.columns === undefined || statement.columns().length > 0
}

function using<Result>(
  handle: SqliteHandle,
  text: string,
  values: readonly SqliteValue[],
  keeps: 'writes' | 'all',
  run: (statement: SqliteHandleStatement, givesRows: boolean) => Result,
  ready?: (statement: SqliteHandleStatement) => void,
): Result {
  const found = kept.get(handle)?.get(text)
  const small = values.every(isSmall)
  const mayKeep = (reads: boolean): boolean => keeps === 'all' || !reads
  // A value that is left out would be the one of the run before, so their number has to be the same.
  if (found === undefined || found.values !== values.length || !small || !mayKeep(found.givesRows)) {
    const statement = handle.prepare(text)
    ready?.(statement)
    const one = { statement, values: values.length, givesRows: givesRows(statement) }
    const result = run(statement, one.givesRows)
    if (small && text.length <= longestText && mayKeep(one.givesRows)) keep(handle, text, one)
    return result
  }
  try {
    return run(found.statement, found.givesRows)
  } catch (error) {
    // Whatever state the driver left it in, it is not used again.
    kept.get(handle)?.delete(text)
    throw error
  }
}

function changesOf(statement: SqliteHandleStatement, values: readonly SqliteValue[]): number {
  const { changes } = call(statement, 'run', values) as { readonly changes: number | bigint }
  return Number(changes)
}

function keep(handle: SqliteHandle, text: string, one: Kept): void {
  let texts = kept.get(handle)
  if (texts === undefined) {
    texts = new Map()
    kept.set(handle, texts)
  }
  // Programs have few texts; one that makes them up as it goes gains nothing here, and must not fill the memory.
  if (texts.size >= mostKept) texts.clear()
  texts.set(text, one)
}

function isSmall(value: SqliteValue): boolean {
  return !((typeof value === 'string' || value instanceof Uint8Array) && value.length > longestValue)
}
