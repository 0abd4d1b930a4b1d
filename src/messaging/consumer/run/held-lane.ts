// A lane that we have claimed: its lease is extended while we work on it, and its signal is aborted when it is lost.

import type { CancelTimer, Clock } from '../../../kernel/index.js'
import type { LaneEnd } from '../../lanes.js'
import { Fenced } from '../failure.js'

/** What names a claim. */
export type LaneClaim = Pick<LaneEnd, 'reader' | 'key' | 'owner' | 'attempt'>

/** A lane in our hands. */
export class HeldLane {
  readonly claim: LaneClaim
  readonly #leaseMs: number
  readonly #clock: Clock
  readonly #extend: (claim: LaneClaim) => Promise<boolean>
  readonly #lost = new AbortController()
  #untilMs: number
  #cancel: CancelTimer
  #isOver = false

  /** @param sinceMs When it was asked for, in ms of monotonic time: the lease may have begun as early as that. */
  constructor(
    claim: LaneClaim,
    sinceMs: number,
    leaseMs: number,
    clock: Clock,
    extend: (claim: LaneClaim) => Promise<boolean>,
  ) {
    this.claim = claim
    this.#leaseMs = leaseMs
    this.#clock = clock
    this.#extend = extend
    this.#untilMs = sinceMs + leaseMs
    this.#cancel = this.#plan()
  }

  /** Aborted with {@link Fenced} when the lane is not ours any more, or may not be. */
  get signal(): AbortSignal {
    return this.#lost.signal
  }

  /** The lease began anew, no earlier than at that time of the monotonic clock. */
  renewed(sinceMs: number): void {
    this.#untilMs = Math.max(this.#untilMs, sinceMs + this.#leaseMs)
  }

  /** It is no longer worked on. */
  over(): void {
    this.#isOver = true
    this.#cancel()
  }

  #plan(): CancelTimer {
    const leftMs = this.#untilMs - this.#clock.monotonicMs()
    return this.#clock.setTimer(Math.max(0, Math.min(leftMs, this.#leaseMs / 3)), () => void this.#tick(), {
      keepAlive: false,
    })
  }

  async #tick(): Promise<void> {
    const nowMs = this.#clock.monotonicMs()
    // A store that does not answer in time cannot be asked: whoever comes next may have the lane already.
    if (nowMs >= this.#untilMs) {
      this.#lose()
      return
    }
    this.#cancel = this.#plan()
    try {
      if (await this.#extend(this.claim)) this.renewed(nowMs)
      else this.#lose()
    } catch {
      // The next tick asks again, until the lease is over.
    }
  }

  #lose(): void {
    if (this.#isOver) return
    this.over()
    this.#lost.abort(new Fenced())
  }
}
