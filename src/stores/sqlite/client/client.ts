// The client that a query builder is bound to: shaped like better-sqlite3, and unable to begin, end or outlive the
// transaction.

import type { HandleLife, SynchronousSavepointSteps } from '../../../atomicity/index.js'
import { RepriseError } from '../../../kernel/index.js'
import type { SavepointTurns } from '../../sql/index.js'
import { isStillOpen, type SqliteHandle, signsOf } from '../connection/driver.js'
import { refuseInside, refuseUnpreparable } from './refusals.js'
import { type Act, clientStatement, type SqliteClientStatement } from './statement.js'

/** What better-sqlite3 calls a transaction: here a savepoint, since one is open already. */
export interface SqliteClientTransaction<Values extends readonly unknown[], Result> {
  (...values: Values): Result
  /** The same: how the surrounding transaction was begun is decided. */
  deferred(...values: Values): Result
  immediate(...values: Values): Result
  exclusive(...values: Values): Result
}

/**
 * The client of one transaction, synchronous as the drivers are. It fits Kysely’s `SqliteDialect` as it is, and works
 * under `drizzle-orm/better-sqlite3`, whose type asks for all of better-sqlite3: `drizzle(client as never)`.
 */
export interface SqliteClient {
  /** Whether it can be used. */
  readonly open: boolean
  /** True until the end. */
  readonly inTransaction: boolean
  /** Prepares one statement. */
  prepare(text: string): SqliteClientStatement
  /** Runs statements without values. */
  exec(text: string): this
  /** Reads a pragma; changing one is refused. */
  pragma(source: string, options?: { readonly simple?: boolean }): unknown
  /** A function that runs `work` inside a savepoint. The work cannot await: use `tx.savepoint` for that. */
  transaction<Values extends readonly unknown[], Result>(
    work: (...values: Values) => Result,
  ): SqliteClientTransaction<Values, Result>
  /** Refused: the connection is not the body's to close. */
  close(): never
}

/** The client over a connection, alive as long as the transaction is. */
export function clientOf(handle: SqliteHandle, life: HandleLife, turns: SavepointTurns, act: Act): SqliteClient {
  return new Client(handle, life, turns, act)
}

/**
 * What better-sqlite3 and libsql have beside it, each with the reason why it is refused: a call of a member that is
 * missing would only say that it is no function.
 */
const refusedMembers: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['aggregate', 'authorizer', 'function', 'loadExtension', 'table', 'unsafeMode'].map((name) => [
      name,
      'It would outlive the transaction; set it up in open, on the connection itself.',
    ]),
  ),
  backup: 'A copy is made on a connection of its own.',
  defaultSafeIntegers: 'Whole numbers are exact already; ask a statement for bigint with safeIntegers.',
  explain: 'Prepare a statement that begins with EXPLAIN instead.',
  interrupt: 'Statements run in this thread: there is none to interrupt.',
  maxWriteReplicationIndex: 'Replicas are not read through here.',
  serialize: 'A copy is made on a connection of its own.',
  sync: 'Replicas are not read through here.',
  syncUntil: 'Replicas are not read through here.',
}

class Client implements SqliteClient {
  static {
    for (const [name, why] of Object.entries(refusedMembers)) {
      const value = (): never => {
        throw new RepriseError('STATEMENT_UNSUPPORTED', why)
      }
      Object.defineProperty(Client.prototype, name, { value, configurable: true, writable: true })
    }
  }

  readonly #handle: SqliteHandle
  readonly #life: HandleLife
  readonly #turns: SavepointTurns
  readonly #act: Act

  constructor(handle: SqliteHandle, life: HandleLife, turns: SavepointTurns, act: Act) {
    this.#handle = handle
    this.#life = life
    this.#turns = turns
    this.#act = act
  }

  get open(): boolean {
    return !this.#life.over
  }

  get inTransaction(): boolean {
    return !this.#life.over
  }

  prepare(text: string): SqliteClientStatement {
    refuseUnpreparable(text)
    const statement = this.#act(() => this.#handle.prepare(text))
    return clientStatement(this.#handle, statement, text, this.#act)
  }

  exec(text: string): this {
    refuseInside(text)
    this.#act(() => this.#handle.exec(text))
    return this
  }

  pragma(source: string, options: { readonly simple?: boolean } = {}): unknown {
    const statement = this.prepare(`PRAGMA ${source}`)
    return options.simple === true ? statement.pluck().get() : statement.all()
  }

  transaction<Values extends readonly unknown[], Result>(
    work: (...values: Values) => Result,
  ): SqliteClientTransaction<Values, Result> {
    const run = (...values: Values): Result => {
      this.#life.check()
      refuseOutOfTurn(this.#turns)
      return this.#life.savepointSync(savepointSteps(this.#handle), () => work(...values))
    }
    return Object.assign(run, { deferred: run, immediate: run, exclusive: run })
  }

  close(): never {
    throw new RepriseError('STATEMENT_UNSUPPORTED', 'The connection belongs to the store; close the store instead.')
  }
}

/** Acts on a connection as long as the transaction lives and it is the caller's turn, and notes what fails. */
export function actOn(handle: SqliteHandle, life: HandleLife, turns: SavepointTurns, readOnly: boolean): Act {
  return (work) => {
    life.check()
    refuseOutOfTurn(turns)
    try {
      return work()
    } catch (error) {
      const shown = readOnly ? readOnlyError(error) : error
      // Some errors end the transaction on their own (disk full, I/O, OR ROLLBACK); what came after would commit by
      // itself.
      if (isStillOpen(handle)) life.failed(shown)
      else life.poison(shown)
      throw shown
    }
  }
}

/** Savepoints of a connection, as statements. */
export function savepointSteps(handle: SqliteHandle): SynchronousSavepointSteps {
  return {
    open: (name) => {
      handle.exec(`SAVEPOINT ${name}`)
    },
    release: (name) => {
      handle.exec(`RELEASE ${name}`)
    },
    undo: (name) => {
      handle.exec(`ROLLBACK TO ${name}`)
      handle.exec(`RELEASE ${name}`)
    },
  }
}

// The reader's connection refuses every write; that is no trouble of the file.
function readOnlyError(error: unknown): unknown {
  if (!signsOf(error).includes('SQLITE_READONLY')) return error
  return new RepriseError('TRANSACTION_READ_ONLY', 'The transaction was declared read-only.', { cause: error })
}

// Another savepoint is open that this code is not part of: what it wrote would be undone with it. Waiting is for those
// who can await.
function refuseOutOfTurn(turns: SavepointTurns): void {
  if (turns.turn() === undefined) return
  throw new RepriseError(
    'SAVEPOINT_ORDER',
    'A savepoint is open that this statement is not part of. Await it first, or use tx.query, which waits.',
  )
}
