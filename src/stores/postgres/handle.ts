// What a body works with: the handle, and the client inside it that a query builder can be bound to.

import {
  type Emits,
  type EmitsSoon,
  type HandleLife,
  type Rows,
  type TransactionControls,
  TransactionHandle,
} from '../../atomicity/index.js'
import { RepriseError } from '../../kernel/index.js'
import {
  type InnerStatement,
  innerStatementIn,
  listOfValues,
  postgresDialect,
  type Query,
  refuseTransactionStatements,
  type SqlAnswer,
  type SqlExecutor,
  sqlRows,
} from '../sql/index.js'
import type { PostgresAnswer } from './options.js'

/** What a body of a PostgreSQL transaction gets. */
export interface PostgresTransaction<Bound> extends TransactionControls, Rows, Emits {
  /** What `bind` made: the user's query builder, inside this transaction. */
  readonly db: Bound
  /** Runs a statement; placeholders are `$1`, `$2`. Of several statements in one text the last one's answer counts. */
  query<Row = Readonly<Record<string, unknown>>>(
    text: string,
    values?: readonly unknown[],
  ): Promise<{ readonly rows: Row[]; readonly rowCount: number }>
  /**
   * Runs the work so that an error in it undoes only what the work did, and the transaction goes on. May be nested.
   * What is not part of the work, and the next savepoint, waits until it is over.
   *
   * @example
   * ```ts
   * import pg from 'pg'
   * import { postgres } from 'reprise/stores/postgres'
   *
   * const db = postgres({ pool: new pg.Pool(), name: 'shop' })
   * await db.transact(async (tx) => {
   *   const noted = await tx.savepoint(() => tx.query('insert into note (id) values (1)')).catch(() => undefined)
   *   await tx.query('update orders set noted = $1', [noted !== undefined])
   * })
   * ```
   */
  savepoint<Result>(work: () => Promise<Result>): Promise<Result>
}

/** What the handle needs of its session. */
export interface StatementPort extends EmitsSoon {
  /** Knows of the calls that the body does not wait for. */
  readonly life: Pick<HandleLife, 'call' | 'poison'>
  /** Sends what `pg` takes: a text or its config. */
  send(config: string | object, values: unknown[] | undefined, by?: object): Promise<PostgresAnswer>
  /** Sends a statement of our own whose plan is kept, where the backend keeps what is prepared. */
  sendKept(text: string, values: unknown[]): Promise<PostgresAnswer>
  /** Does in savepoints what a query builder says about a transaction of its own. False: it is to be sent. */
  nest(statement: InnerStatement, by: object): Promise<boolean>
  /** Runs the work inside a savepoint. */
  savepoint<Result>(work: () => Promise<Result>): Promise<Result>
}

/** What a client of a transaction needs of its session. */
export type ClientPort = Pick<StatementPort, 'send' | 'nest'> & {
  readonly life: Pick<HandleLife, 'poison'> & { call<Result>(work: () => Promise<Result>): Promise<Result> }
}

/**
 * Makes `tx.db` out of the transaction's client, or of a pool that hands it out. Undefined: it is the client itself.
 */
export type Bind<Bound> = ((client: TransactionClient, pool: TransactionPool) => Bound) | undefined

/** The handle of a transaction. */
export class PostgresHandle<Bound> extends TransactionHandle implements PostgresTransaction<Bound> {
  readonly #port: StatementPort
  readonly #bind: Bind<Bound>
  #bound: { readonly db: Bound } | undefined

  constructor(port: StatementPort & SqlExecutor, controls: TransactionControls, bind: Bind<Bound>) {
    super(controls, port.life, () => sqlRows(port), port)
    this.#port = port
    this.#bind = bind
  }

  // Most bodies need one of the two, db or query, so the query builder is only made when it is asked for.
  get db(): Bound {
    this.#bound ??= { db: this.#makeDb() }
    return this.#bound.db
  }

  #makeDb(): Bound {
    const port = this.#port
    // The type of tx.db is the pool's own client where there is no bind.
    if (this.#bind === undefined) return new TransactionClient(port, false) as Bound
    return this.#bind(new TransactionClient(port, true), new TransactionPool(port))
  }

  query<Row>(text: string, values?: readonly unknown[]): Promise<{ rows: Row[]; rowCount: number }> {
    return this.#port.life.call(async () => {
      if (typeof text !== 'string') throw unsupported('tx.query takes a text and its values')
      refuseTransactionStatements(text, postgresDialect)
      const answer = lastOf(await this.#port.send(text, values === undefined ? undefined : [...listOfValues(values)]))
      return { rows: answer.rows as unknown as Row[], rowCount: answer.rowCount ?? 0 }
    })
  }

  /**
   * Runs a statement of Reprise's own inside a transaction, like one of its body.
   *
   * @param tx The handle of a transaction of PostgreSQL.
   */
  static sendOwn(tx: object, { text, values, keepsPlan = false }: Query): Promise<SqlAnswer> {
    const port = (tx as PostgresHandle<unknown>).#port
    return port.life.call(async () => {
      const { rows, rowCount } = await (keepsPlan ? port.sendKept(text, [...values]) : port.send(text, [...values]))
      return { rows, rowCount: rowCount ?? 0 }
    })
  }

  savepoint<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#port.savepoint(work)
  }
}

/** The answer of a text with several statements is a list; the last one counts. */
export function lastOf(answer: PostgresAnswer | readonly PostgresAnswer[]): PostgresAnswer {
  return Array.isArray(answer) ? answer.at(-1) : (answer as PostgresAnswer)
}

const events = 'events of the connection are not on offer'

/**
 * Further members that a client of `pg` has, each with the reason why it is refused here: a call of one that is missing
 * would only say that it is no function.
 */
const refusedOfClient: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    [
      'addListener',
      'emit',
      'eventNames',
      'getMaxListeners',
      'listenerCount',
      'listeners',
      'off',
      'prependListener',
      'prependOnceListener',
      'rawListeners',
      'removeAllListeners',
      'removeListener',
      'setMaxListeners',
    ].map((name) => [name, events]),
  ),
  cancel: 'a statement is ended by the limits of the transaction',
  escapeIdentifier: 'use escapeIdentifier of pg itself',
  escapeLiteral: 'use escapeLiteral of pg itself, or values',
  getStartupConf: 'the connection belongs to the pool',
  getTransactionStatus: 'the transaction is open until the body returns',
  getTypeParser: 'types are set on the pool, or in the config of a statement',
  ref: 'the connection belongs to the pool',
  setTypeParser: 'types are set on the pool, or in the config of a statement',
  unref: 'the connection belongs to the pool',
}

function refuseMembers(prototype: object, members: Readonly<Record<string, string>>): void {
  for (const [name, why] of Object.entries(members)) {
    const value = (): never => {
      throw unsupported(why)
    }
    Object.defineProperty(prototype, name, { value, configurable: true, writable: true })
  }
}

/** A client of `pg`, as far as it makes sense inside a transaction that somebody else begins and ends. */
export class TransactionClient {
  static {
    refuseMembers(TransactionClient.prototype, refusedOfClient)
  }

  readonly #port: ClientPort
  readonly #nests: boolean

  /**
   * @param nests Whether BEGIN and COMMIT are those of a query builder for its own transactions, which are savepoints
   *   here; else they are refused.
   */
  constructor(port: ClientPort, nests: boolean) {
    this.#port = port
    this.#nests = nests
  }

  /** Runs a statement: a text with values, or a config with text, values, name, rowMode and types. */
  query(config: unknown, values?: unknown, callback?: unknown): Promise<PostgresAnswer> {
    const given = callbackIn(config, values, callback)
    if (isGiven(given)) return this.refuseCallback(given)
    return this.#port.life.call(() => this.#query(config, values))
  }

  /** Refuses a callback, which hears why: nobody waits for the promise then. */
  refuseCallback(callback: unknown): Promise<never> {
    const refusal = this.unheard('use the promise, not a callback')
    if (typeof callback === 'function') queueMicrotask(() => callback(refusal))
    const refused = Promise.reject(refusal)
    refused.catch(() => undefined)
    return refused
  }

  async #query(config: unknown, values: unknown): Promise<PostgresAnswer> {
    if (typeof config === 'string') return this.#send(config, config, values)
    if (typeof config !== 'object' || config === null) throw unsupported('a statement is a text or a config')
    if (isSubmittable(config)) throw this.unheard(keepsBusy)
    // A copy: what was looked at is what is sent.
    const copy = { ...config } as Record<string, unknown>
    if (typeof copy['text'] !== 'string') throw unsupported('a config needs its text')
    return this.#send(copy['text'], copy, values)
  }

  async #send(text: string, config: string | object, values: unknown): Promise<PostgresAnswer> {
    if (this.#nests) {
      const inner = innerStatementIn(text, postgresDialect)
      if (inner !== undefined && (await this.#port.nest(inner, this))) return nested(inner.does)
    } else refuseTransactionStatements(text, postgresDialect)
    return this.#port.send(config, valuesOf(values), this)
  }

  /**
   * With a callback or a submittable nobody awaits the promise: the transaction must not go on as if the statement had
   * been run.
   */
  unheard(why: string): RepriseError {
    const refusal = unsupported(why)
    this.#port.life.poison(refusal)
    return refusal
  }

  /** Refused: the connection is given back when the transaction ends. */
  release(): void {
    throw unsupported('the connection is given back when the transaction ends')
  }

  /** Refused: it is connected. */
  async connect(): Promise<never> {
    throw unsupported('the client is connected, and stays so until the transaction ends')
  }

  /** Refused: the connection is the pool’s. */
  async end(): Promise<never> {
    throw unsupported('the connection belongs to the pool')
  }

  copyFrom(): never {
    throw unsupported('COPY takes the connection for itself')
  }

  copyTo(): never {
    throw unsupported('COPY takes the connection for itself')
  }

  /** Refused: errors of the connection end the transaction, and nobody else listens for them. */
  on(): never {
    throw unsupported(events)
  }

  /** Refused, as `on`. */
  once(): never {
    throw unsupported(events)
  }
}

/**
 * A pool that always hands out the transaction's client: for query builders that want a pool. Giving it back, and
 * ending the pool, do nothing.
 */
export class TransactionPool {
  static {
    const { cancel, getStartupConf, ref, unref, ...others } = refusedOfClient
    refuseMembers(TransactionPool.prototype, {
      ...others,
      on: events,
      once: events,
      newClient: 'there is one client, and it is connected',
    })
  }

  /** One: the transaction's. */
  readonly totalCount: number = 1
  readonly idleCount: number = 0
  readonly waitingCount: number = 0
  readonly #port: ClientPort
  readonly #own: LentClient

  constructor(port: ClientPort) {
    this.#port = port
    this.#own = new LentClient(port, true)
  }

  /** The transaction's client, for one borrower: what it begins is told apart from what others send. */
  connect(callback?: unknown): Promise<LentClient> {
    return isGiven(callback) ? this.#own.refuseCallback(callback) : Promise.resolve(new LentClient(this.#port, true))
  }

  /** As the client's. */
  query(config: unknown, values?: unknown, callback?: unknown): Promise<PostgresAnswer> {
    return this.#own.query(config, values, callback)
  }

  /** Does nothing. */
  async end(): Promise<void> {}
}

// Whoever takes a client out of a pool, or uses a pool, knows no transaction: a cursor is refused at once, since it is
// read from and nobody looks at a promise.
class LentClient extends TransactionClient {
  #given = false

  override query(config: unknown, values?: unknown, callback?: unknown): Promise<PostgresAnswer> {
    if (this.#given) return Promise.reject(unsupported('this client was given back to the pool'))
    if (isSubmittable(config)) throw this.unheard(keepsBusy)
    return super.query(config, values, callback)
  }

  // As pg does: nobody gets a promise who gave a callback.
  override refuseCallback(callback: unknown): Promise<never> {
    const refused = super.refuseCallback(callback)
    return typeof callback === 'function' ? (undefined as unknown as Promise<never>) : refused
  }

  override release(): void {
    this.#given = true
  }

  // Most programs listen for errors of a client that they take, so that one that is lost does not end the process: here
  // it ends the transaction, and is told by that.
  static {
    for (const name of ['addListener', 'off', 'on', 'once', 'removeAllListeners', 'removeListener']) {
      const value = function (this: LentClient, event: unknown): LentClient {
        if (event === 'error') return this
        throw unsupported(events)
      }
      Object.defineProperty(LentClient.prototype, name, { value, configurable: true, writable: true })
    }
  }
}

// What pg makes of the answer to such a statement.
function nested(does: InnerStatement['does']): PostgresAnswer {
  const [command = ''] = does.toUpperCase().split(' ')
  const answer = { command, rows: [], rowCount: null, fields: [], oid: null }
  return answer
}

function valuesOf(values: unknown): unknown[] | undefined {
  if (values === undefined || values === null) return undefined
  if (!Array.isArray(values)) throw unsupported('values are a list')
  return [...values]
}

function unsupported(why: string): RepriseError {
  return new RepriseError('STATEMENT_UNSUPPORTED', `Not inside a transaction: ${why}.`)
}

const keepsBusy = 'cursors and streams keep the connection busy between reads; select in parts instead'

function isSubmittable(config: unknown): boolean {
  return typeof (config as { readonly submit?: unknown } | null | undefined)?.submit === 'function'
}

// Behind the text, behind the values, or in the config.
function callbackIn(config: unknown, values: unknown, callback: unknown): unknown {
  if (typeof values === 'function') return values
  if (isGiven(callback) || typeof config !== 'object' || config === null) return callback
  return (config as { readonly callback?: unknown }).callback
}

// Null is no callback to pg.
function isGiven(callback: unknown): boolean {
  return callback !== undefined && callback !== null
}
