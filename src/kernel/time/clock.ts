// Time, as an argument. Monotonic time measures, wall time labels; the two are never compared with each other.

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
   * Calls `fire` once, `delayMs` from now by the monotonic clock or somewhat later, and never before this call has returned.
   * Refuses a delay that is not finite or below 0 with `ARGUMENT_INVALID`.
   */
  setTimer(delayMs: number, fire: () => void, options?: TimerOptions): CancelTimer
}

/** What a clock stands on. Tests put a host of their own in place of the runtime's. */
export interface ClockHost {
  /** Milliseconds that never go back. */
  monotonicMs(): number
  /** Milliseconds since 1970-01-01T00:00Z. */
  wallMs(): number
  /** Calls `fire` after a whole number of ms up to 2^31 - 1, perhaps a little early; gives a handle. */
  setTimeout(fire: () => void, delayMs: number): unknown
  /** Takes back what gave the handle. */
  clearTimeout(handle: unknown): void
}

// Runtimes keep a timer's delay in 32 bits, and a longer one fires at once; longer waits are made of several.
const maxHostDelayMs = 2 ** 31 - 1

/** A clock on the given host. */
export function clockOn(host: ClockHost): Clock {
  return {
    monotonicMs: () => host.monotonicMs(),
    wallMs: () => host.wallMs(),
    setTimer(delayMs, fire, options = {}) {
      checkDelay(delayMs)
      const dueMs = host.monotonicMs() + delayMs
      let handle: unknown
      let open = true
      const arm = (remainingMs: number): void => {
        // Hosts cut fractions off, so a fraction asks for the next whole millisecond.
        handle = host.setTimeout(ring, Math.min(Math.ceil(remainingMs), maxHostDelayMs))
        if (options.keepAlive === false) unref(handle)
      }
      const ring = (): void => {
        if (!open) return
        // Node counts in whole milliseconds and may ring up to one too early.
        const remainingMs = dueMs - host.monotonicMs()
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
        host.clearTimeout(handle)
      }
    },
  }
}

/**
 * The runtime's clock. A delay longer than the runtime's own limit of 2^31 - 1 ms (24.8 days) fires at the right time too,
 * and no timer fires before its delay has passed by the monotonic clock.
 */
export const systemClock: Clock = clockOn({
  // Looked up at each call, so that fake timers installed later are seen.
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  setTimeout: (fire, delayMs) => setTimeout(fire, delayMs),
  clearTimeout: (handle) => clearTimeout(handle as ReturnType<typeof setTimeout>),
})

function checkDelay(delayMs: number): void {
  if (Number.isFinite(delayMs) && delayMs >= 0) return
  throw new RepriseError('ARGUMENT_INVALID', 'The delay of a timer must be a finite number of ms, at least 0.')
}

// In browsers a timer is a number and has no say in the life of a process.
function unref(handle: unknown): void {
  const timer = handle as { readonly unref?: () => void } | undefined
  timer?.unref?.()
}
