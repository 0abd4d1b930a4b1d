// The first attempt of a call on which nothing bears but the rules, the breaker and a time-out: nearly every call, and nearly
// always the only attempt. Without async and await, since an async function keeps a place for each of its variables over
// every await, which costs more than all that is done here.

import type { Guard } from '../guard.js'
import { isReturnedVerdict, type ReturnedVerdict } from '../verdict.js'
import { type Body, RunningAttempt } from './attempt.js'
import { breakerOpen, type Machinery, succeeded } from './call.js'
import { type Failure, returnedFailure } from './failures.js'
import { attemptTimeout } from './limits.js'
import { type Timeouts, Waiting } from './timeouts.js'

/** Goes on after the first attempt failed. */
export type GoOn<Result> = (failure: Failure<Result>, pass: number) => Promise<Result>

/** Makes the first attempt; if it fails, the rest is up to `goOn`. */
export function firstAttempt<Result>(
  machinery: Machinery,
  guard: Guard | undefined,
  body: Body<Result>,
  goOn: GoOn<Result>,
): Promise<Result> {
  const { breaker, timeouts } = machinery
  const pass = breaker === undefined ? -1 : breaker.tryEnter(machinery.clock.monotonicMs())
  if (pass === 0) return Promise.reject(breakerOpen(machinery.name))
  const attempt = new RunningAttempt(1, guard?.key, undefined)
  const answered = timeouts === undefined ? call(body, attempt) : timed(timeouts, machinery, body, attempt)
  return answered.then(
    (result) => {
      if (isReturnedVerdict(result)) return goOn(returnedFailure(result), pass)
      succeeded(machinery, pass)
      return result
    },
    (error: unknown) => goOn({ returned: false, error }, pass),
  )
}

function call<Result>(body: Body<Result>, attempt: RunningAttempt): Promise<Result | ReturnedVerdict<Result>> {
  try {
    return Promise.resolve(body(attempt))
  } catch (error) {
    return Promise.reject(error)
  }
}

function timed<Result>(
  timeouts: Timeouts,
  machinery: Machinery,
  body: Body<Result>,
  attempt: RunningAttempt,
): Promise<Result | ReturnedVerdict<Result>> {
  return new Promise((resolve, reject) => {
    const waiting = new TimedAttempt(attempt, machinery.attemptTimeoutMs as number, reject)
    timeouts.enter(waiting)
    call(body, attempt).then(
      (result) => {
        if (waiting.isOver(timeouts)) resolve(result)
      },
      (error: unknown) => {
        if (waiting.isOver(timeouts)) reject(error)
      },
    )
  })
}

class TimedAttempt extends Waiting {
  readonly #attempt: RunningAttempt
  readonly #timeoutMs: number
  readonly #reject: (error: unknown) => void
  #out = true

  constructor(attempt: RunningAttempt, timeoutMs: number, reject: (error: unknown) => void) {
    super()
    this.#attempt = attempt
    this.#timeoutMs = timeoutMs
    this.#reject = reject
  }

  /** Ends it, unless its time was over before; answers whether it counts. */
  isOver(timeouts: Timeouts): boolean {
    if (!this.#out) return false
    this.#out = false
    timeouts.leave(this)
    return true
  }

  timedOut(): void {
    this.#out = false
    const error = attemptTimeout(this.#timeoutMs)
    this.#attempt.abort(error)
    this.#reject(error)
  }
}
