// Writes that can be repeated, as SQL, once for all engines that speak it.

import type {
  InsertedOnce,
  LockOptions,
  Match,
  Row,
  Rows,
  TableName,
  Transition,
  Transitioned,
} from '../../atomicity/index.js'
import { durationMs, RepriseError } from '../../kernel/index.js'
import { placeholder } from './dialect.js'
import type { SqlAnswer, SqlExecutor } from './executor.js'
import { quoteName, quoteTable } from './identifier.js'

/** A row that is there, gone and there again between two statements is looked for this often. */
const mostRounds = 4

/** The repeatable writes of a transaction. */
export function sqlRows(executor: SqlExecutor): Rows {
  return {
    insertOnce: (table, row, by) => insertOnce(executor, table, row, by),
    transition: (table, transition) => transit(executor, table, transition),
    lockRow: (table, where, options) => lockRow(executor, table, where, options),
    readRow: (table, where) => readRow(executor, table, where),
    updateRows: (table, where, set) => updateRows(executor, table, where, set),
  }
}

// Collects the values of a statement, and names their places.
class Statement {
  readonly values: unknown[] = []
  readonly #executor: SqlExecutor

  constructor(executor: SqlExecutor) {
    this.#executor = executor
  }

  place(value: unknown): string {
    this.values.push(value)
    return placeholder(this.#executor.dialect, this.values.length)
  }

  assignments(set: Match): string[] {
    return Object.entries(set).map(([column, value]) => `${quoteName(column)} = ${this.place(value)}`)
  }

  conditions(where: Match): string {
    return Object.entries(where)
      .map(([column, value]) =>
        value === null ? `${quoteName(column)} IS NULL` : `${quoteName(column)} = ${this.place(value)}`,
      )
      .join(' AND ')
  }

  run(text: string): Promise<SqlAnswer> {
    return this.#executor.run(text, this.values)
  }
}

async function insertOnce(
  executor: SqlExecutor,
  table: TableName,
  row: Match,
  by: readonly string[],
): Promise<InsertedOnce> {
  const key = naturalKey(row, by)
  const columns = Object.keys(row).map(quoteName).join(', ')
  const target = by.map(quoteName).join(', ')
  for (let round = 1; round <= mostRounds; round++) {
    const insert = new Statement(executor)
    const places = Object.values(row).map((value) => insert.place(value))
    // Only a conflict over the natural key is a repeat; any other violation stays the error it is.
    const inserted = await insert.run(
      `INSERT INTO ${quoteTable(table)} (${columns}) VALUES (${places.join(', ')}) ON CONFLICT (${target}) DO NOTHING RETURNING *`,
    )
    const [fresh] = inserted.rows
    if (fresh !== undefined) return { inserted: true, row: fresh }
    const found = await readRow(executor, table, key)
    if (found !== undefined) return { inserted: false, row: found }
  }
  throw restless()
}

async function transit(executor: SqlExecutor, table: TableName, transition: Transition): Promise<Transitioned> {
  const { where, column = 'state', to, command, commandColumn = 'last_command', set = {} } = transition
  checkUniqueMatch(where)
  const from = typeof transition.from === 'string' ? [transition.from] : transition.from
  if (from.length === 0) throw new RepriseError('ARGUMENT_INVALID', 'A transition needs a state to start from.')
  if (column in set || commandColumn in set) {
    throw new RepriseError('ARGUMENT_INVALID', 'The columns of state and command are set by the transition itself.')
  }
  for (let round = 1; round <= mostRounds; round++) {
    const update = new Statement(executor)
    const assignments = update.assignments({ [column]: to, [commandColumn]: command, ...set })
    const unique = update.conditions(where)
    const states = from.map((state) => update.place(state)).join(', ')
    // A repeat of this command must not apply twice where the state may stay the same.
    const other = `(${quoteName(commandColumn)} IS NULL OR ${quoteName(commandColumn)} <> ${update.place(command)})`
    const { rowCount } = await update.run(
      `UPDATE ${quoteTable(table)} SET ${assignments.join(', ')} WHERE ${unique} AND ${quoteName(column)} IN (${states}) AND ${other}`,
    )
    if (rowCount === 1) return { result: 'applied' }
    if (rowCount > 1) throw manyChanged(executor, rowCount)
    const row = await readRow(executor, table, where)
    if (row === undefined) return { result: 'absent' }
    if (row[commandColumn] === command) return { result: 'already-applied' }
    const state = row[column]
    // Somebody moved it back between the two statements: it may be applied now.
    if (typeof state !== 'string' || !from.includes(state)) return { result: 'invalid', state: String(state) }
  }
  throw restless()
}

async function lockRow(
  executor: SqlExecutor,
  table: TableName,
  where: Match,
  options: LockOptions = {},
): Promise<Row | undefined> {
  checkUniqueMatch(where)
  const wait = options.wait === undefined || options.wait === 'nowait' ? options.wait : durationMs(options.wait)
  const select = new Statement(executor)
  const text = `SELECT * FROM ${quoteTable(table)} WHERE ${select.conditions(where)}`
  return onlyRow(await executor.lock(text, select.values, wait))
}

async function readRow(executor: SqlExecutor, table: TableName, where: Match): Promise<Row | undefined> {
  checkMatch(where)
  const select = new Statement(executor)
  return onlyRow(await select.run(`SELECT * FROM ${quoteTable(table)} WHERE ${select.conditions(where)} LIMIT 2`))
}

async function updateRows(executor: SqlExecutor, table: TableName, where: Match, set: Match): Promise<number> {
  checkMatch(where)
  if (Object.keys(set).length === 0) throw new RepriseError('ARGUMENT_INVALID', 'There is no column to set.')
  const update = new Statement(executor)
  const assignments = update.assignments(set).join(', ')
  const { rowCount } = await update.run(
    `UPDATE ${quoteTable(table)} SET ${assignments} WHERE ${update.conditions(where)}`,
  )
  return rowCount
}

// A unique index lets any number of NULLs in, so a natural key with one decides nothing.
function naturalKey(row: Match, by: readonly string[]): Match {
  if (by.length === 0) throw new RepriseError('ARGUMENT_INVALID', 'A natural key has at least one column.')
  const key: Record<string, Match[string]> = {}
  for (const [position, column] of by.entries()) {
    const value = Object.hasOwn(row, column) ? row[column] : undefined
    if (value === undefined || value === null) {
      throw new RepriseError('ARGUMENT_INVALID', `Column ${position + 1} of the natural key has no value.`, {
        details: { position },
      })
    }
    key[column] = value
  }
  return key
}

function checkMatch(where: Match): void {
  if (Object.keys(where).length > 0 && !Object.values(where).includes(undefined as never)) return
  throw new RepriseError('ARGUMENT_INVALID', 'A match needs at least one column, and a value for each.')
}

function checkUniqueMatch(where: Match): void {
  checkMatch(where)
  if (Object.values(where).includes(null)) {
    throw new RepriseError('ARGUMENT_INVALID', 'A row is named by a unique key, and NULL is never unique.')
  }
}

function onlyRow({ rows }: SqlAnswer): Row | undefined {
  if (rows.length <= 1) return rows[0]
  throw new RepriseError('ARGUMENT_INVALID', 'More than one row matches; a unique key is needed.')
}

function manyChanged(executor: SqlExecutor, rows: number): RepriseError {
  const error = new RepriseError('ARGUMENT_INVALID', 'More than one row matches; a unique key is needed.', {
    details: { rows },
  })
  executor.poison(error)
  return error
}

function restless(): RepriseError {
  return new RepriseError('ROW_UNSETTLED', `The row came and went ${mostRounds} times while it was looked at.`, {
    details: { rounds: mostRounds },
  })
}
