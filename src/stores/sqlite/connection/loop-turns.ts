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
  readonly #clock: Clock
  #sinceMs: number | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Called before each piece of work: what to wait for where the event loop has not turned for too long, else
   * undefined.
   */
  due(): Promise<void> | undefined {
    const nowMs = this.#clock.monotonicMs()
    if (this.#sinceMs === undefined) {
      this.#sinceMs = nowMs
      const turned = (): void => {
        this.#sinceMs = undefined
      }
      void eventLoopTurn().then(turned)
      return undefined
    }
    return nowMs - this.#sinceMs < longestMs ? undefined : eventLoopTurn()
  }
}
