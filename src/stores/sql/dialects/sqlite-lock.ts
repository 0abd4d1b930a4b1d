// Waiting for the lock of an SQLite file without holding up the event loop: the lock is asked for again and again, and
// the pauses are timers of ours.

import { type Clock, defined, type Random, sleep, systemRandom } from '../../../kernel/index.js'

/** How to wait for a lock. */
export interface BusyLimits {
  /** The longest wait, in ms. */
  readonly waitMs: number
  readonly clock: Clock
  /** Makes the pauses of two processes differ, so that they do not ask in step. Default {@link systemRandom}. */
  readonly random?: Random
  /** Ends the wait with its reason. */
  readonly signal?: AbortSignal | undefined
  /** Whose signal does the same; it is made when it is asked for, which is when somebody else holds the lock. */
  readonly controls?: { readonly signal: AbortSignal } | undefined
}

// SQLite's own busy handler sleeps 1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100 ms in the thread that asks; these are
// of that size.
const firstPauseMs = 1
const longestPauseMs = 25

/** The pauses of one wait for a lock: pause k is between half and all of min(25, 2^k) ms. */
export class BusyWait {
  readonly #limits: BusyLimits
  readonly #endMs: number
  #ceilingMs = firstPauseMs

  constructor(limits: BusyLimits) {
    this.#limits = limits
    this.#endMs = limits.clock.monotonicMs() + limits.waitMs
  }

  /** Waits until the lock is to be asked for again. False: the wait is over. */
  async pause(): Promise<boolean> {
    const { clock, random = systemRandom, controls, signal = controls?.signal } = this.#limits
    const leftMs = this.#endMs - clock.monotonicMs()
    if (leftMs <= 0) return false
    const pauseMs = Math.min(leftMs, this.#ceilingMs * (1 + random.next()) * 0.5)
    this.#ceilingMs = Math.min(this.#ceilingMs * 2, longestPauseMs)
    await sleep(pauseMs, defined({ clock, signal }))
    return true
  }
}

/** Whether somebody else holds the lock at this moment, by the signs of an error. */
export function isBusySign(sign: string | undefined): boolean {
  // Not SQLITE_BUSY_SNAPSHOT: only a transaction that is begun anew gets past that one.
  return sign === 'SQLITE_BUSY' || sign === 'SQLITE_BUSY_RECOVERY' || sign === 'SQLITE_BUSY_TIMEOUT'
}

/**
 * Calls `work`, and calls it again with growing pauses as long as it fails because somebody else holds the lock. Ends
 * with the driver's own error.
 */
export async function whileBusy<Result>(
  limits: BusyLimits,
  isBusy: (error: unknown) => boolean,
  work: () => Result | Promise<Result>,
): Promise<Result> {
  const wait = new BusyWait(limits)
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isBusy(error) || !(await wait.pause())) throw error
    }
  }
}
