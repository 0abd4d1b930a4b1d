// What a body gets: the query builder it was promised, plain queries, repeatable writes and savepoints, all on one
// connection.

import {
  type Emission,
  type EmissionSink,
  type Emits,
  type EmitsSoon,
  type Emitted,
  type HandleLife,
  type MessageDraft,
  type Outbox,
  type Rows,
  type TransactionControls,
  TransactionHandle,
} from '../../atomicity/index.js'
import {
  InnerTransactions,
  type SavepointTurns,
  type SqlAnswer,
  type SqlDialect,
  type SqlExecutor,
  savepointTurns,
  sqliteDialect,
  sqlRows,
} from '../sql/index.js'
import { type Acting, actOn, clientOf, type SqliteClient, savepointSteps } from './client/client.js'
import { refuseOtherModes } from './client/refusals.js'
import { type Act, answerOf } from './client/statement.js'
import type { SqliteHandle } from './connection/driver.js'

/** The handle of a transaction in SQLite. */
export interface SqliteTransaction<Bound> extends TransactionControls, Rows, Emits {
  /** What `bind` made of the client; the client itself where there is no `bind`. */
  readonly db: Bound
  /**
   * Runs one statement, with a question mark for each value. `rowCount`: rows given, or written where it gives none.
   */
  query<Result = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
  ): Promise<{ rows: Result[]; rowCount: number }>
  /** Runs work whose failure undoes only itself. Statements that are not part of it wait until it is over. */
  savepoint<Result>(work: () => PromiseLike<Result> | Result): Promise<Result>
}

/** Turns the client into what a body works with. */
export type Bind<Bound> = (client: SqliteClient) => Bound

/** Makes the handle. */
export function sqliteHandle<Bound>(
  connection: { readonly handle: SqliteHandle; readonly readOnly: boolean },
  life: HandleLife,
  controls: TransactionControls,
  { bind, outbox }: { readonly bind: Bind<Bound> | undefined; readonly outbox: Outbox },
): SqliteTransaction<Bound> {
  return new Handle(connection, life, controls, bind, outbox)
}

class Handle<Bound> extends TransactionHandle implements SqliteTransaction<Bound> {
  readonly db: Bound
  readonly #acting: Acting
  readonly #executor: Executor

  constructor(
    { handle, readOnly }: { readonly handle: SqliteHandle; readonly readOnly: boolean },
    life: HandleLife,
    controls: TransactionControls,
    bind: Bind<Bound> | undefined,
    outbox: Outbox,
  ) {
    const inner = new InnerTransactions(life, savepointSteps(handle), refuseOtherModes)
    const acting: Acting = { handle, life, turns: savepointTurns(life), inner, readOnly }
    const executor = new Executor(acting, outbox)
    super(controls, life, () => sqlRows(executor), executor)
    this.#acting = acting
    this.#executor = executor
    const client = clientOf(acting, bind !== undefined)
    // The type of tx.db is the client where there is no bind.
    this.db = bind === undefined ? (client as Bound) : bind(client)
  }

  query<Result>(text: string, values: readonly unknown[] = []): Promise<{ rows: Result[]; rowCount: number }> {
    return this.#acting.life.call(() => this.#executor.runSoon(text, values)) as Promise<{
      rows: Result[]
      rowCount: number
    }>
  }

  savepoint<Result>(work: () => PromiseLike<Result> | Result): Promise<Result> {
    const { handle, life, turns, inner } = this.#acting
    const run = async (): Promise<Result> => {
      inner.demand(undefined)
      return life.savepoint(savepointSteps(handle), work)
    }
    return life.call(() => turns.enter(run), 'poisoned')
  }
}

class Executor implements SqlExecutor, EmitsSoon, EmissionSink {
  readonly dialect: SqlDialect = sqliteDialect
  readonly #handle: SqliteHandle
  readonly #life: HandleLife
  readonly #turns: SavepointTurns
  readonly #act: Act
  readonly #acting: Acting
  readonly #outbox: Outbox

  constructor(acting: Acting, outbox: Outbox) {
    this.#acting = acting
    this.#outbox = outbox
    this.#handle = acting.handle
    this.#life = acting.life
    this.#turns = acting.turns
    this.#act = actOn(acting)
  }

  /** The same without a promise where nothing has to be waited for. */
  runSoon(text: string, values: readonly unknown[]): Promise<SqlAnswer> | SqlAnswer {
    return this.#turns.turn() === undefined ? answerOf(this.#handle, text, values, this.#act) : this.run(text, values)
  }

  // Asked again after each wait: others may have waited for the same savepoint, and one of them may have opened the
  // next.
  async run(text: string, values: readonly unknown[]): Promise<SqlAnswer> {
    for (let wait = this.#turns.turn(); wait !== undefined; wait = this.#turns.turn()) await wait
    return answerOf(this.#handle, text, values, this.#act)
  }

  get readOnly(): boolean {
    return this.#acting.readOnly
  }

  emit(given: MessageDraft | readonly MessageDraft[]): Emitted | Promise<Emitted> {
    return this.#outbox.emit(given, this)
  }

  keep(emissions: readonly Emission[]): Promise<void> | void {
    const wait = this.#turns.turn()
    if (wait !== undefined) return wait.then(() => this.keep(emissions))
    this.#life.check()
    this.#acting.inner.demand(undefined)
    this.#life.emit(emissions)
  }

  // The writer has the whole file to itself, so a row that it sees is locked already.
  lock(select: string, values: readonly unknown[]): Promise<SqlAnswer> {
    return this.run(select, values)
  }

  poison(error: unknown): void {
    this.#life.poison(error)
  }
}
