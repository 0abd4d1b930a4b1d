// How long a call waits for an attempt: until its time-out, the deadline of the call, or the caller's abort.
//
// The attempts of a policy usually end in the order in which they began, since their time-outs are equally long. So one
// timer, set for the oldest, serves all that are out; setting and clearing one for each attempt would cost twice the
// rest of a call. What ends before one that began earlier gets a timer of its own.

import {
  afterMicrotasks,
  type CancelTimer,
  type Clock,
  type Deadline,
  RepriseError,
  whenAborted,
} from '../../kernel/index.js'

/** The call that waits. */
export interface LimitedCall {
  readonly deadline: Deadline | undefined
  readonly signal: AbortSignal | undefined
  /** The error of what is still out at the deadline, the same one for all. */
  deadlineError(): unknown
}

/**
 * The wait for one attempt, from its beginning until {@link Wait.end}. Its place in the list belongs to {@link
 * Timeouts}.
 */
export class Wait {
  /** When it is over, in monotonic ms; Infinity if no time limits it. */
  dueMs: number = Number.POSITIVE_INFINITY
  older: Wait | undefined
  newer: Wait | undefined
  /** Takes its own timer back, where it has one. */
  cancel: CancelTimer | undefined
  readonly #timeouts: Timeouts
  readonly #call: LimitedCall
  readonly #timeoutMs: number | undefined
  readonly #giveUp: (reason: unknown) => void
  readonly #leaveSignal: (() => void) | undefined
  #isOut = true

  /** @param giveUp Called with the reason when the wait is over before the attempt has ended. */
  constructor(timeouts: Timeouts, call: LimitedCall, timeoutMs: number | undefined, giveUp: (reason: unknown) => void) {
    this.#timeouts = timeouts
    this.#call = call
    this.#timeoutMs = timeoutMs
    this.#giveUp = giveUp
    const { deadline, signal } = call
    if (timeoutMs !== undefined) this.dueMs = timeouts.clock.monotonicMs() + timeoutMs
    if (deadline !== undefined) this.dueMs = Math.min(this.dueMs, deadline.expiresAtMs)
    if (this.dueMs !== Number.POSITIVE_INFINITY) timeouts.enter(this)
    if (signal !== undefined) this.#leaveSignal = whenAborted(signal, () => this.#end(signal.reason))
  }

  /** The attempt has ended. Answers whether somebody still waits for it. */
  end(): boolean {
    if (!this.#isOut) return false
    this.release()
    this.#isOut = false
    return true
  }

  /** Lets go of timer and signal. What the attempt brings later still counts. */
  release(): void {
    if (this.dueMs !== Number.POSITIVE_INFINITY) this.#timeouts.leave(this)
    this.dueMs = Number.POSITIVE_INFINITY
    this.#leaveSignal?.()
  }

  /** Its time is over. */
  expired(): void {
    const { deadline } = this.#call
    const isDeadline = this.#timeoutMs === undefined || this.dueMs === deadline?.expiresAtMs
    this.#end(isDeadline ? this.#call.deadlineError() : timedOut('The attempt', this.#timeoutMs))
  }

  #end(reason: unknown): void {
    if (this.end()) this.#giveUp(reason)
  }
}

/** The waits of one policy that end at a point in time. */
export class Timeouts {
  readonly clock: Clock
  #oldest: Wait | undefined
  #newest: Wait | undefined
  #cancel: CancelTimer | undefined
  #timerDueMs = 0
  #restPlanned = false

  constructor(clock: Clock) {
    this.clock = clock
  }

  enter(wait: Wait): void {
    const newest = this.#newest
    if (newest !== undefined && newest.dueMs > wait.dueMs) {
      wait.cancel = this.#timer(wait.dueMs, () => wait.expired())
      return
    }
    wait.older = newest
    if (newest === undefined) this.#oldest = wait
    else newest.newer = wait
    this.#newest = wait
    // A timer that is left from earlier waits rings too early at worst, and is then set anew.
    if (this.#cancel === undefined || wait.dueMs < this.#timerDueMs) this.#setTimer(wait.dueMs)
  }

  leave(wait: Wait): void {
    if (wait.cancel !== undefined) {
      wait.cancel()
      return
    }
    const { older, newer } = wait
    if (older === undefined) this.#oldest = newer
    else older.newer = newer
    if (newer === undefined) this.#newest = older
    else newer.older = older
    wait.older = undefined
    wait.newer = undefined
    // A timer keeps the process alive, so it goes when nobody is out; but after the microtasks at hand, so that calls
    // in a row share it.
    if (this.#oldest !== undefined || this.#restPlanned) return
    this.#restPlanned = true
    afterMicrotasks(this.#rest)
  }

  #timer(dueMs: number, ring: () => void): CancelTimer {
    return this.clock.setTimer(Math.max(0, dueMs - this.clock.monotonicMs()), ring)
  }

  #setTimer(dueMs: number): void {
    this.#cancel?.()
    this.#timerDueMs = dueMs
    this.#cancel = this.#timer(dueMs, this.#ring)
  }

  readonly #rest = (): void => {
    this.#restPlanned = false
    if (this.#oldest !== undefined) return
    this.#cancel?.()
    this.#cancel = undefined
  }

  readonly #ring = (): void => {
    this.#cancel = undefined
    const nowMs = this.clock.monotonicMs()
    for (let oldest = this.#oldest; oldest !== undefined; oldest = this.#oldest) {
      if (oldest.dueMs > nowMs) {
        this.#setTimer(oldest.dueMs)
        return
      }
      oldest.expired()
    }
  }
}

/** The error of a call whose deadline passed. */
export function deadlineExceeded(): RepriseError {
  return new RepriseError('DEADLINE_EXCEEDED', 'The deadline passed.')
}

/** The error of what took too long. */
export function timedOut(what: string, timeoutMs: number): RepriseError {
  return new RepriseError('ATTEMPT_TIMEOUT', `${what} took longer than ${timeoutMs} ms.`, { details: { timeoutMs } })
}
