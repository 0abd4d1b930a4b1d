// Waiting with an end: for a time, for a signal, or for work that may take too long. Whatever ends a wait, neither
// timer nor listener is left behind.

import { RepriseError } from '../errors.js'
import { type CancelTimer, type Clock, systemClock, type TimerOptions } from './clock.js'
import { type Duration, durationMs } from './duration.js'

/** What may end a wait early. Without a limit and a signal, it lasts until somebody settles it. */
export interface WaitLimits {
  /** The clock that measures `limitMs`. Default {@link systemClock}. */
  readonly clock?: Pick<Clock, 'setTimer'> | undefined
  /** The longest wait, in ms; below 0 counts as 0. Default: no limit. */
  readonly limitMs?: number | undefined
  /** Ends the wait: the promise is rejected with the signal's reason. Default: none. */
  readonly signal?: AbortSignal | undefined
  /** Makes the error for a wait that reached `limitMs`. Default: a `DEADLINE_EXCEEDED` error. */
  readonly expired?: (() => unknown) | undefined
}

/** Settles a wait. The result is false where the wait had ended before: then nothing happens. */
export type Settle<Value> = (value: Value) => boolean

/**
 * A promise that `start` settles, unless a limit comes first. `start` is called once the timer and the listener are in
 * place; if it throws, the promise is rejected. It may return a clean-up, which is called exactly once when the wait
 * ends, in whatever way. Where the signal has aborted already, `start` is not called. What is no signal is refused with
 * `ARGUMENT_INVALID`.
 */
export function waitFor<Value>(
  limits: WaitLimits,
  // biome-ignore lint/suspicious/noConfusingVoidType: most callers have nothing to clean up and return nothing.
  start: (resolve: Settle<Value>, reject: Settle<unknown>) => (() => void) | void,
): Promise<Value> {
  return new Promise((fulfil, refuse) => {
    const { limitMs, signal } = limits
    if (signal !== undefined) {
      demandSignal(signal)
      if (signal.aborted) {
        refuse(signal.reason)
        return
      }
    }
    let open = true
    let cancel: CancelTimer | undefined
    let leave: (() => void) | undefined
    // biome-ignore lint/suspicious/noConfusingVoidType: as above.
    let cleanUp: (() => void) | undefined | void
    const end = (): boolean => {
      if (!open) return false
      open = false
      cancel?.()
      leave?.()
      cleanUp?.()
      return true
    }
    const resolve = (value: Value): boolean => {
      if (!end()) return false
      fulfil(value)
      return true
    }
    const reject = (reason: unknown): boolean => {
      if (!end()) return false
      refuse(reason)
      return true
    }
    if (signal !== undefined) leave = whenAborted(signal, () => reject(signal.reason))
    try {
      if (limitMs !== undefined) {
        const expire = (): unknown => reject((limits.expired ?? tookTooLong)())
        cancel = (limits.clock ?? systemClock).setTimer(Math.max(0, limitMs), expire)
      }
      cleanUp = start(resolve, reject)
    } catch (error) {
      reject(error)
    }
    // Settled while it was being started: there was nothing to call yet.
    if (!open) cleanUp?.()
  })
}

/**
 * Waits for work no longer than the limits allow. The work itself goes on when the wait is given up: `late` gets the
 * value it then still gives, so that it can be given back; a late failure is dropped.
 */
export function inTime<Value>(
  limits: WaitLimits,
  work: PromiseLike<Value>,
  late?: (value: Value) => void,
): Promise<Value> {
  if (limits.signal === undefined && limits.limitMs === undefined) return Promise.resolve(work)
  // Nothing is waited for where the signal has aborted already: the work may have begun before.
  if (limits.signal?.aborted === true) void Promise.resolve(work).then(late, () => undefined)
  return waitFor(limits, (resolve, reject) => {
    const settle = (value: Value): void => {
      if (!resolve(value)) late?.(value)
    }
    work.then(settle, reject)
  })
}

/** How to wait. */
export interface SleepOptions extends TimerOptions {
  /** The clock to wait by. Default {@link systemClock}. */
  readonly clock?: Clock
  /** Ends the wait: the promise is rejected with the signal's reason. Default: none. */
  readonly signal?: AbortSignal
}

/**
 * Waits; always at least until a later turn, also for a duration of 0. Rejects with `signal.reason` as soon as the
 * signal aborts (already aborted: no timer is set), and with `DURATION_INVALID` for what is not a duration.
 */
export function sleep(duration: Duration, options: SleepOptions = {}): Promise<void> {
  const { clock = systemClock, signal, keepAlive = true } = options
  return waitFor<void>({ signal }, (resolve) => clock.setTimer(durationMs(duration), () => resolve(), { keepAlive }))
}

const listenersOf = new WeakMap<AbortSignal, Set<() => void>>()

/**
 * Calls `listener` once, when the signal aborts. The function it returns ends that. All who wait for one signal share
 * one listener, which the last one removes: Node warns of more than ten listeners on one signal, and a service may have
 * hundreds of calls under one.
 */
export function whenAborted(signal: AbortSignal, listener: () => void): () => void {
  let listeners = listenersOf.get(signal)
  if (listeners === undefined) {
    listeners = new Set()
    listenersOf.set(signal, listeners)
  }
  const all = listeners
  // Each wait is an entry of its own, also where two share a function.
  const entry = (): void => listener()
  if (all.size === 0) signal.addEventListener('abort', tellAll)
  all.add(entry)
  return () => {
    if (all.delete(entry) && all.size === 0) signal.removeEventListener('abort', tellAll)
  }
}

function tellAll(this: AbortSignal): void {
  this.removeEventListener('abort', tellAll)
  const listeners = listenersOf.get(this)
  listenersOf.delete(this)
  for (const entry of listeners ?? []) entry()
}

/**
 * Whether a value is a promise, or can be waited for like one. What need not be waited for is not: each promise costs a
 * turn of the microtask queue.
 */
export function isPromiseLike<Value>(value: Value | PromiseLike<Value>): value is PromiseLike<Value> {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === 'function'
}

/** Refuses what is no signal with `ARGUMENT_INVALID`. */
export function demandSignal(signal: unknown): asserts signal is AbortSignal {
  if (typeof (signal as AbortSignal | null)?.addEventListener === 'function') return
  throw new RepriseError('ARGUMENT_INVALID', 'The signal is not an AbortSignal.', { details: { option: 'signal' } })
}

function tookTooLong(): RepriseError {
  return new RepriseError('DEADLINE_EXCEEDED', 'The wait took longer than it may.')
}
