// Waiting that ends at once when it is called off, and leaves neither timer nor listener behind.

import { RepriseError } from '../errors.js'
import { type Clock, systemClock } from './clock.js'
import { type Duration, durationMs } from './duration.js'
import { whenAborted } from './when-aborted.js'

/** How to wait. */
export interface SleepOptions {
  /** The clock to wait by. Default {@link systemClock}. */
  readonly clock?: Clock
  /** Ends the wait: the promise is rejected with the signal's reason. Default: none. */
  readonly signal?: AbortSignal
  /** Whether the wait keeps the process alive. Default true. */
  readonly keepAlive?: boolean
}

/**
 * Waits; always at least until a later turn, also for a duration of 0. Rejects with `signal.reason` as soon as the signal aborts
 * (already aborted: no timer is set), and with `DURATION_INVALID` for what is not a duration.
 */
export function sleep(duration: Duration, options: SleepOptions = {}): Promise<void> {
  const { clock = systemClock, signal, keepAlive = true } = options
  return new Promise((resolve, reject) => {
    const delayMs = durationMs(duration)
    if (signal !== undefined && typeof signal.addEventListener !== 'function') {
      throw new RepriseError('ARGUMENT_INVALID', 'The signal is not an AbortSignal.')
    }
    if (signal?.aborted) {
      reject(signal.reason)
      return
    }
    const wake = (): void => {
      leave?.()
      resolve()
    }
    const callOff = (): void => {
      cancel()
      reject(signal?.reason)
    }
    const cancel = clock.setTimer(delayMs, wake, { keepAlive })
    const leave = signal === undefined ? undefined : whenAborted(signal, callOff)
  })
}
