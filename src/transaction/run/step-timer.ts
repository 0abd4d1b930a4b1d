// The time limits of the steps of an attempt. They come one after the other, so one timer serves all of them: setting and clearing one for each
// would be a good part of what a transaction costs beside its statements.

import type { CancelTimer, Clock } from '../../kernel/index.js'

/** One timer for steps that come one after the other. Set for an earlier step, it goes on to the limit of the one that is under way when it rings. */
export class StepTimer implements Pick<Clock, 'setTimer'> {
  readonly #clock: Clock
  readonly #usualMs: number
  #cancel: CancelTimer | undefined
  #rings = 0
  #dueMs = 0
  #fire: (() => void) | undefined

  /** @param usualMs The shortest limit that is to be expected: the timer is not set for later, so that it need not be set again for a shorter one. */
  constructor(clock: Clock, usualMs: number) {
    this.#clock = clock
    this.#usualMs = usualMs
  }

  /** The limit of a step, in place of that of the step before; what it returns takes it back. */
  setTimer(delayMs: number, fire: () => void): CancelTimer {
    const nowMs = this.#clock.monotonicMs()
    this.#dueMs = nowMs + delayMs
    this.#fire = fire
    if (this.#cancel === undefined || this.#dueMs < this.#rings) this.#set(nowMs)
    // A step that was given up may end much later, and must not take the limit of another one back.
    return () => {
      if (this.#fire === fire) this.#fire = undefined
    }
  }

  /** No step comes any more. */
  end(): void {
    this.#fire = undefined
    this.#cancel?.()
    this.#cancel = undefined
  }

  #set(nowMs: number): void {
    const delayMs = Math.min(this.#dueMs - nowMs, this.#usualMs)
    this.#cancel?.()
    this.#rings = nowMs + delayMs
    this.#cancel = this.#clock.setTimer(delayMs, this.#ring)
  }

  readonly #ring = (): void => {
    this.#cancel = undefined
    const fire = this.#fire
    if (fire === undefined) return
    const nowMs = this.#clock.monotonicMs()
    if (this.#dueMs > nowMs) {
      this.#set(nowMs)
      return
    }
    this.#fire = undefined
    fire()
  }
}
