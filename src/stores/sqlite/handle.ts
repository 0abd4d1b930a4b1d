// What a body gets: the query builder it was promised, plain queries, repeatable writes and savepoints, all on one connection.

import type { HandleLife, Rows, TransactionControls } from '../../atomicity/index.js'
import type { Deadline } from '../../kernel/index.js'
import { type SavepointTurns, type SqlAnswer, type SqlExecutor, savepointTurns, sqlRows } from '../sql/index.js'
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

// A class, since an object with a function of its own for each member costs as much as a statement.
class Handle<Bound> implements SqliteTransaction<Bound> {
  readonly db: Bound
  readonly #handle: SqliteHandle
  readonly #life: HandleLife
  readonly #controls: TransactionControls
  readonly #turns: SavepointTurns
  readonly #client: SqliteClient
  #lazyRows: Rows | undefined

  constructor(
    { handle, readOnly }: { readonly handle: SqliteHandle; readonly readOnly: boolean },
    life: HandleLife,
    controls: TransactionControls,
    bind: Bind<Bound>,
  ) {
    this.#handle = handle
    this.#life = life
    this.#controls = controls
    this.#turns = savepointTurns()
    this.#client = clientOf(handle, life, this.#turns, readOnly)
    this.db = bind(this.#client)
  }

  get attempt(): number {
    return this.#controls.attempt
  }

  get signal(): AbortSignal {
    return this.#controls.signal
  }

  get deadline(): Deadline {
    return this.#controls.deadline
  }

  afterCommit(work: () => unknown): void {
    this.#controls.afterCommit(work)
  }

  async query<Result>(text: string, values: readonly unknown[] = []): Promise<{ rows: Result[]; rowCount: number }> {
    const { rows, rowCount } = await this.#run(text, values)
    return { rows: rows as unknown as Result[], rowCount }
  }

  savepoint<Result>(work: () => PromiseLike<Result> | Result): Promise<Result> {
    return this.#turns.enter(() => this.#life.savepoint(savepointSteps(this.#handle), work))
  }

  insertOnce(...values: Parameters<Rows['insertOnce']>): ReturnType<Rows['insertOnce']> {
    return this.#rows.insertOnce(...values)
  }

  transition(...values: Parameters<Rows['transition']>): ReturnType<Rows['transition']> {
    return this.#rows.transition(...values)
  }

  lockRow(...values: Parameters<Rows['lockRow']>): ReturnType<Rows['lockRow']> {
    return this.#rows.lockRow(...values)
  }

  readRow(...values: Parameters<Rows['readRow']>): ReturnType<Rows['readRow']> {
    return this.#rows.readRow(...values)
  }

  updateRows(...values: Parameters<Rows['updateRows']>): ReturnType<Rows['updateRows']> {
    return this.#rows.updateRows(...values)
  }

  // Asked again after each wait: others may have waited for the same savepoint, and one of them may have opened the next.
  async #run(text: string, values: readonly unknown[]): Promise<SqlAnswer> {
    let wait = this.#turns.turn()
    do {
      await wait
      wait = this.#turns.turn()
    } while (wait !== undefined)
    return answer(this.#client, text, values)
  }

  get #rows(): Rows {
    if (this.#lazyRows === undefined) {
      const run: SqlExecutor['run'] = (text, values) => this.#run(text, values)
      // The writer has the whole file to itself, so a row that it sees is locked already.
      const executor: SqlExecutor = { dialect: 'sqlite', run, lock: run, poison: (error) => this.#life.poison(error) }
      this.#lazyRows = sqlRows(executor)
    }
    return this.#lazyRows
  }
}

function answer(client: SqliteClient, text: string, values: readonly unknown[]): SqlAnswer {
  const statement = client.prepare(text)
  if (!statement.reader) return { rows: [], rowCount: statement.run(values).changes }
  const rows = statement.all(values) as Record<string, unknown>[]
  return { rows, rowCount: rows.length }
}
