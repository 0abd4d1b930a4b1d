// A loop that sleeps until there may be something to do. What wakes it while it is awake counts for its next sleep.

import { type Clock, waitFor } from '../kernel/index.js'

/** Wakes one loop. */
export class Wake {
  #isAwake = false
  #ring: (() => void) | undefined

  /** There may be something to do. */
  readonly wake = (): void => {
    this.#isAwake = true
    this.#ring?.()
  }

  /** Sleeps until it is woken, the time is over, or the signal is aborted. Never rejected. */
  async sleep(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
    if (!this.#isAwake && !signal.aborted) {
      await waitFor<void>({ signal }, (resolve) => {
        this.#ring = () => resolve()
        return clock.setTimer(ms, () => resolve())
      }).catch(() => undefined)
      this.#ring = undefined
    }
    this.#isAwake = false
  }
}
