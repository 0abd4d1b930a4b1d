// One call of the body: its number, the key to send, and a signal that is only made when somebody asks for it.

import type { Key } from '../../identity/index.js'
import type { Deadline } from '../../kernel/index.js'
import type { ReturnedVerdict } from '../verdict.js'

/** What the body is told about the attempt it makes. */
export interface Attempt {
  /** Which call this is; the first is 1. */
  readonly number: number
  /** The key to send: the guard's, the same in every attempt. */
  readonly key: Key | undefined
  /** When nobody waits any more; undefined without a deadline. */
  readonly deadline: Deadline | undefined
  /** Aborts when the attempt is over: its time-out, the deadline, the caller's own signal, or a hedge that won. */
  readonly signal: AbortSignal
}

/** The caller's function. It returns its result, or its verdict on a failure as a value. */
export type Body<Result> = (
  attempt: Attempt,
) => Result | ReturnedVerdict<Result> | PromiseLike<Result | ReturnedVerdict<Result>>

/** An attempt in the hands of the runner. */
export class RunningAttempt implements Attempt {
  readonly number: number
  readonly key: Key | undefined
  readonly deadline: Deadline | undefined
  // Making a controller costs several microseconds, more than everything else on the way of a call that succeeds.
  #controller: AbortController | undefined
  #aborted = false
  #reason: unknown

  constructor(number: number, key: Key | undefined, deadline: Deadline | undefined) {
    this.number = number
    this.key = key
    this.deadline = deadline
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#aborted) this.#controller.abort(this.#reason)
    return this.#controller.signal
  }

  /** Tells the body that its attempt is over. */
  abort(reason: unknown): void {
    if (this.#aborted) return
    this.#aborted = true
    this.#reason = reason
    this.#controller?.abort(reason)
  }
}
