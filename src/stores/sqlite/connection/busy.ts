// Waiting for the lock of the file without holding up the event loop: the driver is asked again and again, and sleeps
// are timers of ours.

import { type Clock, defined, type Random, sleep } from '../../../kernel/index.js'
import { isBusy } from './driver.js'

/** How to wait for a lock. */
export interface BusyLimits {
  /** The longest wait, in ms; then the driver's own error is thrown. */
  readonly waitMs: number
  readonly clock: Clock
  /** Chance, so that two processes do not ask in step. */
  readonly random: Random
  /** Ends the wait with its reason. */
  readonly signal?: AbortSignal | undefined
  /** Whose signal does the same; it is made when it is asked for, which is when somebody else holds the lock. */
  readonly controls?: { readonly signal: AbortSignal } | undefined
}

// SQLite's own busy handler sleeps 1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100 ms in the thread that asks; these are
// of that size.
const firstDelayMs = 1
const longestDelayMs = 25

/**
 * Calls `work`, and calls it again as long as somebody else holds the lock: delay k is between half and all of min(25,
 * 2^k) ms.
 */
export async function whileBusy<Result>(limits: BusyLimits, work: () => Result): Promise<Result> {
  const { waitMs, clock, random } = limits
  const endMs = clock.monotonicMs() + waitMs
  for (let ceilingMs = firstDelayMs; ; ceilingMs = Math.min(ceilingMs * 2, longestDelayMs)) {
    try {
      return work()
    } catch (error) {
      const leftMs = endMs - clock.monotonicMs()
      if (!isBusy(error) || leftMs <= 0) throw error
      const delayMs = Math.min(leftMs, ceilingMs * (1 + random.next()) * 0.5)
      const signal = limits.signal ?? limits.controls?.signal
      await sleep(delayMs, defined({ clock, signal }))
    }
  }
}
