// Arguments of repeatable writes, checked in one place for every store, before anything is sent.

import { type Fingerprint, fingerprint } from '../../identity/index.js'
import { demandKnown, durationMs, RepriseError } from '../../kernel/index.js'
import { anyColumns, oneRow, someRows, soundColumns } from './column-values.js'
import { checkName, tableParts } from './names.js'
import type {
  AddedToSet,
  ColumnValue,
  InsertedOnce,
  LockOptions,
  Match,
  Row,
  Rows,
  TableName,
  Transition,
  Transitioned,
  Upserted,
} from './rows.js'

/** A {@link Transition} with its defaults filled in, and sound. */
export interface SoundTransition {
  readonly where: Match
  readonly column: string
  /** At least one state. */
  readonly from: readonly string[]
  readonly to: string
  readonly command: string
  /** Where the last command is kept; undefined: nowhere. */
  readonly commandColumn: string | undefined
  /** Where all commands are kept; undefined: nowhere, and then there is a `commandColumn`. */
  readonly commands: CommandMemory | undefined
  readonly versionColumn: string | undefined
  /** Further columns to set, none of those above among them. */
  readonly set: Match
}

/** A table that remembers commands. */
export interface CommandMemory {
  readonly table: TableName
  /** The row that is to be kept there: the command and what it asks for. */
  readonly row: { readonly command: string; readonly fingerprint: Fingerprint }
}

/** What a store has to do for {@link Rows}, with arguments that are sound. */
export interface SoundRows {
  /** As `insertOnce` of {@link Rows}; `key` holds the columns of `by`, none of them null. */
  insertOnce(table: TableName, row: Match, by: readonly string[], key: Match): Promise<InsertedOnce>
  /** As `upsert` of {@link Rows}; `set` holds the columns that are not in `by`. */
  upsert(table: TableName, row: Match, by: readonly string[], set: Match): Promise<Upserted>
  /** As `addToSet`; no value is null. */
  addToSet(table: TableName, member: Match): Promise<AddedToSet>
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
    upsert: async (table, row, by) => {
      tableParts(table)
      const sound = soundColumns(row, 'the row', anyColumns)
      const key = naturalKey(sound, by)
      const set = Object.fromEntries(Object.entries(sound).filter(([column]) => !Object.hasOwn(key, column)))
      return rows.upsert(table, sound, Object.keys(key), set)
    },
    addToSet: async (table, member) => {
      tableParts(table)
      return rows.addToSet(table, soundColumns(member, 'the member', oneRow))
    },
    transition: async (table, transition) => rows.transition(table, soundTransition(tableParts(table), transition)),
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
  commands: 1,
  versionColumn: 1,
  set: 1,
} satisfies Record<keyof Transition, 1>)

function soundTransition(parts: readonly string[], given: Transition): SoundTransition {
  if (typeof given !== 'object' || given === null) {
    throw new RepriseError('ARGUMENT_INVALID', 'A transition is an object that says from where to where.')
  }
  demandKnown(given, transitionNames, 'transition')
  const { column = 'state', commands, versionColumn, to } = given
  const { commandColumn = commands === undefined ? 'last_command' : undefined } = given
  const where = soundColumns(given.where, 'the match', oneRow)
  const set = soundColumns(given.set ?? {}, 'what is to be set', anyColumns)
  const own = [column, commandColumn, versionColumn].filter((name) => name !== undefined).map(checkName)
  if (new Set(own).size < own.length) {
    throw new RepriseError('ARGUMENT_INVALID', 'State, command and version need a column each.')
  }
  if (own.some((name) => Object.hasOwn(set, name))) {
    const message = 'The columns of state, command and version are set by the transition itself.'
    throw new RepriseError('ARGUMENT_INVALID', message)
  }
  if (typeof to !== 'string')
    throw new RepriseError('ARGUMENT_INVALID', 'A transition needs a state to end in, as text.')
  const command = commandOf(given.command)
  const from = statesOf(given.from)
  const memory = commands === undefined ? undefined : memoryOf(commands, command, { table: parts, where, column, to })
  return { where, column, from, to, command, commandColumn, commands: memory, versionColumn, set }
}

// The command with a fingerprint of what it asks for: which row, and its state in the end. The text is stored for good,
// so it must stay as it is. Values count by their text, since the column decides whether '7' and 7 are the same; what
// else is set does not count, since a repeat may carry another time.
function memoryOf(
  table: TableName,
  command: string,
  { where, ...aim }: Pick<SoundTransition, 'where' | 'column' | 'to'> & { readonly table: readonly string[] },
): CommandMemory {
  tableParts(table)
  const row = Object.fromEntries(Object.entries(where).map(([name, value]) => [name, textOf(value)]))
  return { table, row: { command, fingerprint: fingerprint({ value: { ...aim, row } }) } }
}

function textOf(value: ColumnValue): string {
  if (!(value instanceof Uint8Array)) return String(value)
  return Array.from(value, (byte) => byte.toString(16).padStart(2, '0')).join('')
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
