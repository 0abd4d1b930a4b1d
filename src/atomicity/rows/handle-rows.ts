// The writes that can be repeated as a handle offers them: each is a call of the body, which may not wait for it.

import type { TransactionControls } from '../engine.js'
import { HandleControls } from '../handle-controls.js'
import type { HandleLife } from '../handle-life.js'
import type { Rows } from './rows.js'

/** Controls and rows of a handle, for stores to extend with what else they offer. */
export class HandleRows extends HandleControls implements Rows {
  readonly #life: Pick<HandleLife, 'call'>
  readonly #make: () => Rows
  #made: Rows | undefined

  /**
   * @param controls What the runner gave to `begin`.
   * @param life Knows of the calls that the body does not wait for.
   * @param make Makes the rows of the store, when a body first asks for one: most ask for none.
   */
  constructor(controls: TransactionControls, life: Pick<HandleLife, 'call'>, make: () => Rows) {
    super(controls)
    this.#life = life
    this.#make = make
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

  get #rows(): Rows {
    this.#made ??= this.#make()
    return this.#made
  }
}
