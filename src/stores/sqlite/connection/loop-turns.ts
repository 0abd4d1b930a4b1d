// Statements of SQLite hold the event loop up while they run, and promises alone never let it turn: who works without a
// pause would keep every timer waiting.

import { type Clock, eventLoopTurn } from '../../../kernel/index.js'

/**
 * How long work may go on without a turn of the event loop, in ms: heartbeats of leases and limits of bodies are
 * timers.
 */
const longestMs = 10

/** Watches whether the event loop turns. */
export class LoopTurns {
  /** How often it was seen to turn: the same number before and after some work says that it did not, in between. */
  seen = 0
  readonly #clock: Clock
  #sinceMs = 0
  // One for all who wait, so that they go on together: each after a turn of its own would find nobody beside it.
  #turning: Promise<void> | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Called before each piece of work: what to wait for where the event loop has not turned for too long, else
   * undefined.
   */
  due(): Promise<void> | undefined {
    const nowMs = this.#clock.monotonicMs()
    if (this.#turning !== undefined) return nowMs - this.#sinceMs < longestMs ? undefined : this.#turning
    this.#sinceMs = nowMs
    this.#turning = eventLoopTurn().then(() => {
      this.#turning = undefined
      this.seen += 1
    })
    return undefined
  }
}
