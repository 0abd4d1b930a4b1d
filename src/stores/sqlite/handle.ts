// What a body gets: the query builder it was promised, plain queries, repeatable writes and savepoints, all on one connection.

import type { HandleLife, Rows, TransactionControls } from '../../atomicity/index.js'
import { type SavepointTurns, type SqlAnswer, type SqlExecutor, SqlHandle, savepointTurns } from '../sql/index.js'
import { clientOf, type SqliteClient, savepointSteps } from './client/client.js'
import type { SqliteHandle } from './connection/driver.js'

/** The handle of a transaction in SQLite. */
export interface SqliteTransaction<Bound> extends TransactionControls, Rows {
  /** What `bind` made of the client; the client itself where there is no `bind`. */
  readonly db: Bound
  /** Runs one statement, with a question mark for each value. `rowCount`: rows given, or written where it gives none. */
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
  bind: Bind<Bound>,
): SqliteTransaction<Bound> {
  return new Handle(connection, life, controls, bind)
}

class Handle<Bound> extends SqlHandle implements SqliteTransaction<Bound> {
  readonly db: Bound
  readonly #handle: SqliteHandle
  readonly #life: HandleLife
  readonly #turns: SavepointTurns
  readonly #executor: SqlExecutor

  constructor(
    { handle, readOnly }: { readonly handle: SqliteHandle; readonly readOnly: boolean },
    life: HandleLife,
    controls: TransactionControls,
    bind: Bind<Bound>,
  ) {
    const turns = savepointTurns(life)
    const client = clientOf(handle, life, turns, readOnly)
    const executor = new Executor(client, life, turns)
    super(controls, executor)
    this.#handle = handle
    this.#life = life
    this.#turns = turns
    this.#executor = executor
    this.db = bind(client)
  }

  async query<Result>(text: string, values: readonly unknown[] = []): Promise<{ rows: Result[]; rowCount: number }> {
    const { rows, rowCount } = await this.#executor.run(text, values)
    return { rows: rows as unknown as Result[], rowCount }
  }

  savepoint<Result>(work: () => PromiseLike<Result> | Result): Promise<Result> {
    return this.#turns.enter(() => this.#life.savepoint(savepointSteps(this.#handle), work))
  }
}

class Executor implements SqlExecutor {
  readonly dialect = 'sqlite'
  readonly #client: SqliteClient
  readonly #life: HandleLife
  readonly #turns: SavepointTurns

  constructor(client: SqliteClient, life: HandleLife, turns: SavepointTurns) {
    this.#client = client
    this.#life = life
    this.#turns = turns
  }

  // Asked again after each wait: others may have waited for the same savepoint, and one of them may have opened the next.
  async run(text: string, values: readonly unknown[]): Promise<SqlAnswer> {
    let wait = this.#turns.turn()
    do {
      await wait
      wait = this.#turns.turn()
    } while (wait !== undefined)
    return answer(this.#client, text, values)
  }

  // The writer has the whole file to itself, so a row that it sees is locked already.
  lock(select: string, values: readonly unknown[]): Promise<SqlAnswer> {
    return this.run(select, values)
  }

  poison(error: unknown): void {
    this.#life.poison(error)
  }
}

function answer(client: SqliteClient, text: string, values: readonly unknown[]): SqlAnswer {
  const statement = client.prepare(text)
  if (!statement.reader) return { rows: [], rowCount: statement.run(values).changes }
  const rows = statement.all(values) as Record<string, unknown>[]
  return { rows, rowCount: rows.length }
}
