// A clock for tests: time stands still until the test moves it, and timers fire in order without any waiting.

import {
  type CancelTimer,
  type Clock,
  type Duration,
  durationMs,
  eventLoopTurn,
  RepriseError,
} from '../kernel/index.js'

/** Where a manual clock begins, and its limit. */
export interface ManualClockOptions {
  /** The wall time at the start, in ms since 1970. Default 2025-01-01T00:00Z. */
  readonly wallMs?: number
  /** The monotonic time at the start, in ms. Default 0. */
  readonly monotonicMs?: number
  /** How many timers one call may fire before it counts as an endless loop. Default 100,000. */
  readonly maxFires?: number
}

/** A clock that a test moves by hand. */
export interface ManualClock extends Clock {
  /**
   * Moves time forward and fires the timers that are due on the way, each at its own time; timers of the same time fire
   * in the order in which they were set. Code that waits can run before and after each timer, so it can sleep again
   * within the same span. Calls made at the same time run one after another. Rejects with what a timer's function
   * throws, and with `ARGUMENT_INVALID` after `maxFires` timers.
   */
  advance(duration: Duration): Promise<void>
  /**
   * Moves time forward to the earliest pending timer and fires all timers of that time. Returns false, without moving
   * time, if no timer is pending.
   */
  runToNext(): Promise<boolean>
  /** Sets the wall clock, forward or back. Monotonic time and timers are not affected. */
  setWallMs(wallMs: number): void
  /** How many timers are set and have neither fired nor been cancelled. */
  readonly pendingTimers: number
}

interface Timer {
  readonly dueMs: number
  readonly fire: () => void
}

const defaultWallMs = 1_735_689_600_000

/**
 * A new {@link ManualClock}.
 *
 * @example
 * ```ts
 * import { readOnly, retryPolicy } from 'reprise/retry'
 * import { manualClock } from 'reprise/testing'
 *
 * const clock = manualClock()
 * const policy = retryPolicy({ attempts: 3, clock })
 * const answer = policy.run(readOnly(), () => fetch('https://api.example.com/rates'))
 * await clock.advance('30s') // the pauses between the attempts are over at once
 * console.log((await answer).status, clock.monotonicMs())
 * ```
 */
export function manualClock(options: ManualClockOptions = {}): ManualClock {
  const maxFires = options.maxFires ?? 100_000
  if (!Number.isInteger(maxFires) || maxFires < 1) {
    throw new RepriseError('ARGUMENT_INVALID', 'maxFires must be a whole number of at least 1.')
  }
  let monotonicMs = finite(options.monotonicMs ?? 0)
  // Wall time is kept as its distance from monotonic time, so that both move together.
  let wallOffsetMs = finite(options.wallMs ?? defaultWallMs) - monotonicMs
  let queue: Promise<unknown> = Promise.resolve()
  const timers: Timer[] = [] // in the order in which they fire

  const fireUntil = async (targetMs: number): Promise<void> => {
    for (let fires = 0; ; fires += 1) {
      await eventLoopTurn()
      const next = timers[0]
      if (next === undefined || next.dueMs > targetMs) break
      if (fires === maxFires) throw endless(maxFires)
      timers.shift()
      monotonicMs = Math.max(monotonicMs, next.dueMs)
      next.fire()
    }
    monotonicMs = Math.max(monotonicMs, targetMs)
  }
  const inOrder = <Result>(work: () => Promise<Result>): Promise<Result> => {
    const result = queue.then(work)
    queue = result.catch(() => undefined)
    return result
  }

  return {
    monotonicMs: () => monotonicMs,
    wallMs: () => wallOffsetMs + monotonicMs,
    setTimer(delayMs, fire): CancelTimer {
      if (!(finite(delayMs) >= 0))
        throw new RepriseError('ARGUMENT_INVALID', 'The delay of a timer must be at least 0.')
      const timer: Timer = { dueMs: monotonicMs + delayMs, fire }
      timers.splice(placeOf(timers, timer.dueMs), 0, timer)
      return () => {
        const index = timers.indexOf(timer)
        if (index >= 0) timers.splice(index, 1)
      }
    },
    async advance(duration) {
      const ms = durationMs(duration)
      await inOrder(() => fireUntil(monotonicMs + ms))
    },
    runToNext: () =>
      inOrder(async () => {
        await eventLoopTurn()
        const next = timers[0]
        if (next !== undefined) await fireUntil(next.dueMs)
        return next !== undefined
      }),
    setWallMs(wallMs) {
      wallOffsetMs = finite(wallMs) - monotonicMs
    },
    get pendingTimers() {
      return timers.length
    },
  }
}

// The index after all timers that are due at the same time or earlier, by binary search.
function placeOf(timers: readonly Timer[], dueMs: number): number {
  let low = 0
  let high = timers.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((timers[middle] as Timer).dueMs <= dueMs) low = middle + 1
    else high = middle
  }
  return low
}

function finite(ms: number): number {
  if (Number.isFinite(ms)) return ms
  throw new RepriseError('ARGUMENT_INVALID', 'A manual clock needs finite numbers of ms.')
}

function endless(maxFires: number): RepriseError {
  const message = `More than ${maxFires} timers fired in one call; code that sets timers without end would never stop.`
  return new RepriseError('ARGUMENT_INVALID', message, { details: { maxFires } })
}
