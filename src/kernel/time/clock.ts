// Time, as an argument. Monotonic time measures, wall time labels; the two are never compared with each other.
// And the turns of the event loop, which no clock measures.

import { RepriseError } from '../errors.js'

/** How a timer behaves beside its delay. */
export interface TimerOptions {
  /** Whether a pending timer keeps the process alive. Default true. Without meaning in a browser. */
  readonly keepAlive?: boolean
}

/** Takes a timer back. Once it has been called, the timer's function does not run; calling it again does nothing. */
export type CancelTimer = () => void

/** A source of time and timers. */
export interface Clock {
  /** Milliseconds since some fixed point of this process, with fractions; never goes back. For measuring. */
  monotonicMs(): number
  /** Milliseconds since 1970-01-01T00:00Z; may jump when the system's clock is set. For labels. */
  wallMs(): number
  /**
   * Calls `fire` once, `delayMs` from now by the monotonic clock or somewhat later, and never before this call has
   * returned. Refuses a delay that is not finite or below 0 with `ARGUMENT_INVALID`.
   */
  setTimer(delayMs: number, fire: () => void, options?: TimerOptions): CancelTimer
}

/** What a clock stands on. Tests put a host of their own in place of the runtime. */
export interface ClockHost {
  /** Milliseconds that never go back. */
  readonly monotonicMs: () => number
  /** Milliseconds since 1970-01-01T00:00Z. */
  readonly wallMs: () => number
  /** The global timers, looked up at each call, so that fake ones installed later are seen. */
  readonly timers: {
    /** Calls `fire` after a whole number of ms up to 2^31 - 1, perhaps a little early; gives a handle. */
    setTimeout(fire: () => void, delayMs: number): unknown
    clearTimeout(handle: unknown): void
  }
}

// Runtimes keep a timer's delay in 32 bits, and a longer one fires at once; longer waits are made of several.
const maxHostDelayMs = 2 ** 31 - 1

/** A clock on the given host. */
export function clockOn({ monotonicMs, wallMs, timers }: ClockHost): Clock {
  return {
    monotonicMs,
    wallMs,
    setTimer(delayMs, fire, options) {
      if (!(Number.isFinite(delayMs) && delayMs >= 0)) {
        throw new RepriseError('ARGUMENT_INVALID', 'The delay of a timer must be a finite number of ms, at least 0.')
      }
      const dueMs = monotonicMs() + delayMs
      let handle: unknown
      let open = true
      const arm = (remainingMs: number): void => {
        // Hosts cut fractions off, so a fraction asks for the next whole millisecond.
        handle = timers.setTimeout(ring, Math.min(Math.ceil(remainingMs), maxHostDelayMs))
        // In browsers a timer is a number and has no say in the life of a process.
        if (options?.keepAlive === false) (handle as { readonly unref?: () => void } | undefined)?.unref?.()
      }
      const ring = (): void => {
        if (!open) return
        // Node counts in whole milliseconds and may ring up to one too early.
        const remainingMs = dueMs - monotonicMs()
        if (remainingMs > 0) {
          arm(remainingMs)
          return
        }
        open = false
        fire()
      }
      arm(delayMs)
      return () => {
        if (!open) return
        open = false
        timers.clearTimeout(handle)
      }
    },
  }
}

/**
 * The runtime's clock. A delay longer than the runtime's own limit of 2^31 - 1 ms (24.8 days) fires at the right time
 * too, and no timer fires before its delay has passed by the monotonic clock.
 */
export const systemClock: Clock = clockOn({
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  timers: globalThis,
})

// Taken at import, so that fake timers which a test installs later do not stop those who wait for a turn.
const immediately: ((work: () => void) => unknown) | undefined = globalThis.setImmediate

/**
 * Waits for one whole turn of the event loop, by the runtime's own means and not by any clock: the shortest wait after
 * which all promises that could settle by themselves have done so.
 */
export function eventLoopTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof immediately === 'function') {
      immediately(resolve)
      return
    }
    // Browsers: a message is the shortest way to a later turn.
    const { port1, port2 } = new MessageChannel()
    const onmessage = (): void => {
      port1.close()
      resolve()
    }
    Object.assign(port1, { onmessage })
    port2.postMessage(undefined)
  })
}

/**
 * Calls `work` once the microtasks at hand are through, and before timers and input: for tidying up that calls in a row
 * can share.
 */
export function afterMicrotasks(work: () => void): void {
  const host = (globalThis as { readonly process?: { readonly nextTick?: (work: () => void) => void } }).process
  if (typeof host?.nextTick === 'function') host.nextTick(work)
  else queueMicrotask(work)
}
