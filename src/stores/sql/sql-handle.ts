// What every handle of an engine that speaks SQL offers in the same way: the controls, and writes that can be repeated.

import { type HandleLife, HandleRows, type TransactionControls } from '../../atomicity/index.js'
import type { SqlExecutor } from './executor.js'
import { sqlRows } from './rows.js'

/** A handle over an executor, for stores to extend with their queries and savepoints. */
export class SqlHandle extends HandleRows {
  /**
   * @param controls What the runner gave to `begin`.
   * @param executor Runs the statements inside the transaction.
   * @param life Knows of the calls that the body does not wait for.
   */
  constructor(controls: TransactionControls, executor: SqlExecutor, life: Pick<HandleLife, 'call'>) {
    super(controls, life, () => sqlRows(executor))
  }
}
