// The first attempt of a call on which nothing bears but the rules, the breaker and a time-out: nearly every call, and nearly
// always the only attempt. Without async and await, since an async function keeps a place for each of its variables over
// every await, which costs more than all that is done here.

import type { OpenScope } from '../../kernel/index.js'
import type { Guard } from '../guard.js'
import { isReturnedVerdict, type ReturnedVerdict } from '../verdict.js'
import { type Body, RunningAttempt } from './attempt.js'
import { furtherAttempts } from './attempts.js'
import { breakerOpen, isLayer, type Machinery, succeeded } from './call.js'
import { returnedFailure } from './failures.js'
import { callAtOnce, callInScope, endLayer, entersContext, type Layers, openLayer } from './layers.js'
import { attemptTimeout } from './limits.js'
import { type Timeouts, Waiting } from './timeouts.js'

/** Makes the first attempt; if it fails, the others follow. */
export function firstAttempt<Result>(
  machinery: Machinery,
  guard: Guard | undefined,
  body: Body<Result>,
  owned: boolean,
): Promise<Result> {
  const { breaker, timeouts } = machinery
  let pass = -1
  if (breaker !== undefined) {
    try {
      pass = breaker.tryEnter(machinery.clock.monotonicMs())
    } catch (error) {
      // A breaker may be the user's.
      return Promise.reject(error)
    }
  }
  if (pass === 0) return Promise.reject(breakerOpen(machinery.name))
  const attempt = new RunningAttempt(1, guard?.key, undefined)
  const own = isLayer(machinery, guard) ? machinery.own : undefined
  if (timeouts !== undefined || (own !== undefined && entersContext(machinery))) {
    return watched(machinery, guard, body, owned, pass, attempt, own)
  }
  return callAtOnce(own, body, attempt).then(
    (result) => answered(machinery, guard, body, owned, pass, result),
    (error: unknown) => furtherAttempts(machinery, guard, body, owned, { returned: false, error }, pass),
  )
}

// The same in a scope, or with a time-out. Apart, since a function keeps a place for all that its closures use.
function watched<Result>(
  machinery: Machinery,
  guard: Guard | undefined,
  body: Body<Result>,
  owned: boolean,
  pass: number,
  attempt: RunningAttempt,
  own: Layers | undefined,
): Promise<Result> {
  const { timeouts, attemptTimeoutMs = 0 } = machinery
  const scope = own !== undefined && entersContext(machinery) ? openLayer(own) : undefined
  const call =
    timeouts === undefined
      ? started(scope, own, body, attempt)
      : timed(timeouts, attemptTimeoutMs, scope, own, body, attempt)
  return call.then(
    (result) => {
      if (timeouts === undefined && scope !== undefined) endLayer(scope)
      return answered(machinery, guard, body, owned, pass, result)
    },
    (error: unknown) => {
      if (timeouts === undefined && scope !== undefined) endLayer(scope)
      return furtherAttempts(machinery, guard, body, owned, { returned: false, error }, pass)
    },
  )
}

function answered<Result>(
  machinery: Machinery,
  guard: Guard | undefined,
  body: Body<Result>,
  owned: boolean,
  pass: number,
  result: Result | ReturnedVerdict<Result>,
): Result | Promise<Result> {
  if (isReturnedVerdict(result)) return furtherAttempts(machinery, guard, body, owned, returnedFailure(result), pass)
  succeeded(machinery, pass, false)
  return result
}

function started<Result>(
  scope: OpenScope | undefined,
  own: Layers | undefined,
  body: Body<Result>,
  attempt: RunningAttempt,
): Promise<Result | ReturnedVerdict<Result>> {
  return scope === undefined ? callAtOnce(own, body, attempt) : callInScope(scope, body, attempt)
}

// A body that goes on after its time is over is still a layer to what it calls, until it has ended.
function timed<Result>(
  timeouts: Timeouts,
  timeoutMs: number,
  scope: OpenScope | undefined,
  own: Layers | undefined,
  body: Body<Result>,
  attempt: RunningAttempt,
): Promise<Result | ReturnedVerdict<Result>> {
  return new Promise((resolve, reject) => {
    const waiting = new TimedAttempt(attempt, timeoutMs, reject)
    timeouts.enter(waiting)
    started(scope, own, body, attempt).then(
      (result) => {
        if (scope !== undefined) endLayer(scope)
        if (waiting.isOver(timeouts)) resolve(result)
      },
      (error: unknown) => {
        if (scope !== undefined) endLayer(scope)
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
