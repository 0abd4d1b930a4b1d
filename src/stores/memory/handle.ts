// What a body gets of a store in memory: repeatable writes over its tables, and savepoints.

import {
  HandleControls,
  type HandleLife,
  type InsertedOnce,
  type Match,
  type Row,
  type Rows,
  type TableName,
  type TransactionControls,
  type Transition,
  type Transitioned,
} from '../../atomicity/index.js'
import { RepriseError } from '../../kernel/index.js'
import { type SavepointTurns, savepointTurns } from '../sql/savepoint-turns.js'
import { copyOf, type TableView } from './table.js'
import type { Views } from './tables.js'

/** The handle of a transaction in memory. */
export interface MemoryTransaction extends TransactionControls, Rows {
  /** Runs work whose failure undoes only itself. Statements that are not part of it wait until it is over. */
  savepoint<Result>(work: () => PromiseLike<Result> | Result): Promise<Result>
}

/** Makes the handle. */
export function memoryHandle(views: Views, life: HandleLife, controls: TransactionControls): MemoryTransaction {
  return new Handle(views, life, controls)
}

class Handle extends HandleControls implements MemoryTransaction {
  readonly #views: Views
  readonly #life: HandleLife
  readonly #turns: SavepointTurns
  #made: PlainRows | undefined

  constructor(views: Views, life: HandleLife, controls: TransactionControls) {
    super(controls)
    this.#views = views
    this.#life = life
    this.#turns = savepointTurns(life)
  }

  // Made when a body first asks for rows.
  get #rows(): PlainRows {
    this.#made ??= rowsOver((table) => this.#views.view(nameOf(table)))
    return this.#made
  }

  insertOnce(table: TableName, row: Match, by: readonly string[]): Promise<InsertedOnce> {
    return this.#act(() => this.#rows.insertOnce(table, row, by))
  }

  transition(table: TableName, transition: Transition): Promise<Transitioned> {
    return this.#act(() => this.#rows.transition(table, transition))
  }

  // The writer has the store to itself, so a row that it sees is locked already.
  lockRow(table: TableName, where: Match): Promise<Row | undefined> {
    return this.#act(() => this.#rows.readRow(table, where))
  }

  readRow(table: TableName, where: Match): Promise<Row | undefined> {
    return this.#act(() => this.#rows.readRow(table, where))
  }

  updateRows(table: TableName, where: Match, set: Match): Promise<number> {
    return this.#act(() => this.#rows.updateRows(table, where, set))
  }

  savepoint<Result>(work: () => PromiseLike<Result> | Result): Promise<Result> {
    return this.#turns.enter(() => this.#life.savepoint(this.#views, work))
  }

  async #act<Result>(work: () => Result): Promise<Result> {
    // Asked again after each wait: others may have waited for the same savepoint, and one of them may have opened the next.
    for (let wait = this.#turns.turn(); wait !== undefined; wait = this.#turns.turn()) await wait
    this.#life.check()
    try {
      return work()
    } catch (error) {
      this.#life.failed(error)
      throw error
    }
  }
}

interface PlainRows {
  insertOnce(table: TableName, row: Match, by: readonly string[]): InsertedOnce
  transition(table: TableName, transition: Transition): Transitioned
  readRow(table: TableName, where: Match): Row | undefined
  updateRows(table: TableName, where: Match, set: Match): number
}

// Here a schema is a part of the name like any other.
function nameOf(table: TableName): string {
  if (typeof table === 'string') return table
  return table.schema === undefined ? table.table : `${table.schema}.${table.table}`
}

function rowsOver(view: (table: TableName) => TableView): PlainRows {
  const readRow = (table: TableName, where: Match): Row | undefined => {
    const found = view(table)
    const ids = found.find(where)
    if (ids.length > 1) throw new RepriseError('ARGUMENT_INVALID', 'More than one row matches; a unique key is needed.')
    const [id] = ids
    const row = id === undefined ? undefined : found.row(id)
    return row === undefined ? undefined : copyOf(row)
  }
  const updateRows = (table: TableName, where: Match, set: Match): number => {
    const found = view(table)
    const ids = found.find(where)
    for (const id of ids) found.update(id, set)
    return ids.length
  }
  return {
    readRow,
    updateRows,
    insertOnce(table, row, by) {
      if (!view(table).isUnique(by)) {
        throw new RepriseError('ARGUMENT_INVALID', 'insertOnce needs a unique index over exactly the columns given.')
      }
      const key = Object.fromEntries(by.map((column) => [column, row[column] ?? null]))
      if (Object.values(key).includes(null)) {
        throw new RepriseError('ARGUMENT_INVALID', 'insertOnce needs a value for every column of the natural key.')
      }
      const there = readRow(table, key)
      if (there !== undefined) return { inserted: false, row: there }
      view(table).insert(row)
      return { inserted: true, row: copyOf(row) }
    },
    transition(table, { where, column = 'state', from, to, command, commandColumn = 'last_command', set = {} }) {
      if (column in set || commandColumn in set) {
        throw new RepriseError('ARGUMENT_INVALID', 'The columns of state and command are set by the transition itself.')
      }
      const row = readRow(table, where)
      if (row === undefined) return { result: 'absent' }
      if (row[commandColumn] === command) return { result: 'already-applied' }
      const state = String(row[column])
      if (![from].flat().includes(state)) return { result: 'invalid', state }
      updateRows(table, where, { ...set, [column]: to, [commandColumn]: command })
      return { result: 'applied' }
    },
  }
}
