// The client that a query builder is bound to: shaped like better-sqlite3, and unable to begin, end or outlive the
// transaction.

import type { HandleLife, SynchronousSavepointSteps } from '../../../atomicity/index.js'
import { RepriseError } from '../../../kernel/index.js'
import type { InnerStatement, InnerTransactions, SavepointTurns } from '../../sql/index.js'
import { isStillOpen, noteBusy, type SqliteHandle, type SqliteHandleStatement, signsOf } from '../connection/driver.js'
import { innerStatementOf, refuseInside, refuseUnpreparable } from './refusals.js'
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

/** What all that acts on the connection of one transaction shares. */
export interface Acting {
  readonly handle: SqliteHandle
  readonly life: HandleLife
  readonly turns: SavepointTurns
  /** Transactions that are begun inside the open one: savepoints. */
  readonly inner: InnerTransactions<SynchronousSavepointSteps>
  /** Whether the transaction was declared read-only. */
  readonly readOnly: boolean
}

/**
 * The client over a connection, alive as long as the transaction is.
 *
 * @param nests Whether BEGIN and COMMIT are those of a query builder for its own transactions, which are savepoints
 *   here; else they are refused.
 */
export function clientOf(acting: Acting, nests: boolean): SqliteClient {
  return new Client(acting, nests)
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

  readonly #acting: Acting
  readonly #nests: boolean
  readonly #act: Act

  constructor(acting: Acting, nests: boolean) {
    this.#acting = acting
    this.#nests = nests
    this.#act = actOn(acting, this)
  }

  get open(): boolean {
    return !this.#acting.life.over
  }

  get inTransaction(): boolean {
    return !this.#acting.life.over
  }

  prepare(text: string): SqliteClientStatement {
    const { handle } = this.#acting
    const inner = this.#nests ? innerStatementOf(text) : undefined
    if (inner !== undefined) return clientStatement(handle, this.#nesting(inner), text, (work) => work())
    refuseUnpreparable(text)
    const statement = this.#act(() => handle.prepare(text))
    return clientStatement(handle, statement, text, this.#act)
  }

  exec(text: string): this {
    const inner = this.#nests ? innerStatementOf(text) : undefined
    if (inner !== undefined) this.#nest(inner)
    else {
      refuseInside(text)
      this.#act(() => this.#acting.handle.exec(text))
    }
    return this
  }

  #nest(statement: InnerStatement): void {
    const { inner, turns } = this.#acting
    refuseOutOfTurn(turns)
    inner.perform(statement, this)
  }

  // What a driver would prepare of such a statement.
  #nesting(statement: InnerStatement): SqliteHandleStatement {
    return {
      reader: false,
      run: () => {
        this.#nest(statement)
        return { changes: 0, lastInsertRowid: 0 }
      },
      get: () => this.#nest(statement),
      all: () => {
        this.#nest(statement)
        return []
      },
    }
  }

  pragma(source: string, options: { readonly simple?: boolean } = {}): unknown {
    const statement = this.prepare(`PRAGMA ${source}`)
    return options.simple === true ? statement.pluck().get() : statement.all()
  }

  transaction<Values extends readonly unknown[], Result>(
    work: (...values: Values) => Result,
  ): SqliteClientTransaction<Values, Result> {
    const run = (...values: Values): Result => {
      const { inner, turns } = this.#acting
      refuseOutOfTurn(turns)
      return inner.call(() => work(...values), this)
    }
    return Object.assign(run, { deferred: run, immediate: run, exclusive: run })
  }

  close(): never {
    throw new RepriseError('STATEMENT_UNSUPPORTED', 'The connection belongs to the store; close the store instead.')
  }
}

/**
 * Acts on a connection as long as the transaction lives and it is the caller's turn, and notes what fails.
 *
 * @param by The client that the work comes from. Default: none.
 */
export function actOn({ handle, life, turns, inner, readOnly }: Acting, by?: object): Act {
  return (work) => {
    life.check()
    refuseOutOfTurn(turns)
    inner.demand(by)
    try {
      return work()
    } catch (error) {
      noteBusy(handle, error)
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
