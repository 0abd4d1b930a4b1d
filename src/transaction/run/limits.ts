// How long an attempt waits for its steps, and the errors of those that took too long.

import { type CancelTimer, type Clock, RepriseError, whenAborted } from '../../kernel/index.js'
import type { CallSettings } from './settings.js'

/**
 * The wait for the steps of one attempt. They come one after the other, so they share one timer and one listener to the
 * caller's signal: setting and clearing those for each step would be a good part of what a transaction costs beside its
 * statements. A timer that was set for an earlier step goes on to the limit of the one that is under way when it rings.
 */
export class StepLimits {
  /** When the work of the attempt has to end: what comes after it is kept to find out what became of COMMIT. */
  readonly workEndsAtMs: number
  /** Whether a step that was given up has not ended yet. ROLLBACK would have to wait for it. */
  underWay = false
  readonly #clock: Clock
  readonly #longestMs: number
  readonly #signal: AbortSignal | undefined
  readonly #stopListening: (() => void) | undefined
  #cancel: CancelTimer | undefined
  #ringsAtMs = 0
  #dueAtMs = 0
  #expired: (() => unknown) | undefined
  #giveUp: ((reason: unknown) => void) | undefined
  #heedsSignal = true
  #standsSinceMs: number | undefined
  readonly #reserveMs: number

  constructor(settings: Pick<CallSettings, 'clock' | 'deadline' | 'reserveMs' | 'bodyLimitMs' | 'signal'>) {
    const { clock, deadline, reserveMs, bodyLimitMs, signal } = settings
    this.#clock = clock
    this.#signal = signal
    this.#reserveMs = reserveMs
    this.workEndsAtMs = deadline.expiresAtMs - reserveMs
    // The timer is not set for later than the body may take, so that it need not be set again for the body.
    this.#longestMs = bodyLimitMs
    if (signal !== undefined) {
      this.#stopListening = whenAborted(signal, () => {
        if (this.#heedsSignal) this.#giveUp?.(signal.reason)
      })
    }
  }

  /** What is left for the work, in ms. */
  leftMs(): number {
    return Math.max(0, this.workEndsAtMs - this.#clock.monotonicMs())
  }

  /**
   * Waits for a step until it has ended, its time is over or the signal aborts. The step itself goes on then.
   *
   * @param expired Makes the error of a step that took too long.
   * @param heedsSignal Whether an abort ends the wait. Default true.
   */
  wait<Value>(
    step: PromiseLike<Value>,
    dueAtMs: number,
    expired: () => unknown,
    heedsSignal: boolean = true,
  ): Promise<Value> {
    return new Promise((resolve, reject) => {
      this.underWay = true
      this.#heedsSignal = heedsSignal
      this.#giveUp = reject
      this.#expired = expired
      this.#dueAtMs = dueAtMs
      // The step may have aborted it itself before there was anything to wait for.
      if (heedsSignal && this.#signal?.aborted) reject(this.#signal.reason)
      else if (this.#cancel === undefined || dueAtMs < this.#ringsAtMs) this.#setTimer()
      step.then(
        (value) => {
          this.underWay = false
          this.#giveUp = undefined
          resolve(value)
        },
        (error: unknown) => {
          this.underWay = false
          this.#giveUp = undefined
          reject(error)
        },
      )
    })
  }

  /**
   * What the step waits for is no time of its own, from now on until {@link goOn}: the deadline of the work alone ends
   * the wait.
   */
  stand(): void {
    this.#standsSinceMs ??= this.#clock.monotonicMs()
  }

  /** The step has its own time again: what is left of it. */
  goOn(): void {
    if (this.#standsSinceMs === undefined) return
    const stoodMs = this.#clock.monotonicMs() - this.#standsSinceMs
    this.#standsSinceMs = undefined
    this.#dueAtMs = Math.min(this.#dueAtMs + stoodMs, this.workEndsAtMs)
    if (this.#giveUp !== undefined && this.#dueAtMs < this.#ringsAtMs) this.#setTimer()
  }

  /** Ends the wait for the step that is under way, if there is one, with an error. */
  leave(error: unknown): void {
    this.#giveUp?.(error)
  }

  /** No further step comes. */
  end(): void {
    this.#giveUp = undefined
    this.#cancel?.()
    this.#stopListening?.()
  }

  #setTimer(): void {
    const nowMs = this.#clock.monotonicMs()
    const dueAtMs = this.#standsSinceMs === undefined ? this.#dueAtMs : this.workEndsAtMs
    const delayMs = Math.max(0, Math.min(dueAtMs - nowMs, this.#longestMs))
    this.#cancel?.()
    this.#ringsAtMs = nowMs + delayMs
    this.#cancel = this.#clock.setTimer(delayMs, this.#ring)
  }

  readonly #ring = (): void => {
    this.#cancel = undefined
    const giveUp = this.#giveUp
    if (giveUp === undefined) return
    const stands = this.#standsSinceMs !== undefined
    if ((stands ? this.workEndsAtMs : this.#dueAtMs) > this.#clock.monotonicMs()) {
      this.#setTimer()
      return
    }
    this.#giveUp = undefined
    giveUp(stands ? deadlinePassed('beginning', this.#reserveMs) : this.#expired?.())
  }
}

/** What a transaction does between BEGIN and COMMIT, for the error of its deadline. */
export function workOf({ keyed }: Pick<CallSettings, 'keyed'>, claimed: boolean): string {
  return keyed === undefined || claimed ? 'in its body' : 'waiting for its key'
}

/**
 * The error of a transaction that ran out of its deadline.
 *
 * @param reserveMs What was kept of the deadline to find out what became of COMMIT, in ms, so that a caller does not
 *   wonder why the transaction ended early. Default 0.
 */
export function deadlinePassed(phase: string, reserveMs = 0, ...cause: [unknown?]): RepriseError {
  const reserve = Math.ceil(reserveMs)
  const what =
    reserve === 0
      ? 'The deadline'
      : `The deadline, less the ${reserve} ms that are kept to find out what became of COMMIT,`
  const details = reserve === 0 ? { phase } : { phase, reserveMs: reserve }
  return new RepriseError('DEADLINE_EXCEEDED', `${what} passed while the transaction was ${phase}.`, {
    details,
    ...(cause.length === 0 ? {} : { cause: cause[0] }),
  })
}

/**
 * The error of a transaction whose deadline leaves no more than the reserve: it has not passed, but nothing could be
 * done in time.
 */
export function deadlineTooShort(leftMs: number, reserveMs: number): RepriseError {
  const [left, reserve] = [Math.floor(leftMs), Math.ceil(reserveMs)]
  const message =
    `The deadline leaves ${left} ms, and the last ${reserve} ms are kept to find out what became of COMMIT: nothing was begun. ` +
    `Give it more than ${reserve} ms, or readOnly where nothing is written.`
  return new RepriseError('DEADLINE_EXCEEDED', message, {
    details: { phase: 'not yet begun', leftMs: left, reserveMs: reserve },
  })
}

/** The error of a body that took longer than one run of it may. */
export function bodyTooLong(limitMs: number): RepriseError {
  return new RepriseError('BODY_TIME_LIMIT', `The body took longer than ${limitMs} ms.`, { details: { limitMs } })
}

/** The error of a connection that did not answer BEGIN: it may be dead, and nobody told us. */
export function beginUnanswered(waitedMs: number): RepriseError {
  const waitMs = Math.ceil(waitedMs)
  return new RepriseError('CONNECT_TIMEOUT', `BEGIN was not answered within ${waitMs} ms.`, { details: { waitMs } })
}
