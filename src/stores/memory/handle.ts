// What a body gets of a store in memory: repeatable writes over its tables, and savepoints.

import {
  type CommandMemory,
  checkedRows,
  type Emission,
  type EmissionSink,
  type Emits,
  type EmitsSoon,
  type Emitted,
  type HandleLife,
  type Match,
  type MessageDraft,
  type Outbox,
  type Row,
  type Rows,
  type SoundRows,
  type SoundTransition,
  type TableName,
  type TransactionControls,
  TransactionHandle,
  type Transitioned,
  tableParts,
} from '../../atomicity/index.js'
import { RepriseError } from '../../kernel/index.js'
import { type SavepointTurns, savepointTurns } from '../sql/savepoints/turns.js'
import { copyOf, type TableView } from './table.js'
import type { Views } from './tables.js'

/** The handle of a transaction in memory. */
export interface MemoryTransaction extends TransactionControls, Rows, Emits {
  /** Runs work whose failure undoes only itself. Statements that are not part of it wait until it is over. */
  savepoint<Result>(work: () => PromiseLike<Result> | Result): Promise<Result>
}

/** The handle; beside what bodies get, it lets the store itself work on the tables. */
export class MemoryHandle extends TransactionHandle implements MemoryTransaction {
  readonly #views: Views
  readonly #life: HandleLife
  readonly #turns: SavepointTurns

  constructor(views: Views, life: HandleLife, controls: TransactionControls, outbox: Outbox) {
    const turns = savepointTurns(life)
    const view = (table: TableName): TableView => views.view(tableParts(table).join('.'))
    super(
      controls,
      life,
      () => checkedRows(rowsOver(actIn(life, turns), view)),
      new Emitting(outbox, life, turns, views),
    )
    this.#views = views
    this.#life = life
    this.#turns = turns
  }

  /** Lets the store itself work on what the transaction sees, when it is the caller's turn. */
  within<Result>(work: (views: Views) => Result): Promise<Result> {
    return this.#life.call(() => actIn(this.#life, this.#turns)(() => work(this.#views)))
  }

  /** Removes the rows that have these values; how many it were. */
  removeRows(table: string, where: Match): Promise<number> {
    return this.within((views) => {
      const rows = views.view(table)
      const ids = rows.find(where)
      for (const id of ids) rows.remove(id)
      return ids.length
    })
  }

  savepoint<Result>(work: () => PromiseLike<Result> | Result): Promise<Result> {
    return this.#life.call(() => this.#turns.enter(() => this.#life.savepoint(this.#views, work)), 'poisoned')
  }
}

// Keeps what the body emits, when it is its turn.
class Emitting implements EmitsSoon, EmissionSink {
  readonly #outbox: Outbox
  readonly #life: HandleLife
  readonly #turns: SavepointTurns
  readonly readOnly: boolean

  constructor(outbox: Outbox, life: HandleLife, turns: SavepointTurns, { readOnly }: Views) {
    this.#outbox = outbox
    this.#life = life
    this.#turns = turns
    this.readOnly = readOnly
  }

  emit(given: MessageDraft | readonly MessageDraft[]): Emitted | Promise<Emitted> {
    return this.#outbox.emit(given, this)
  }

  async keep(emissions: readonly Emission[]): Promise<void> {
    for (let wait = this.#turns.turn(); wait !== undefined; wait = this.#turns.turn()) await wait
    this.#life.emit(emissions)
  }
}

// Acts as long as the transaction lives, when it is the caller's turn, and notes what fails.
function actIn(life: HandleLife, turns: SavepointTurns): Act {
  return async (work) => {
    // Asked again after each wait: others may have waited for the same savepoint, and one of them may have opened the
    // next.
    for (let wait = turns.turn(); wait !== undefined; wait = turns.turn()) await wait
    life.check()
    try {
      return work()
    } catch (error) {
      life.failed(error)
      throw error
    }
  }
}

type Act = <Result>(work: () => Result) => Promise<Result>

// Here a schema is a part of the name like any other, and a row that the writer sees is locked already: it has the
// store to itself.
function rowsOver(act: Act, view: (table: TableName) => TableView): SoundRows {
  const found = (table: TableName, where: Match): readonly Row[] => {
    const rows = view(table)
    return rows.find(where).map((id) => rows.row(id) as Row)
  }
  // Outside of what the store does: reading too much ends no transaction, here as elsewhere.
  const readRow = async (table: TableName, where: Match): Promise<Row | undefined> =>
    onlyRow(await act(() => found(table, where).map(copyOf)))
  const updateRows = (table: TableName, where: Match, set: Match): number => {
    const rows = view(table)
    const ids = rows.find(where)
    for (const id of ids) rows.update(id, set)
    return ids.length
  }
  const demandUnique = (what: string, table: TableName, by: readonly string[]): void => {
    if (view(table).isUnique(by)) return
    throw new RepriseError('ARGUMENT_INVALID', `${what} needs a unique index over exactly the columns given.`)
  }
  // A column has no type here, so that a command is its text; what a row was made with may be a number.
  const commandKnown = ({ table, row }: CommandMemory): 'same' | 'other' | undefined => {
    demandUnique('A table of commands', table, ['command'])
    const [known] = found(table, { command: row.command })
    return known && (known['fingerprint'] === row.fingerprint ? 'same' : 'other')
  }
  return {
    readRow,
    lockRow: readRow,
    updateRows: (table, where, set) => act(() => updateRows(table, where, set)),
    insertOnce: (table, row, by, key) =>
      act(() => {
        demandUnique('insertOnce', table, by)
        const there = onlyRow(found(table, key))
        if (there !== undefined) return { inserted: false, row: copyOf(there) }
        view(table).insert(row)
        return { inserted: true, row: copyOf(row) }
      }),
    upsert: (table, row, by, set) =>
      act(() => {
        demandUnique('upsert', table, by)
        const key = Object.fromEntries(by.map((column) => [column, row[column] ?? null]))
        if (updateRows(table, key, set) === 0) view(table).insert(row)
        return { rung: 'algebra' }
      }),
    addToSet: (table, member) =>
      act(() => {
        demandUnique('addToSet', table, Object.keys(member))
        const added = found(table, member).length === 0
        if (added) view(table).insert(member)
        return { rung: 'algebra', added }
      }),
    transition: (table, transition) =>
      act(() => {
        const { where, commands } = transition
        const row = onlyRow(found(table, where))
        const moved = transitioned(transition, row, commands && commandKnown(commands))
        if (moved.result !== 'applied') return moved
        if (commands !== undefined) view(commands.table).insert(commands.row)
        updateRows(table, where, changesOf(transition, row as Row))
        return moved
      }),
  }
}

// What becomes of a transition, given its row and what is known of its command.
function transitioned(
  { column, from, to, command, commandColumn, commands }: SoundTransition,
  row: Row | undefined,
  known: 'same' | 'other' | undefined,
): Transitioned {
  if (known === 'same') return { result: 'already-applied' }
  if (row === undefined) return { result: 'absent' }
  const state = String(row[column])
  const isLast = commandColumn !== undefined && commands === undefined && String(row[commandColumn] ?? '') === command
  if (isLast && state === to) return { result: 'already-applied' }
  // A command that asked for another end before is no repeat, and what it asks for now has not happened.
  if (isLast || known === 'other' || !from.includes(state)) return { result: 'invalid', state }
  return { result: 'applied' }
}

function changesOf({ column, to, command, commandColumn, versionColumn, set }: SoundTransition, row: Row): Match {
  return {
    ...set,
    [column]: to,
    ...(commandColumn !== undefined && { [commandColumn]: command }),
    ...(versionColumn !== undefined && { [versionColumn]: Number(row[versionColumn]) + 1 }),
  }
}

function onlyRow(rows: readonly Row[]): Row | undefined {
  if (rows.length <= 1) return rows[0]
  throw new RepriseError('ARGUMENT_INVALID', 'More than one row matches; a unique key is needed.')
}
