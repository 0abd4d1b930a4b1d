// What a body can do beside its statements, as the runner keeps it.
//
// A class: an accessor in an object literal would give each object a shape of its own, which keeps the whole transaction in memory until the next
// full collection.

import type { TransactionControls } from '../../atomicity/index.js'
import { type Deadline, RepriseError } from '../../kernel/index.js'

/** Work for after the commit. */
export type AfterCommit = () => unknown

/** The controls of one attempt. */
export class AttemptControls implements TransactionControls {
  readonly attempt: number
  readonly deadline: Deadline
  /** What was asked for, in order. */
  readonly hooks: AfterCommit[] = []
  // Made when the body first asks for its signal: most never do, and it costs as much as all the rest of an attempt's objects.
  #controller: AbortController | undefined
  #over = false
  #aborted: { readonly reason: unknown } | undefined

  constructor(attempt: number, deadline: Deadline) {
    this.attempt = attempt
    this.deadline = deadline
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted.reason)
    }
    return this.#controller.signal
  }

  afterCommit(work: AfterCommit): void {
    if (typeof work !== 'function') throw new RepriseError('ARGUMENT_INVALID', 'afterCommit needs a function.')
    if (this.#over)
      throw new RepriseError(
        'TRANSACTION_OVER',
        'The transaction has ended; nothing can be put after its commit any more.',
      )
    this.hooks.push(work)
  }

  /** The body has settled. */
  end(): void {
    this.#over = true
  }

  /** The body is to stop. */
  abort(reason: unknown): void {
    this.#aborted = { reason }
    this.#controller?.abort(reason)
  }
}
