// Drivers of SQLite and how they differ: one shape to call them by, and one set of names for their errors.

import { createRequire } from 'node:module'
import { builtin, isRepriseError, RepriseError } from '../../../kernel/index.js'
import { isBusySign } from '../../sql/index.js'

/** What Reprise needs of an open database; better-sqlite3, libsql and `DatabaseSync` of `node:sqlite` have it. */
export interface SqliteHandle {
  /** Prepares one statement. */
  prepare(text: string): SqliteHandleStatement
  /** Runs statements without values or rows. */
  exec(text: string): unknown
  /** Closes the connection. */
  close(): unknown
  /** Whether a transaction is open; better-sqlite3 and libsql. */
  readonly inTransaction?: boolean
  /** The same; `node:sqlite`. */
  readonly isTransaction?: boolean
}

/** What Reprise needs of a prepared statement. */
export interface SqliteHandleStatement {
  /** Runs it for its effect. */
  run(...values: never[]): { readonly changes: number | bigint; readonly lastInsertRowid: number | bigint }
  all(...values: never[]): unknown[]
  /** Its first row. */
  get(...values: never[]): unknown
  /** Whether it gives rows; better-sqlite3 and libsql. */
  readonly reader?: boolean
  columns?(): readonly { readonly name: string }[]
  /** Rows as lists; better-sqlite3 and libsql. */
  raw?(toggle?: boolean): unknown
  /** Whole numbers as bigint; better-sqlite3 and libsql. */
  safeIntegers?(toggle?: boolean): unknown
  /** Rows by table; better-sqlite3 alone. */
  expand?(toggle?: boolean): unknown
  /** Rows as lists; `node:sqlite`. */
  setReturnArrays?(enabled: boolean): unknown
  /** Whole numbers as bigint; `node:sqlite`. */
  setReadBigInts?(enabled: boolean): unknown
}

/** A value that SQLite can bind. */
export type SqliteValue = string | number | bigint | null | Uint8Array

/**
 * Names of SQLite's result codes by number: the primary ones, and those extended ones that decide something
 * (sqlite.org/rescode.html).
 */
const codeNames: Readonly<Record<number, string>> = {
  0: 'SQLITE_OK',
  1: 'SQLITE_ERROR',
  2: 'SQLITE_INTERNAL',
  3: 'SQLITE_PERM',
  4: 'SQLITE_ABORT',
  5: 'SQLITE_BUSY',
  6: 'SQLITE_LOCKED',
  7: 'SQLITE_NOMEM',
  8: 'SQLITE_READONLY',
  9: 'SQLITE_INTERRUPT',
  10: 'SQLITE_IOERR',
  11: 'SQLITE_CORRUPT',
  12: 'SQLITE_NOTFOUND',
  13: 'SQLITE_FULL',
  14: 'SQLITE_CANTOPEN',
  15: 'SQLITE_PROTOCOL',
  17: 'SQLITE_SCHEMA',
  18: 'SQLITE_TOOBIG',
  19: 'SQLITE_CONSTRAINT',
  20: 'SQLITE_MISMATCH',
  21: 'SQLITE_MISUSE',
  23: 'SQLITE_AUTH',
  25: 'SQLITE_RANGE',
  26: 'SQLITE_NOTADB',
  261: 'SQLITE_BUSY_RECOVERY',
  262: 'SQLITE_LOCKED_SHAREDCACHE',
  266: 'SQLITE_IOERR_READ',
  275: 'SQLITE_CONSTRAINT_CHECK',
  517: 'SQLITE_BUSY_SNAPSHOT',
  522: 'SQLITE_IOERR_SHORT_READ',
  773: 'SQLITE_BUSY_TIMEOUT',
  778: 'SQLITE_IOERR_WRITE',
  787: 'SQLITE_CONSTRAINT_FOREIGNKEY',
  1032: 'SQLITE_READONLY_DBMOVED',
  1034: 'SQLITE_IOERR_FSYNC',
  1290: 'SQLITE_IOERR_DIR_FSYNC',
  1299: 'SQLITE_CONSTRAINT_NOTNULL',
  1555: 'SQLITE_CONSTRAINT_PRIMARYKEY',
  1811: 'SQLITE_CONSTRAINT_TRIGGER',
  2067: 'SQLITE_CONSTRAINT_UNIQUE',
  2579: 'SQLITE_CONSTRAINT_ROWID',
}

/**
 * The names an error goes by, the most telling first: `SQLITE_BUSY_SNAPSHOT`, then `SQLITE_BUSY`; or the code of a
 * refusal of Reprise's own. None: the error is not the engine's.
 */
export function signsOf(error: unknown): readonly string[] {
  if (isRepriseError(error, 'TRANSACTION_ENDED_ELSEWHERE')) return ['transaction-ended-elsewhere']
  if (isRepriseError(error)) return [error.code]
  if (typeof error !== 'object' || error === null) return []
  const { code, rawCode, errcode, message } = error as Readonly<Record<string, unknown>>
  const number = typeof errcode === 'number' ? errcode : typeof rawCode === 'number' ? rawCode : undefined
  const names: (string | undefined)[] = []
  if (typeof code === 'string' && code.startsWith('SQLITE_')) names.push(code, /^SQLITE_[A-Z]+/.exec(code)?.[0])
  if (number !== undefined) names.push(codeNames[number], codeNames[number & 0xff])
  // libsql tells of a database that cannot be opened in words alone.
  if (typeof message === 'string' && message.startsWith('ConnectionFailed(')) names.push('SQLITE_CANTOPEN')
  return [...new Set(names.filter((name) => name !== undefined))]
}

/** Whether an error means that somebody else holds the lock at this moment. */
export function isBusy(error: unknown): boolean {
  return isBusySign(signsOf(error)[0])
}

const busyOn = new WeakSet<SqliteHandle>()

/**
 * Notes that a statement on the connection could not have its lock: it is closed when it is given back. In libsql such
 * a statement counts as one that reads until it is collected, and a transaction after it would leave its snapshot open.
 */
export function noteBusy(handle: SqliteHandle, error: unknown): void {
  if (isBusy(error)) busyOn.add(handle)
}

/** Whether a statement on the connection could not have its lock. */
export function wasBusy(handle: SqliteHandle): boolean {
  return busyOn.has(handle)
}

/** Whether a transaction is open on the connection. */
export function isOpen(handle: SqliteHandle): boolean {
  const told = handle.inTransaction ?? handle.isTransaction
  if (typeof told === 'boolean') return told
  // The driver does not tell: BEGIN is refused inside a transaction, and DEFERRED takes no lock outside of one.
  try {
    handle.exec('BEGIN DEFERRED')
  } catch {
    return true
  }
  handle.exec('ROLLBACK')
  return false
}

/** The same; a connection that cannot even tell has no transaction that could be trusted. */
export function isStillOpen(handle: SqliteHandle): boolean {
  try {
    return isOpen(handle)
  } catch {
    return false
  }
}

/**
 * Runs a statement; rows as plain objects, with bytes as `Uint8Array` and whole numbers exact, whatever the driver
 * makes of them.
 */
export function rowsOf(statement: SqliteHandleStatement, values: readonly SqliteValue[]): Record<string, unknown>[] {
  readExactly(statement)
  const rows = call(statement, 'all', values) as Record<string, unknown>[]
  return rows.map((row) => plain(row))
}

/** Lets a statement give its rows as lists: of many columns some drivers make a row by name at three times the cost. */
export function readLists(statement: SqliteHandleStatement): void {
  if (statement.setReturnArrays !== undefined) statement.setReturnArrays(true)
  else statement.raw?.(true)
}

/**
 * The only row of a statement that was told to {@link readLists}, and is asked in no other way (see {@link firstOf});
 * whole numbers are numbers or bigints. Undefined: there is none. To be asked for all of them costs libsql half as much
 * again.
 */
export function listOf(
  statement: SqliteHandleStatement,
  values: readonly SqliteValue[],
): readonly unknown[] | undefined {
  const row = call(statement, 'get', values)
  // Older versions of node:sqlite know rows by name alone; their cells are in the order of the columns.
  return row === undefined || Array.isArray(row) ? row : Object.values(row as object)
}

/** Calls a method of a statement with values, in the way its driver takes them. */
export function call(
  statement: SqliteHandleStatement,
  method: 'all' | 'get' | 'run',
  values: readonly SqliteValue[],
): unknown {
  const run = statement[method] as (...values: unknown[]) => unknown
  // node:sqlite takes a list for named values; the others misread a single null or byte array that is not in a list.
  // Asked whether it is there, and not what it says: that would go to the engine each time.
  return typeof statement.setReturnArrays === 'function' || !('reader' in statement)
    ? run.apply(statement, [...values])
    : run.call(statement, values)
}

/**
 * The first row of a statement. libsql binds nothing when it is asked for one row after it was asked for all, and works
 * with the values of the call before; so it is asked for all of them always, and its first row is free of the
 * `_metadata` that it adds.
 */
export function firstOf(statement: SqliteHandleStatement, values: readonly SqliteValue[]): unknown {
  const sound = statement.setReturnArrays !== undefined || statement.expand !== undefined
  return sound ? call(statement, 'get', values) : (call(statement, 'all', values) as unknown[])[0]
}

/**
 * Lets a statement give whole numbers as bigint. As numbers libsql and better-sqlite3 would round those beyond 2^53
 * without a word, and `node:sqlite` refuses the whole row.
 */
export function readExactly(statement: SqliteHandleStatement): void {
  if (statement.safeIntegers !== undefined) statement.safeIntegers(true)
  else statement.setReadBigInts?.(true)
}

/**
 * A plain object (rows of `node:sqlite` have no prototype) with bytes as `Uint8Array`, which libsql gives as
 * `ArrayBuffer`, and whole numbers as numbers where they fit, unless all are wanted as bigint.
 */
export function plain<Result>(row: Result, bigints = false): Result {
  if (typeof row !== 'object' || row === null) return row
  const cells = (Object.getPrototypeOf(row) === null ? { ...row } : row) as Record<string, unknown>
  for (const name of Object.keys(cells)) {
    const value = cells[name]
    if (value instanceof ArrayBuffer) cells[name] = new Uint8Array(value)
    else if (typeof value === 'bigint' && !bigints) cells[name] = fitting(value)
  }
  return cells as Result
}

function fitting(value: bigint): number | bigint {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}

/**
 * A value as SQLite knows it. Refuses with ARGUMENT_INVALID what it cannot hold: drivers differ here, and one of them
 * ends the process.
 */
export function bindable(value: unknown, position: number): SqliteValue {
  if (typeof value === 'boolean') return value ? 1 : 0
  if (value === null || typeof value === 'string' || value instanceof Uint8Array) return value
  if (typeof value === 'bigint' && BigInt.asIntN(64, value) === value) return value
  if (typeof value === 'number' && !Number.isNaN(value)) return value
  throw new RepriseError(
    'ARGUMENT_INVALID',
    'A value must be text, a number (a whole one of 64 bits at most), a boolean, null or bytes.',
    {
      details: { position, kind: typeof value },
    },
  )
}

type Opener = new (file: string) => SqliteHandle

/**
 * Opens a file with what is at hand: `node:sqlite` where the runtime has it, else libsql. SQLITE_DRIVER_MISSING:
 * neither is there.
 */
export function openEmbedded(file: string): SqliteHandle {
  const Database = embeddedDriver(loadFromHere)
  return new Database(file)
}

// A bundle may have no URL of its own to require from; a module of Node needs none.
function loadFromHere(name: 'node:sqlite' | 'libsql'): unknown {
  const found = name === 'libsql' ? undefined : builtin<object>(name)
  return found ?? createRequire(import.meta.url)(name)
}

/** The driver that `load` finds first. */
export function embeddedDriver(load: (name: 'node:sqlite' | 'libsql') => unknown): Opener {
  try {
    return (load('node:sqlite') as { readonly DatabaseSync: Opener }).DatabaseSync
  } catch {
    // Node 20 does not have it, and Node 22 before 22.13 hides it.
  }
  try {
    return load('libsql') as Opener
  } catch (cause) {
    const message =
      'This runtime has no node:sqlite, and the package libsql is not installed. Install it, or give open.'
    throw new RepriseError('SQLITE_DRIVER_MISSING', message, { cause })
  }
}
