// Waiting for a step of a transaction no longer than it may take.

import { type CancelTimer, type Clock, RepriseError, whenAborted } from '../../kernel/index.js'

/** What may end a wait. */
export interface Bound {
  /** Time. */
  readonly clock: Pick<Clock, 'setTimer'>
  /** How long, in ms. */
  readonly limitMs: number
  /** The error when it took longer. */
  readonly expired: () => unknown
  /** Ends the wait with its reason. */
  readonly signal?: AbortSignal | undefined
  /** Called when the work itself has ended, also where nobody waits for it any more. */
  readonly ended?: (() => void) | undefined
  /** Calls what is to be done when the work has ended, `ended` first; it may take its time. Default: at once. */
  readonly after?: ((end: () => void) => void) | undefined
}

/** Waits for the work; rejects earlier when the bound is reached. The work goes on then: its end is heard of by nobody. */
export function bounded<Result>(bound: Bound, work: () => PromiseLike<Result>): Promise<Result> {
  const { clock, limitMs, expired, signal, ended, after = atOnce } = bound
  if (signal?.aborted) return Promise.reject(signal.reason)
  return new Promise((resolve, reject) => {
    let cancel: CancelTimer | undefined
    const over = (): void => {
      cancel?.()
      leave?.()
    }
    const onAbort = (): void => {
      over()
      reject(signal?.reason)
    }
    const leave = signal === undefined ? undefined : whenAborted(signal, onAbort)
    cancel = clock.setTimer(Math.max(0, limitMs), () => {
      over()
      reject(expired())
    })
    const failed = (error: unknown): void =>
      after(() => {
        ended?.()
        over()
        reject(error)
      })
    const done = (result: Result): void =>
      after(() => {
        ended?.()
        over()
        resolve(result)
      })
    try {
      work().then(done, failed)
    } catch (error) {
      failed(error)
    }
  })
}

const atOnce = (end: () => void): void => end()

/**
 * The error of a transaction that ran out of its deadline.
 *
 * @param reserveMs What was kept of the deadline to find out what became of COMMIT, in ms, so that a caller does not wonder why it ended early. Default 0.
 */
export function deadlinePassed(phase: string, reserveMs = 0): RepriseError {
  const reserve = Math.ceil(reserveMs)
  const what =
    reserve === 0
      ? 'The deadline'
      : `The deadline, less the ${reserve} ms that are kept to find out what became of COMMIT,`
  const details = reserve === 0 ? { phase } : { phase, reserveMs: reserve }
  return new RepriseError('DEADLINE_EXCEEDED', `${what} passed while the transaction was ${phase}.`, { details })
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

/** The error of a transaction whose deadline leaves no more than the reserve: it has not passed, and nothing could be done in time all the same. */
export function deadlineTooShort(leftMs: number, reserveMs: number): RepriseError {
  const [left, reserve] = [Math.floor(leftMs), Math.ceil(reserveMs)]
  const message =
    `The deadline leaves ${left} ms, and the last ${reserve} ms are kept to find out what became of COMMIT: nothing was begun. ` +
    `Give it more than ${reserve} ms, or readOnly where nothing is written.`
  return new RepriseError('DEADLINE_EXCEEDED', message, {
    details: { phase: 'not yet begun', leftMs: left, reserveMs: reserve },
  })
}
