// A point in time by which work must be done. It is kept in monotonic time, so that setting the clock cannot move it.

import { RepriseError } from '../errors.js'
import { type Clock, systemClock } from './clock.js'
import { type Duration, durationMs } from './duration.js'

/** A point in the monotonic time of this process. It means nothing to another process: send what remains instead. */
export interface Deadline {
  /** The point, in ms on the scale of {@link Clock.monotonicMs}. */
  readonly expiresAtMs: number
}

/** The deadline that lies the given duration from now. Default clock: {@link systemClock}. */
export function deadlineAfter(duration: Duration, clock: Clock = systemClock): Deadline {
  return Object.freeze({ expiresAtMs: clock.monotonicMs() + durationMs(duration) })
}

/** The milliseconds left until the deadline, with fractions; 0 once it has passed. Default clock: {@link systemClock}. */
export function remainingMs(deadline: Deadline, clock: Clock = systemClock): number {
  return Math.max(0, pointOf(deadline) - clock.monotonicMs())
}

/** The earlier of two deadlines, of which one may be absent: what is nested in another deadline can only shrink. */
export function earlier(a: Deadline, b: Deadline | undefined): Deadline
export function earlier(a: Deadline | undefined, b: Deadline): Deadline
export function earlier(a: Deadline | undefined, b: Deadline | undefined): Deadline | undefined
export function earlier(a: Deadline | undefined, b: Deadline | undefined): Deadline | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return pointOf(b) < pointOf(a) ? b : a
}

// NaN compares false with everything, and a deadline that never arrives would be the result.
function pointOf(deadline: Deadline): number {
  const { expiresAtMs } = deadline
  if (typeof expiresAtMs === 'number' && !Number.isNaN(expiresAtMs)) return expiresAtMs
  throw new RepriseError('ARGUMENT_INVALID', 'A deadline needs expiresAtMs, a number of ms of monotonic time.')
}
