// An optimistic update: read, decide, write if the version is still the one that was read. A lost answer is not a
// mismatch.

import {
  anyColumns,
  type ColumnValue,
  checkName,
  type Match,
  oneRow,
  type Row,
  type Rows,
  soundColumns,
  type TableName,
  type TransactionControls,
  tableParts,
} from '../atomicity/index.js'
import {
  type Clock,
  type Deadline,
  demandKnown,
  isPromiseLike,
  type Random,
  RepriseError,
  sleep,
  systemClock,
  systemRandom,
  uuidv4,
} from '../kernel/index.js'
import { type Backoff, currentLayer, spendRepeat } from '../retry/index.js'
import type { OptimisticOptions } from './options.js'
import type { TransactionBody } from './run/attempt.js'
import { backoffOf } from './run/settings.js'
import { UnknownCommitError } from './unknown-commit.js'

/** An update that is decided anew whenever somebody else was quicker. */
export interface OptimisticUpdate {
  readonly table: TableName
  /** The row, by a unique key. */
  readonly where: Match
  /** The column that counts versions: a whole number. Default `'version'`. */
  readonly versionColumn?: string
  /**
   * A text column for a token of the last write, so that a write whose answer was lost can be recognised. Default:
   * none.
   */
  readonly tokenColumn?: string
  /**
   * Says what to change, from the row as it is; undefined: nothing. Called again after each mismatch, so it only
   * computes.
   */
  readonly decide: (row: Row) => Match | undefined
  /** How many times to read and decide at most; 1 to 100. Default 10. */
  readonly rounds?: number
}

/** What became of an optimistic update. */
export type Updated =
  | { readonly result: 'written'; readonly row: Row; readonly rounds: number }
  | { readonly result: 'unchanged'; readonly row: Row; readonly rounds: number }
  | { readonly result: 'absent' }

/** The waits between rounds: who lost the race would lose the next one to the same crowd. */
export interface Pace {
  readonly clock: Clock
  readonly random: Random
  /** The wait after each round that was lost. */
  readonly backoff: Backoff
  /** No round begins after it. Default: none. */
  readonly deadline?: Deadline
}

type Transact<Handle> = <Result>(body: TransactionBody<Handle, Result>, options?: OptimisticOptions) => Promise<Result>

// Thrown, not returned: a transaction that only found out that somebody was quicker must leave nothing behind, least of
// all an outcome under its key.
class Mismatch extends Error {}

/**
 * Carries out the update. Refuses with UPDATE_CONFLICT when somebody else was quicker in every round, or until the
 * deadline.
 */
export async function updateOptimistically<Handle extends TransactionControls & Rows>(
  transact: Transact<Handle>,
  update: OptimisticUpdate,
  options?: OptimisticOptions,
  pace: Pace = { clock: systemClock, random: systemRandom, backoff: backoffOf(undefined) },
): Promise<Updated> {
  checkUpdate(update)
  const { rounds = 10, tokenColumn } = update
  const around = currentLayer()
  let delayMs = 0
  for (let round = 1; ; round++) {
    const attempt: Round = { number: round, token: uuidv4(), over: undefined }
    try {
      return await transact((tx) => oneRound(tx, update, attempt), options)
    } catch (error) {
      if (error instanceof UnknownCommitError && tokenColumn !== undefined) {
        const found = await afterLostAnswer(transact, update, tokenColumn, attempt, error, options)
        if (found !== 'not-written') return found
      } else if (!(error instanceof Mismatch)) throw error
    }
    delayMs = pace.backoff.delayMs(round, delayMs, pace.random)
    if (round >= rounds || isTooLate(pace, delayMs) || !spendRepeat(around, rounds)) throw conflict(round)
    const { clock } = pace
    await sleep(Math.ceil(delayMs), options?.signal === undefined ? { clock } : { clock, signal: options.signal })
  }
}

function isTooLate({ clock, deadline }: Pace, delayMs: number): boolean {
  return deadline !== undefined && clock.monotonicMs() + delayMs >= deadline.expiresAtMs
}

function conflict(rounds: number): RepriseError {
  const times = rounds === 1 ? 'once' : `${rounds} times`
  return new RepriseError('UPDATE_CONFLICT', `Somebody else changed the row first, ${times}.`, { details: { rounds } })
}

const updateNames = Object.keys({
  table: 1,
  where: 1,
  versionColumn: 1,
  tokenColumn: 1,
  decide: 1,
  rounds: 1,
} satisfies Record<keyof OptimisticUpdate, 1>)

// Before anything is opened, and not only when a round gets there.
function checkUpdate(update: OptimisticUpdate): void {
  if (typeof update !== 'object' || update === null) {
    throw new RepriseError('ARGUMENT_INVALID', 'An optimistic update is an object that says what to update.')
  }
  demandKnown(update, updateNames, 'update')
  const { table, where, versionColumn = 'version', tokenColumn, decide, rounds = 10 } = update
  tableParts(table)
  soundColumns(where, 'the match', oneRow)
  checkName(versionColumn)
  if (tokenColumn !== undefined && checkName(tokenColumn) === versionColumn) {
    throw new RepriseError('ARGUMENT_INVALID', 'Version and token need a column each.')
  }
  if (typeof decide !== 'function') throw new RepriseError('ARGUMENT_INVALID', 'decide must be a function.')
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > 100) {
    throw new RepriseError('ARGUMENT_INVALID', 'rounds must be a whole number from 1 to 100.')
  }
}

// A promise has no columns: without this the version would be counted up and nothing else written.
function decidedBy(decide: OptimisticUpdate['decide'], row: Row): Match | undefined {
  const changes: unknown = decide(row)
  if (changes === undefined) return undefined
  if (isPromiseLike<unknown>(changes)) {
    // Nobody else will hear of its failure, and nobody needs to.
    Promise.resolve(changes).catch(() => undefined)
    throw new RepriseError('ARGUMENT_INVALID', 'decide answers at once, from the row alone; it cannot await.')
  }
  return soundColumns(changes as Match, 'what is to be set', anyColumns)
}

interface Round {
  readonly number: number
  readonly token: string
  /** The version that its write stands on; undefined: it wrote nothing. */
  over: number | undefined
}

async function oneRound(
  tx: Rows,
  { table, where, versionColumn = 'version', tokenColumn, decide }: OptimisticUpdate,
  round: Round,
): Promise<Updated> {
  const { token, number: rounds } = round
  round.over = undefined
  const row = await tx.readRow(table, where)
  if (row === undefined) return { result: 'absent' }
  const version = versionOf(row, versionColumn)
  const changes = decidedBy(decide, row)
  if (changes === undefined) return { result: 'unchanged', row, rounds }
  const set: Record<string, ColumnValue> = { ...changes, [versionColumn]: version + 1 }
  if (tokenColumn !== undefined) set[tokenColumn] = token
  round.over = version
  const written = await tx.updateRows(table, { ...where, [versionColumn]: version }, set)
  if (written === 0) throw new Mismatch()
  if (written > 1) throw new RepriseError('ARGUMENT_INVALID', 'The condition matches more than one row.')
  return { result: 'written', row: { ...row, ...set }, rounds }
}

// Locking the row waits for the write whose answer was lost, so that it has either happened or never will. What cannot
// be told stays unknown: somebody who wrote after us has left his own token.
async function afterLostAnswer<Handle extends TransactionControls & Rows>(
  transact: Transact<Handle>,
  { table, where, versionColumn = 'version' }: OptimisticUpdate,
  tokenColumn: string,
  { token, over, number: rounds }: Round,
  unknown: UnknownCommitError,
  options: OptimisticOptions | undefined,
): Promise<Updated | 'not-written'> {
  if (over === undefined) throw unknown
  // Without the key: looking is not the work that the key names.
  const { key: _key, content: _content, window: _window, ...plain } = options ?? {}
  let row: Row | undefined
  try {
    row = await transact((tx) => tx.lockRow(table, where), plain)
  } catch (later) {
    throw new UnknownCommitError(unknown.resolveToken, unknown.transactions, [...unknown.suppressed, later])
  }
  if (row?.[tokenColumn] === token) return { result: 'written', row, rounds }
  if (row !== undefined && versionOf(row, versionColumn) === over) return 'not-written'
  throw unknown
}

function versionOf(row: Row, column: string): number {
  const version = Number(row[column])
  if (Number.isSafeInteger(version)) return version
  throw new RepriseError('ARGUMENT_INVALID', 'The version column does not hold a whole number.')
}
