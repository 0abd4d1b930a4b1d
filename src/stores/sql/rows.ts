// Writes that can be repeated, as SQL, once for all engines that speak it.

import {
  type CommandMemory,
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
    upsert: async (table, row, by, set) => {
      await insert(executor, table, row, by, Object.keys(set))
      return { rung: 'algebra' }
    },
    addToSet: async (table, member) => {
      return { rung: 'algebra', added: await insert(executor, table, member, Object.keys(member)) }
    },
    transition: (table, transition) =>
      transition.commands === undefined
        ? move(executor, table, transition)
        : moveByCommand(executor, table, transition, transition.commands),
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

// Inserts a row, or sets columns of the one that is there; whether something was written.
async function insert(
  executor: SqlExecutor,
  table: TableName,
  row: Match,
  by: readonly string[],
  set: readonly string[] = [],
): Promise<boolean> {
  const { dialect } = executor
  const statement = new Statement(executor)
  const places = Object.values(row).map((value) => statement.place(value))
  const text = dialect.insertOrSet(
    statement.table(table),
    Object.keys(row).map(dialect.quoteName).join(', '),
    `VALUES (${places.join(', ')})`,
    by.map(dialect.quoteName).join(', '),
    set.map(dialect.quoteName),
  )
  // Some ORMs tell how many rows they inserted only where they get these back.
  const { rows, rowCount } = await statement.run(text + dialect.returning(dialect.quoteName(by[0] as string)))
  return rows.length + rowCount > 0
}

// The primary key of the commands decides who applies one, also between two who do so at the same time; and a command
// that was refused is not remembered, since it may be allowed later.
async function moveByCommand(
  executor: SqlExecutor,
  table: TableName,
  transition: SoundTransition,
  { table: commands, row }: CommandMemory,
): Promise<Transitioned> {
  for (let round = 1; round <= mostRounds; round++) {
    if (await insert(executor, commands, row, ['command'])) {
      const moved = await move(executor, table, transition)
      if (moved.result === 'applied') return moved
      const forget = new Statement(executor)
      await forget.run(`DELETE FROM ${forget.table(commands)} WHERE ${forget.conditions({ command: row.command })}`)
      return moved
    }
    const known = await readRow(executor, commands, { command: row.command })
    if (known?.['fingerprint'] === row.fingerprint) return { result: 'already-applied' }
    if (known === undefined) continue
    // The command asked for something else before: what it asks for now has not happened, and will not.
    const found = await whyNot(executor, table, transition)
    return found.result === 'ready' ? { ...found, result: 'invalid' } : found
  }
  throw restless()
}

async function move(executor: SqlExecutor, table: TableName, transition: SoundTransition): Promise<Transitioned> {
  const { where, column, from, to, command, commandColumn, versionColumn, set } = transition
  for (let round = 1; round <= mostRounds; round++) {
    const update = new Statement(executor)
    const last = commandColumn === undefined ? {} : { [commandColumn]: command }
    const assignments = update.assignments({ [column]: to, ...last, ...set })
    if (versionColumn !== undefined) {
      const version = update.name(versionColumn)
      assignments.push(`${version} = ${version} + 1`)
    }
    const conditions = [update.conditions(where)]
    conditions.push(`${update.name(column)} IN (${from.map((state) => update.place(state)).join(', ')})`)
    if (isLastCommandDecisive(transition)) {
      // A repeat of this command must not apply twice where the state may stay the same.
      const name = update.name(transition.commandColumn)
      conditions.push(`(${name} IS NULL OR ${name} <> ${update.place(command)})`)
    }
    const { rowCount } = await update.run(
      `UPDATE ${update.table(table)} SET ${assignments.join(', ')} WHERE ${conditions.join(' AND ')}`,
    )
    if (rowCount === 1) return { result: 'applied' }
    if (rowCount > 1) throw manyChanged(executor, rowCount)
    const found = await whyNot(executor, table, transition)
    // Somebody moved it back between the two statements: it may be applied now.
    if (found.result !== 'ready') return found
  }
  throw restless()
}

// Where all commands are remembered, the last one says nothing more.
function isLastCommandDecisive(
  transition: SoundTransition,
): transition is SoundTransition & { readonly commandColumn: string } {
  return transition.commands === undefined
}

// Why a transition changed nothing. The database compares: only it knows that a uuid is the same in capitals, and that
// 7 is what '7' became in a column of numbers.
async function whyNot(
  executor: SqlExecutor,
  table: TableName,
  transition: SoundTransition,
): Promise<Transitioned | { readonly result: 'ready'; readonly state: string }> {
  const { where, column, from, to, command } = transition
  const select = new Statement(executor)
  const state = select.name(column)
  let same = ''
  if (isLastCommandDecisive(transition)) {
    // A command that asked for another end before is no repeat, and what it asks for now has not happened.
    const isSame = `${select.name(transition.commandColumn)} = ${select.place(command)}`
    same = `WHEN ${isSame} THEN CASE WHEN ${state} = ${select.place(to)} THEN 'same' ELSE 'other' END `
  }
  const states = from.map((state) => select.place(state)).join(', ')
  const row = onlyRow(
    await select.run(
      `SELECT CASE ${same}WHEN ${state} IN (${states}) THEN 'ready' ELSE 'other' END AS found, ` +
        `${state} AS state FROM ${select.table(table)} WHERE ${select.conditions(where)} LIMIT 2`,
    ),
  )
  if (row === undefined) return { result: 'absent' }
  if (row['found'] === 'same') return { result: 'already-applied' }
  return { result: row['found'] === 'ready' ? 'ready' : 'invalid', state: String(row['state']) }
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
