// Where a transaction stands, and what a failure there means.

import { defined, isRepriseError } from '../kernel/index.js'

/**
 * Where a transaction stands: waiting for a connection, connecting and beginning, in the caller's body, COMMIT on its
 * way, done. The phase decides what a failure means: until COMMIT is sent nothing can have happened.
 */
export type Phase = 'waiting' | 'connecting' | 'body' | 'committing' | 'done'

/** What a failure of a transaction means, in a phase. */
export interface Ruling {
  /** What became of the transaction: it is dead, it happened after all, or nobody knows yet. */
  readonly outcome: 'aborted' | 'committed' | 'unknown'
  /** Would another transaction help? */
  readonly help: 'transient' | 'permanent'
  /** Whether the connection can be used again. */
  readonly connection: 'keep' | 'discard'
  /** Whether somebody should be woken: full disk, wrong password, a transaction ended from elsewhere. */
  readonly alarm: boolean
  /** The word by which it was found in the table, such as `40001` or `connection-lost`. */
  readonly sign: string
  /** Present: somebody else held a lock for longer than the wait for it. */
  readonly blocked?: true
  /** Present: the time was over that the call itself has given its session. */
  readonly expired?: true
  /** Present: it was undone for the sake of others, with whom it was to share a COMMIT. */
  readonly shared?: true
}

/** How a row of a classification table is known to be true. */
export type Evidence = { readonly triggered: string } | { readonly notProducible: string }

/** One row of a classification table: a sign of an engine or driver, and what it means in each phase. */
export interface ClassificationRow {
  /** SQLSTATE, engine code or driver sign. A trailing `*` stands for any rest: `23*`. */
  readonly sign: string
  /** What it is called. */
  readonly name: string
  /** Present: it says that somebody else held a lock for longer than the wait for it. */
  readonly blocked?: true
  /** Present: it says that the time was over that the call itself has given its session. */
  readonly expired?: true
  /**
   * Present: it says that the transaction was undone for the sake of others, with whom it was to share a COMMIT. It is
   * tried again at once, and no budget is asked.
   */
  readonly shared?: true
  /**
   * Present: the transaction is dead for certain, and the error behind this one (its `cause`) says the rest; the words
   * here count where there is none.
   */
  readonly first?: true
  /** Present: the connection cannot be used again, whatever the word says of it. */
  readonly connection?: 'discard'
  /** What it means while connecting or beginning; absent: cannot come there, treated as unlisted. */
  readonly connecting?: TableWord
  /** What it means in the body. */
  readonly body?: TableWord
  /** What it means in answer to COMMIT. */
  readonly committing?: TableWord
  /** Why, with the source. */
  readonly why: string
  /** A test that triggers it (its title), or why it cannot be produced. */
  readonly evidence: Evidence
}

/**
 * The five rulings by one word. `repeat`: dead, try again, the connection is sound. `reconnect`: dead, try again on
 * another connection. `resolve`: unknown, find out first. `surface`: dead, trying again would not help. `halt`: dead,
 * and somebody should know.
 */
export type RulingWord = 'repeat' | 'reconnect' | 'resolve' | 'surface' | 'halt'

/**
 * What a row of a table can say: a ruling on a failure, or `done`: it happened, and what is remarkable about it is no
 * failure.
 */
export type TableWord = RulingWord | 'done'

/** What a word of a table means. */
export function rulingOf(word: TableWord, sign: string): Ruling {
  return { ...rulings[word], sign }
}

const rulings: Readonly<Record<TableWord, Omit<Ruling, 'sign'>>> = {
  repeat: { outcome: 'aborted', help: 'transient', connection: 'keep', alarm: false },
  reconnect: { outcome: 'aborted', help: 'transient', connection: 'discard', alarm: false },
  resolve: { outcome: 'unknown', help: 'transient', connection: 'discard', alarm: false },
  surface: { outcome: 'aborted', help: 'permanent', connection: 'keep', alarm: false },
  halt: { outcome: 'aborted', help: 'permanent', connection: 'discard', alarm: true },
  done: { outcome: 'committed', help: 'permanent', connection: 'keep', alarm: false },
}

/**
 * Looks a sign up. Unlisted in the body: dead and not repeated. Unlisted while committing: unknown. The longest
 * matching sign that says something for the phase wins.
 *
 * @param signs The signs an error shows, most telling first: its code, then what the driver says.
 */
export function ruleBy(table: readonly ClassificationRow[], signs: readonly string[], phase: Phase): Ruling {
  const column = phase === 'committing' || phase === 'body' ? phase : 'connecting'
  for (const sign of signs) {
    const row = bestRow(table, sign, column)
    const word = row?.[column]
    if (word !== undefined) {
      const { blocked, connection, expired, shared } = row ?? {}
      return { ...rulingOf(word, sign), ...defined({ connection, blocked, expired, shared }) }
    }
  }
  return rulingOf(column === 'committing' ? 'resolve' : 'surface', signs[0] ?? 'unlisted')
}

/**
 * Rules on an error of Reprise's own that says that the transaction is dead, where its row has `first`. Undefined:
 * there is no such row, and the signs decide.
 *
 * @param classify Rules on the error behind it, which says whether another transaction would help.
 */
export function ruleByFirst(
  table: readonly ClassificationRow[],
  error: unknown,
  phase: Phase,
  classify: (first: unknown) => Ruling,
): Ruling | undefined {
  if (!isRepriseError(error)) return undefined
  const row = table.find(({ sign, first }) => first && sign === error.code)
  if (row === undefined) return undefined
  if (error.cause === undefined) return ruleBy([row], [error.code], phase)
  return { ...classify(error.cause), outcome: 'aborted' }
}

function bestRow(
  table: readonly ClassificationRow[],
  sign: string,
  column: 'connecting' | 'body' | 'committing',
): ClassificationRow | undefined {
  let best: ClassificationRow | undefined
  for (const row of table) {
    const matches = row.sign.endsWith('*') ? sign.startsWith(row.sign.slice(0, -1)) : row.sign === sign
    if (matches && row[column] !== undefined && (best === undefined || row.sign.length > best.sign.length)) best = row
  }
  return best
}
