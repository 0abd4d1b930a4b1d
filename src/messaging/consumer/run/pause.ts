// A consumer that pauses begins nothing new until the pause is over. Pauses in a row grow longer.

import { type Clock, type Random, waitFor } from '../../../kernel/index.js'
import { equalJitter } from '../../../retry/index.js'
import type { Subscription } from '../../broker.js'
import type { PauseCause } from '../machine.js'

const growth = equalJitter({ baseMs: 250, capMs: 30_000 })

/** Hears of a pause that begins. */
export type TellPause = (because: PauseCause, forMs: number, error: unknown) => void

/** The pauses of one consumer. */
export class Pause {
  readonly #clock: Clock
  readonly #random: Random
  readonly #tell: TellPause
  #untilMs = Number.NEGATIVE_INFINITY
  #inRow = 0
  #subscription: Pick<Subscription, 'pause' | 'resume'> | undefined

  constructor(clock: Clock, random: Random, tell: TellPause) {
    this.#clock = clock
    this.#random = random
    this.#tell = tell
  }

  get isOn(): boolean {
    return this.#clock.monotonicMs() < this.#untilMs
  }

  /** Begins a pause, or makes the one that is on longer where more was asked for. */
  begin(because: PauseCause, atLeastMs: number, error: unknown): void {
    const nowMs = this.#clock.monotonicMs()
    if (this.isOn) {
      // Those that were at work when it began fail for the same reason.
      this.#untilMs = Math.max(this.#untilMs, nowMs + atLeastMs)
      return
    }
    this.#inRow += 1
    const forMs = Math.max(atLeastMs, Math.ceil(growth.delayMs(this.#inRow, 0, this.#random)))
    this.#untilMs = nowMs + forMs
    this.#subscription?.pause()
    this.#resumeLater(forMs)
    this.#tell(because, forMs, error)
  }

  /** A subscription that asks for no more while a pause is on. Returns what ends that. */
  watch(subscription: Pick<Subscription, 'pause' | 'resume'>): () => void {
    this.#subscription = subscription
    if (this.isOn) subscription.pause()
    return () => {
      this.#subscription = undefined
    }
  }

  #resumeLater(ms: number): void {
    const subscription = this.#subscription
    if (subscription === undefined) return
    const resume = (): void => {
      if (this.#subscription !== subscription) return
      if (this.isOn) this.#resumeLater(this.#untilMs - this.#clock.monotonicMs())
      else subscription.resume()
    }
    this.#clock.setTimer(ms, resume, { keepAlive: false })
  }

  /** Something was committed: the next pause is a short one again. */
  ended(): void {
    this.#inRow = 0
  }

  /** Waits until no pause is on, or the signal is aborted. Never rejected. */
  async over(signal: AbortSignal): Promise<void> {
    while (this.isOn && !signal.aborted) {
      await pausedFor(this.#untilMs - this.#clock.monotonicMs(), this.#clock, signal)
    }
  }
}

/** Waits for a time, or until the signal is aborted. Never rejected. */
export function pausedFor(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
  return waitFor<void>({ signal }, (resolve) => clock.setTimer(Math.max(0, ms), () => resolve())).catch(() => undefined)
}
