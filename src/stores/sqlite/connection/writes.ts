// Statements that only write, kept prepared on their connection: preparing one costs as much as running it.
//
// Only those of `tx.query`, of the repeatable writes and of the marker come here; what a body prepares itself is its own. One that gives rows is prepared each time, since a change of the
// schema may change its columns.

import { call, type SqliteHandle, type SqliteHandleStatement, type SqliteValue } from './driver.js'

interface Kept {
  readonly statement: SqliteHandleStatement
  /** How many values it was run with. */
  readonly values: number
}

const mostKept = 100
const longestText = 2_000
/** A statement holds its values until the next run; large ones are not to be held for long. */
const longestValue = 4_096

const kept = new WeakMap<SqliteHandle, Map<string, Kept>>()

/**
 * Runs a statement, prepared anew or kept from before. One that gives rows is handed to `read`, and what it makes of them comes back; of all others the number of rows that
 * they wrote.
 */
export function runKept<Read>(
  handle: SqliteHandle,
  text: string,
  values: readonly SqliteValue[],
  read: (statement: SqliteHandleStatement) => Read,
): number | Read {
  const found = kept.get(handle)?.get(text)
  const small = values.every(isSmall)
  // A value that is left out would be the one of the run before, so their number has to be the same.
  if (found === undefined || found.values !== values.length || !small) {
    const statement = handle.prepare(text)
    if (givesRows(statement)) return read(statement)
    const written = changesOf(statement, values)
    if (small && text.length <= longestText) keep(handle, text, { statement, values: values.length })
    return written
  }
  try {
    return changesOf(found.statement, values)
  } catch (error) {
    // Whatever state the driver left it in, it is not used again.
    kept.get(handle)?.delete(text)
    throw error
  }
}

/** Lets go of what was kept on a connection that is being closed: libsql keeps the file open as long as one of its statements is alive. */
export function forgetWrites(handle: SqliteHandle): void {
  kept.delete(handle)
}

/** Whether a statement gives rows. Where the driver does not tell, it is asked for rows, which all statements then answer. */
export function givesRows(statement: SqliteHandleStatement): boolean {
  if (statement.reader !== undefined) return statement.reader
  return statement.columns === undefined || statement.columns().length > 0
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
