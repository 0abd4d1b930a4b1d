// Writes that can be repeated, as SQL, once for all engines that speak it.

import {
  checkedRows,
  type InsertedOnce,
  type Match,
  type Row,
  type Rows,
  type SoundTransition,
  type TableName,
  type Transitioned,
} from '../../atomicity/index.js'
import { RepriseError } from '../../kernel/index.js'
import type { SqlAnswer, SqlExecutor } from './executor.js'
import { quoteTable } from './identifier.js'
import { Values } from './values.js'

/** A row that is there, gone and there again between two statements is looked for this often. */
const mostRounds = 4

/** The repeatable writes of a transaction. */
export function sqlRows(executor: SqlExecutor): Rows {
  return checkedRows({
    insertOnce: (table, row, by, key) => insertOnce(executor, table, row, by, key),
    transition: (table, transition) => transit(executor, table, transition),
    lockRow: (table, where, wait) => lockRow(executor, table, where, wait),
    readRow: (table, where) => readRow(executor, table, where),
    updateRows: (table, where, set) => updateRows(executor, table, where, set),
  })
}

// A statement with its values.
class Statement extends Values {
  readonly #executor: SqlExecutor

  constructor(executor: SqlExecutor) {
    super(executor.dialect)
    this.#executor = executor
  }

  name(column: string): string {
    return this.#executor.dialect.quoteName(column)
  }

  table(table: TableName): string {
    return quoteTable(table, this.#executor.dialect)
  }

  assignments(set: Match): string[] {
    return Object.entries(set).map(([column, value]) => `${this.name(column)} = ${this.place(value)}`)
  }

  conditions(where: Match): string {
    return Object.entries(where)
      .map(([column, value]) =>
        value === null ? `${this.name(column)} IS NULL` : `${this.name(column)} = ${this.place(value)}`,
      )
      .join(' AND ')
  }

  run(text: string): Promise<SqlAnswer> {
    return this.#executor.run(text, this.list)
  }
}

async function insertOnce(
  executor: SqlExecutor,
  table: TableName,
  row: Match,
  by: readonly string[],
  key: Match,
): Promise<InsertedOnce> {
  const { dialect } = executor
  const columns = Object.keys(row).map(dialect.quoteName).join(', ')
  const target = by.map(dialect.quoteName).join(', ')
  for (let round = 1; round <= mostRounds; round++) {
    const insert = new Statement(executor)
    const places = Object.values(row).map((value) => insert.place(value))
    // Only a conflict over the natural key is a repeat; any other violation stays the error it is.
    const text = dialect.insertNew(insert.table(table), columns, `VALUES (${places.join(', ')})`, target)
    const inserted = await insert.run(text + dialect.returning('*'))
    const [fresh] = inserted.rows
    if (fresh !== undefined) return { inserted: true, row: fresh }
    const found = await readRow(executor, table, key)
    if (found !== undefined) return { inserted: false, row: found }
  }
  throw restless()
}

async function transit(executor: SqlExecutor, table: TableName, transition: SoundTransition): Promise<Transitioned> {
  const { where, column, from, to, command, commandColumn, set } = transition
  for (let round = 1; round <= mostRounds; round++) {
    const update = new Statement(executor)
    const assignments = update.assignments({ [column]: to, [commandColumn]: command, ...set })
    const unique = update.conditions(where)
    const states = from.map((state) => update.place(state)).join(', ')
    // A repeat of this command must not apply twice where the state may stay the same.
    const last = update.name(commandColumn)
    const other = `(${last} IS NULL OR ${last} <> ${update.place(command)})`
    const { rowCount } = await update.run(
      `UPDATE ${update.table(table)} SET ${assignments.join(', ')} WHERE ${unique} AND ${update.name(column)} IN (${states}) AND ${other}`,
    )
    if (rowCount === 1) return { result: 'applied' }
    if (rowCount > 1) throw manyChanged(executor, rowCount)
    const found = await whyNot(executor, table, transition)
    // Somebody moved it back between the two statements: it may be applied now.
    if (found.result !== 'ready') return found
  }
  throw restless()
}

// Why a transition changed nothing. The database compares: only it knows that a uuid is the same in capitals, and that
// 7 is what '7' became in a column of numbers.
async function whyNot(
  executor: SqlExecutor,
  table: TableName,
  { where, column, from, to, command, commandColumn }: SoundTransition,
): Promise<Transitioned | { readonly result: 'ready' }> {
  const select = new Statement(executor)
  const state = select.name(column)
  const same = `${select.name(commandColumn)} = ${select.place(command)}`
  // A command that asked for another end before is no repeat, and what it asks for now has not happened.
  const there = `${state} = ${select.place(to)}`
  const states = from.map((state) => select.place(state)).join(', ')
  const row = onlyRow(
    await select.run(
      `SELECT CASE WHEN ${same} THEN CASE WHEN ${there} THEN 'same' ELSE 'other' END WHEN ${state} IN (${states}) THEN 'ready' ELSE 'other' END AS found, ` +
        `${state} AS state FROM ${select.table(table)} WHERE ${select.conditions(where)} LIMIT 2`,
    ),
  )
  if (row === undefined) return { result: 'absent' }
  if (row['found'] === 'same') return { result: 'already-applied' }
  return row['found'] === 'ready' ? { result: 'ready' } : { result: 'invalid', state: String(row['state']) }
}

async function lockRow(
  executor: SqlExecutor,
  table: TableName,
  where: Match,
  wait: 'nowait' | number | undefined,
): Promise<Row | undefined> {
  const select = new Statement(executor)
  const text = `SELECT * FROM ${select.table(table)} WHERE ${select.conditions(where)}`
  return onlyRow(await executor.lock(text, select.list, wait))
}

async function readRow(executor: SqlExecutor, table: TableName, where: Match): Promise<Row | undefined> {
  const select = new Statement(executor)
  return onlyRow(await select.run(`SELECT * FROM ${select.table(table)} WHERE ${select.conditions(where)} LIMIT 2`))
}

async function updateRows(executor: SqlExecutor, table: TableName, where: Match, set: Match): Promise<number> {
  const update = new Statement(executor)
  const assignments = update.assignments(set).join(', ')
  const { rowCount } = await update.run(
    `UPDATE ${update.table(table)} SET ${assignments} WHERE ${update.conditions(where)}`,
  )
  return rowCount
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
