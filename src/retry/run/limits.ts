// What may end an attempt from outside: the caller's signal, the deadline of the whole call, the attempt's own time-out.
// One timer for the deadline and one listener for the signal serve all attempts of a call.

import { type CancelTimer, type Clock, type Deadline, RepriseError, whenAborted } from '../../kernel/index.js'
import type { ReturnedVerdict } from '../verdict.js'
import type { Body, RunningAttempt } from './attempt.js'

type Stop = (reason: unknown) => void

/** How long somebody may look at the world where the call has no deadline, in ms. */
const maxLookMs = 60_000

/** The limits on one call, from its first attempt until {@link CallLimits.release}. */
export class CallLimits {
  readonly #clock: Clock
  // What is out, and how to let go of it.
  readonly #out = new Map<Stop, () => void>()
  #cancelDeadline: CancelTimer | undefined
  #leave: (() => void) | undefined
  #reached: { readonly reason: unknown } | undefined

  constructor(clock: Clock, signal: AbortSignal | undefined, deadline: Deadline | undefined) {
    this.#clock = clock
    if (signal !== undefined) this.#leave = whenAborted(signal, () => this.#stopAll(signal.reason))
    if (deadline !== undefined) {
      const leftMs = Math.max(0, deadline.expiresAtMs - clock.monotonicMs())
      this.#cancelDeadline = clock.setTimer(leftMs, () => this.#stopAll(deadlineExceeded()))
    }
  }

  /** Calls the body; rejects early when a limit is reached, and tells the body through its signal. */
  race<Result>(
    body: Body<Result>,
    attempt: RunningAttempt,
    timeoutMs: number | undefined,
  ): Promise<Result | ReturnedVerdict<Result>> {
    return this.#bounded(
      () => body(attempt),
      timeoutMs,
      (reason) => attempt.abort(reason),
    )
  }

  /**
   * Waits for somebody who looks at the world; rejects early when a limit is reached, and tells through the signal. Without
   * a deadline of the call, a minute is the limit.
   */
  look<Result>(
    work: (signal: AbortSignal) => PromiseLike<Result> | Result,
    deadline: Deadline | undefined,
  ): Promise<Result> {
    const controller = new AbortController()
    return this.#bounded(
      () => work(controller.signal),
      deadline === undefined ? maxLookMs : undefined,
      (reason) => controller.abort(reason),
      'Looking whether it happened',
    )
  }

  /** Calls `stop` when a limit is reached, also one that is reached while no attempt is out. */
  watch(stop: Stop): void {
    this.#out.set(stop, () => undefined)
  }

  /** Lets go of timers and listener. What is still out is not heard of any more. */
  release(): void {
    this.#leave?.()
    this.#cancelDeadline?.()
    for (const letGo of this.#out.values()) letGo()
    this.#out.clear()
  }

  #bounded<Result>(
    work: () => PromiseLike<Result> | Result,
    timeoutMs: number | undefined,
    tell: Stop,
    what?: string,
  ): Promise<Result> {
    if (this.#reached !== undefined) return Promise.reject(this.#reached.reason)
    return new Promise((resolve, reject) => {
      let cancelTimeout: CancelTimer | undefined
      const over = (): void => {
        this.#out.delete(stop)
        cancelTimeout?.()
      }
      const stop: Stop = (reason) => {
        over()
        tell(reason)
        reject(reason)
      }
      this.#out.set(stop, () => cancelTimeout?.())
      if (timeoutMs !== undefined)
        cancelTimeout = this.#clock.setTimer(timeoutMs, () => stop(attemptTimeout(timeoutMs, what)))
      const started = async (): Promise<Result> => work()
      started().then(
        (result) => {
          over()
          resolve(result)
        },
        (error: unknown) => {
          over()
          reject(error)
        },
      )
    })
  }

  #stopAll(reason: unknown): void {
    this.#reached ??= { reason }
    for (const stop of [...this.#out.keys()]) stop(reason)
  }
}

/** The error of a call whose deadline passed. */
export function deadlineExceeded(cause?: unknown): RepriseError {
  const options = cause === undefined ? {} : { cause }
  return new RepriseError('DEADLINE_EXCEEDED', 'The deadline passed.', options)
}

/** The error of an attempt, or of a look at the world, that took too long. */
export function attemptTimeout(timeoutMs: number, what = 'The attempt'): RepriseError {
  return new RepriseError('ATTEMPT_TIMEOUT', `${what} took longer than ${timeoutMs} ms.`, {
    details: { timeoutMs },
  })
}
