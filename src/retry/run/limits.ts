// An attempt whose time is limited: by its time-out, by the deadline of its call, or by the caller's signal.

import type { ReturnedVerdict } from '../verdict.js'
import type { CallState, LimitedAttempt } from './call-state.js'
import { Wait } from './timeouts.js'

/**
 * Calls the body, and waits for it no longer than time-out, deadline and signal allow.
 *
 * Not by the kernel's `waitFor`: that sets a timer for each wait, where the attempts of a policy share one; and a hedge
 * that lost lets go of timer and signal while its body is still awaited.
 */
export function inTime<Result>(
  call: CallState<Result>,
  attempt: LimitedAttempt,
): Promise<Result | ReturnedVerdict<Result>> {
  const { settings, signal } = call
  if (signal?.aborted) return Promise.reject(signal.reason)
  return new Promise((resolve, reject) => {
    const giveUp = (reason: unknown): void => {
      attempt.abort(reason)
      reject(reason)
    }
    const wait = new Wait(settings.timeouts, call, settings.attemptTimeoutMs, giveUp)
    attempt.limit(wait)
    // A body that goes on after its time is over is still a layer to what it calls, until it has ended.
    call.callBody(attempt).then(
      (value) => {
        if (wait.end()) resolve(value)
      },
      (error: unknown) => {
        if (wait.end()) reject(error)
      },
    )
  })
}
