// What the user gives: a pool of the `pg` package, by its shape, so that no type of that package is needed to read
// ours.

import type { MessageOptions } from '../../atomicity/index.js'
import type { PepperSecret } from '../../identity/index.js'
import type { TransactionDefaults } from '../../transaction/index.js'

/** The answer to a statement, as `pg` gives it. */
export interface PostgresAnswer {
  readonly rows: readonly Readonly<Record<string, unknown>>[]
  /** How many rows were written or read; null where the command has no such number. */
  readonly rowCount: number | null
  /** The first word of the command tag. */
  readonly command: string
}

/** A notice of the server. */
export interface PostgresNotice {
  readonly code?: string | undefined
  /** The server's function that raised it; not translated, unlike its message. */
  readonly routine?: string | undefined
}

/** A connection out of a pool, as far as it is used here. */
export interface PostgresPoolClient {
  /** Runs a statement; with values as a prepared one. */
  query(text: string, values?: unknown[]): Promise<PostgresAnswer>
  /** What the server last said of the transaction: `I` none, `T` open, `E` failed. Needs pg 8.23. */
  getTransactionStatus(): string | null
  /** Gives the connection back; with true it is closed. */
  release(destroy?: boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: string, listener: (...values: unknown[]) => void): unknown
}

/** A pool of connections, as far as it is used here: `pg.Pool` is one. */
export interface PostgresPool {
  connect(): Promise<PostgresPoolClient>
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: string, listener: (...values: unknown[]) => void): unknown
  readonly totalCount: number
  /** How many of them nobody uses. */
  readonly idleCount: number
  /** How many wait for one. */
  readonly waitingCount: number
}

/** The type of the connections that a pool hands out. `pg.Pool` has two forms of `connect`; the first one counts. */
export type ClientOf<Pool> = Pool extends {
  connect: {
    (): Promise<infer Client>
    /** With a callback; not used here. */
    (callback: never): unknown
  }
}
  ? Client
  : Pool extends {
        connect(): Promise<infer Client>
      }
    ? Client
    : never

/** A PostgreSQL domain. */
export interface PostgresOptions<Pool extends PostgresPool, Bound> extends TransactionDefaults {
  /** The pool. It stays the caller's: `close` does not end it. */
  readonly pool: Pool
  /** The domain's name, in events, errors and resolve tokens. */
  readonly name: string
  /**
   * Makes what a body finds as `tx.db` out of the transaction's client: `(client) => drizzle(client)`, or out of a pool
   * that always hands out that client, for a query builder that wants one: `(_client, pool) => new Kysely({ dialect:
   * new PostgresDialect({ pool }) })`. BEGIN, COMMIT and ROLLBACK of the query builder's own `transaction()` are
   * savepoints. Called once for a transaction, when `tx.db` is first asked for. Default: the client itself, which
   * refuses them.
   */
  readonly bind?: (client: ClientOf<Pool>, pool: Pool) => Bound
  /**
   * What the names of Reprise's own tables begin with: up to 40 small letters, digits and `_`. Default `'reprise_'`.
   */
  readonly prefix?: string
  /** The schema of Reprise's own tables. Default `'public'`. */
  readonly schema?: string
  /**
   * A secret under which names, scopes and fingerprints are stored, so that whoever reads the table cannot confirm a
   * key that he guesses: 16 bytes or more of text or bytes, or all secrets that there were, the oldest first. All who
   * work on the store have the same. Default: none.
   */
  readonly pepper?: PepperSecret | readonly PepperSecret[]
  /** How its messages are: who makes them, how large they may be, what checks and what hides their data. */
  readonly messages?: MessageOptions
  /**
   * Whether relays and consumers of the outbox in other processes are woken by NOTIFY when messages are committed, in
   * place of finding them by their next `poll`. It is sent outside of the transactions, once for all commits of 10 ms;
   * a process whose reader listens keeps one connection of the pool for that. Behind a pooler of transactions nothing
   * is heard, which a warning says. Default false.
   */
  readonly notify?: boolean
  /**
   * Whether the number of each transaction without a key is taken, in the same message as BEGIN, so that a commit whose
   * answer is lost can be resolved. It costs the server and the driver some 40 µs for each transaction. Without it such
   * a commit stays unknown; one with a key is resolved by its key all the same. Default true.
   */
  readonly resolvesUnkeyed?: boolean
}
