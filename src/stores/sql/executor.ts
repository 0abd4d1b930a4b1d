// What shared SQL runs on: one statement at a time, inside a transaction that somebody else began.

import type { SqlDialect } from './dialect.js'

/** The rows of an answer, and how many rows a write touched. */
export interface SqlAnswer {
  /** Rows, by column names. */
  readonly rows: readonly Readonly<Record<string, unknown>>[]
  /** How many rows were written, or read. */
  readonly rowCount: number
}

/** Runs statements inside an open transaction. */
export interface SqlExecutor {
  /** Whose SQL it is. */
  readonly dialect: SqlDialect
  /** Runs one statement; placeholders are the engine's own. */
  run(text: string, values: readonly unknown[]): Promise<SqlAnswer>
  /**
   * Runs one SELECT so that its rows stay locked until the end of the transaction. `'nowait'` fails at once where
   * somebody else holds one, a number is the longest wait in ms, undefined leaves it to the transaction.
   */
  lock(select: string, values: readonly unknown[], wait: 'nowait' | number | undefined): Promise<SqlAnswer>
  /** Keeps the transaction from committing: something was written that must not be. */
  poison(error: unknown): void
}
