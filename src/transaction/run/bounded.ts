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
}

/** Waits for the work; rejects earlier when the bound is reached. The work goes on then: its end is heard of by nobody. */
export function bounded<Result>(bound: Bound, work: () => PromiseLike<Result>): Promise<Result> {
  const { clock, limitMs, expired, signal, ended } = bound
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
    const failed = (error: unknown): void => {
      ended?.()
      over()
      reject(error)
    }
    const done = (result: Result): void => {
      ended?.()
      over()
      resolve(result)
    }
    try {
      work().then(done, failed)
    } catch (error) {
      failed(error)
    }
  })
}

/** Whether there is something to wait for. */
export function isPromiseLike<Value>(value: Promise<Value> | Value): value is Promise<Value> {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === 'function'
}

/** The error of a transaction that ran out of its deadline. */
export function deadlinePassed(phase: string): RepriseError {
  return new RepriseError('DEADLINE_EXCEEDED', `The deadline passed while the transaction was ${phase}.`, {
    details: { phase },
  })
}
