// What every handle of an engine that speaks SQL offers in the same way: the controls, and writes that can be repeated.

import { HandleControls, type HandleLife, type Rows, type TransactionControls } from '../../atomicity/index.js'
import type { SqlExecutor } from './executor.js'
import { sqlRows } from './rows.js'

/** A handle over an executor, for stores to extend with their queries and savepoints. */
export class SqlHandle extends HandleControls implements Rows {
  readonly #executor: SqlExecutor
  readonly #life: Pick<HandleLife, 'call'>
  #lazyRows: Rows | undefined

  /**
   * @param controls What the runner gave to `begin`.
   * @param executor Runs the statements inside the transaction.
   * @param life Knows of the calls that the body does not wait for.
   */
  constructor(controls: TransactionControls, executor: SqlExecutor, life: Pick<HandleLife, 'call'>) {
    super(controls)
    this.#executor = executor
    this.#life = life
  }

  insertOnce(...values: Parameters<Rows['insertOnce']>): ReturnType<Rows['insertOnce']> {
    return this.#life.call(() => this.#rows.insertOnce(...values))
  }

  transition(...values: Parameters<Rows['transition']>): ReturnType<Rows['transition']> {
    return this.#life.call(() => this.#rows.transition(...values))
  }

  lockRow(...values: Parameters<Rows['lockRow']>): ReturnType<Rows['lockRow']> {
    return this.#life.call(() => this.#rows.lockRow(...values))
  }

  readRow(...values: Parameters<Rows['readRow']>): ReturnType<Rows['readRow']> {
    return this.#life.call(() => this.#rows.readRow(...values))
  }

  updateRows(...values: Parameters<Rows['updateRows']>): ReturnType<Rows['updateRows']> {
    return this.#life.call(() => this.#rows.updateRows(...values))
  }

  // Most bodies use none of these.
  get #rows(): Rows {
    this.#lazyRows ??= sqlRows(this.#executor)
    return this.#lazyRows
  }
}
