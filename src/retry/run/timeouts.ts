// The time-outs of a policy's attempts. All last equally long, so they end in the order in which they began: one timer, set
// for the oldest, serves all that are out. Setting and clearing one for each attempt would cost twice the rest of a call.

import { afterMicrotasks, type CancelTimer, type Clock } from '../../kernel/index.js'

/** An attempt that is out. Its place in the list belongs to {@link Timeouts}. */
export abstract class Waiting {
  /** When its time is over, in monotonic ms. */
  dueMs = 0
  /** The one that began before it. */
  older: Waiting | undefined
  /** The one that began after it. */
  newer: Waiting | undefined
  /** Called when its time is over; it has left the list. */
  abstract timedOut(): void
}

/** The attempts that are out, oldest first. */
export class Timeouts {
  readonly #clock: Clock
  readonly #timeoutMs: number
  #oldest: Waiting | undefined
  #newest: Waiting | undefined
  #cancel: CancelTimer | undefined
  #restPlanned = false

  constructor(clock: Clock, timeoutMs: number) {
    this.#clock = clock
    this.#timeoutMs = timeoutMs
  }

  /** An attempt goes out. */
  enter(waiting: Waiting): void {
    waiting.dueMs = this.#clock.monotonicMs() + this.#timeoutMs
    waiting.older = this.#newest
    if (this.#newest === undefined) this.#oldest = waiting
    else this.#newest.newer = waiting
    this.#newest = waiting
    this.#cancel ??= this.#clock.setTimer(this.#timeoutMs, this.#ring)
  }

  /** An attempt is over, once. */
  leave(waiting: Waiting): void {
    const { older, newer } = waiting
    if (older === undefined) this.#oldest = newer
    else older.newer = newer
    if (newer === undefined) this.#newest = older
    else newer.older = older
    waiting.older = undefined
    waiting.newer = undefined
    if (this.#oldest === undefined) this.#planRest()
  }

  // A timer keeps the process alive, so it goes when nobody is out; but after the microtasks at hand, so that calls in a
  // row share it.
  #planRest(): void {
    if (this.#restPlanned) return
    this.#restPlanned = true
    afterMicrotasks(this.#rest)
  }

  readonly #rest = (): void => {
    this.#restPlanned = false
    if (this.#oldest !== undefined) return
    this.#cancel?.()
    this.#cancel = undefined
  }

  readonly #ring = (): void => {
    this.#cancel = undefined
    const nowMs = this.#clock.monotonicMs()
    for (let oldest = this.#oldest; oldest !== undefined; oldest = this.#oldest) {
      if (oldest.dueMs > nowMs) {
        this.#cancel = this.#clock.setTimer(oldest.dueMs - nowMs, this.#ring)
        return
      }
      this.leave(oldest)
      oldest.timedOut()
    }
  }
}
