// Arguments of repeatable writes, checked in one place for every store, before anything is sent.

import { demandKnown, durationMs, RepriseError } from '../../kernel/index.js'
import { anyColumns, oneRow, someRows, soundColumns } from './column-values.js'
import { checkName, tableParts } from './names.js'
import type { InsertedOnce, LockOptions, Match, Row, Rows, TableName, Transition, Transitioned } from './rows.js'

/** A {@link Transition} with its defaults filled in, and sound. */
export interface SoundTransition {
  readonly where: Match
  readonly column: string
  /** At least one state. */
  readonly from: readonly string[]
  readonly to: string
  readonly command: string
  readonly commandColumn: string
  /** Further columns to set, neither of the two among them. */
  readonly set: Match
}

/** What a store has to do for {@link Rows}, with arguments that are sound. */
export interface SoundRows {
  /** As `insertOnce` of {@link Rows}; `key` holds the columns of `by`, none of them null. */
  insertOnce(table: TableName, row: Match, by: readonly string[], key: Match): Promise<InsertedOnce>
  transition(table: TableName, transition: SoundTransition): Promise<Transitioned>
  /** As `lockRow`; a wait is a number of ms. */
  lockRow(table: TableName, where: Match, wait: 'nowait' | number | undefined): Promise<Row | undefined>
  readRow(table: TableName, where: Match): Promise<Row | undefined>
  /** As `updateRows`; there is something to match and something to set. */
  updateRows(table: TableName, where: Match, set: Match): Promise<number>
}

/**
 * The rows of a store, with every argument checked first. What cannot be is refused with ARGUMENT_INVALID, a wait that
 * is none with DURATION_INVALID; nothing was sent then, and the transaction goes on.
 */
export function checkedRows(rows: SoundRows): Rows {
  return {
    insertOnce: async (table, row, by) => {
      tableParts(table)
      const sound = soundColumns(row, 'the row', anyColumns)
      const key = naturalKey(sound, by)
      return rows.insertOnce(table, sound, Object.keys(key), key)
    },
    transition: async (table, transition) => {
      tableParts(table)
      return rows.transition(table, soundTransition(transition))
    },
    lockRow: async (table, where, options) => {
      tableParts(table)
      return rows.lockRow(table, soundColumns(where, 'the match', oneRow), waitOf(options))
    },
    readRow: async (table, where) => {
      tableParts(table)
      return rows.readRow(table, soundColumns(where, 'the match', someRows))
    },
    updateRows: async (table, where, set) => {
      tableParts(table)
      const match = soundColumns(where, 'the match', someRows)
      return rows.updateRows(table, match, soundColumns(set, 'what is to be set', someRows))
    },
  }
}

// A unique index lets any number of NULLs in, so a natural key with one decides nothing.
function naturalKey(row: Match, by: readonly string[]): Match {
  if (!Array.isArray(by) || by.length === 0) {
    throw new RepriseError('ARGUMENT_INVALID', 'A natural key is a list of at least one column.')
  }
  if (new Set(by).size < by.length) {
    throw new RepriseError('ARGUMENT_INVALID', 'A natural key names each of its columns once.')
  }
  const entries = by.map((column, position) => {
    const value = Object.hasOwn(row, checkName(column)) ? row[column] : undefined
    if (value !== undefined && value !== null) return [column, value] as const
    const message = `Column ${position + 1} of the natural key has no value in the row.`
    throw new RepriseError('ARGUMENT_INVALID', message, { details: { position } })
  })
  return Object.fromEntries(entries)
}

const transitionNames = Object.keys({
  where: 1,
  column: 1,
  from: 1,
  to: 1,
  command: 1,
  commandColumn: 1,
  set: 1,
} satisfies Record<keyof Transition, 1>)

function soundTransition(given: Transition): SoundTransition {
  if (typeof given !== 'object' || given === null) {
    throw new RepriseError('ARGUMENT_INVALID', 'A transition is an object that says from where to where.')
  }
  demandKnown(given, transitionNames, 'transition')
  const { column = 'state', commandColumn = 'last_command', to } = given
  const where = soundColumns(given.where, 'the match', oneRow)
  const set = soundColumns(given.set ?? {}, 'what is to be set', anyColumns)
  if (checkName(column) === checkName(commandColumn)) {
    throw new RepriseError('ARGUMENT_INVALID', 'State and command need a column each.')
  }
  if (Object.hasOwn(set, column) || Object.hasOwn(set, commandColumn)) {
    throw new RepriseError('ARGUMENT_INVALID', 'The columns of state and command are set by the transition itself.')
  }
  if (typeof to !== 'string')
    throw new RepriseError('ARGUMENT_INVALID', 'A transition needs a state to end in, as text.')
  return { where, column, from: statesOf(given.from), to, command: commandOf(given.command), commandColumn, set }
}

function statesOf(from: Transition['from']): readonly string[] {
  const states: readonly unknown[] = Array.isArray(from) ? [...from] : [from]
  if (states.length > 0 && states.every((state) => typeof state === 'string')) return states
  throw new RepriseError('ARGUMENT_INVALID', 'A transition needs a state to start from, or several, as text.')
}

// As text, whatever it was given as: bound as a number it would be stored as 7.0 in a text column of SQLite.
function commandOf(command: Transition['command']): string {
  const sound =
    typeof command === 'string' ? command !== '' : typeof command === 'bigint' || Number.isSafeInteger(command)
  if (sound) return String(command)
  throw new RepriseError('ARGUMENT_INVALID', 'A transition needs the id of its command: text, or a whole number.')
}

function waitOf(options: LockOptions | undefined): 'nowait' | number | undefined {
  if (options === undefined) return undefined
  if (typeof options !== 'object' || options === null) {
    throw new RepriseError('ARGUMENT_INVALID', 'The options of a lock are an object.')
  }
  demandKnown(options, ['wait'], 'options')
  const { wait } = options
  return wait === undefined || wait === 'nowait' ? wait : durationMs(wait)
}
