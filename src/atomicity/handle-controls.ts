// What every handle hands on to its body unchanged: the controls that the runner gave to the attempt.

import type { Deadline } from '../kernel/index.js'
import type { TransactionControls } from './engine.js'

/**
 * The controls of a handle, for stores to extend with their statements. They are asked each time, since a signal is only made when a body first asks for it. A class, since an object
 * with a function of its own for each member costs as much as a statement.
 */
export class HandleControls implements TransactionControls {
  readonly #controls: TransactionControls

  /** @param controls What the runner gave to `begin`. */
  constructor(controls: TransactionControls) {
    this.#controls = controls
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
}
