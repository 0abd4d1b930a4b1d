// Lengths of time, and the deadlines that lie so far from now.
//
// A length is a number of milliseconds, or text such as '2s'. Decimals in text are exact, never floats. A number may
// have a fraction, since clocks and jitter give such numbers. Text is written by people, and a fraction of a
// millisecond in it is a mistake. A deadline is kept in monotonic time, so that setting the clock cannot move it.

import { RepriseError } from '../errors.js'
import { type Clock, systemClock } from './clock.js'

/** Milliseconds, seconds, minutes, hours, days of 24 hours. */
export type DurationUnit = 'ms' | 's' | 'm' | 'h' | 'd'

/** A length of time: a number of milliseconds, or a decimal number with a unit, such as `'1.5s'`. */
export type Duration = number | `${number}${DurationUnit}`

/** Why a duration was refused; found as `details.reason` of a `DURATION_INVALID` error. */
export type DurationRefusal =
  | 'fraction'
  | 'negative'
  | 'not-a-duration'
  | 'not-finite'
  | 'too-long'
  | 'too-short'
  | 'unknown-unit'

/** Limits for {@link durationMs}, in milliseconds, both inclusive, and what it is asked for. */
export interface DurationLimits {
  /** The shortest length accepted, in ms. Default 0. */
  readonly minMs?: number
  /** The longest length accepted, in ms. Default and upper bound: {@link maxDurationMs}. */
  readonly maxMs?: number
  /** The option that it was given as: a refusal names it, and has it as `details.option`. Default: none. */
  readonly option?: string
}

/** Ten years of 365.25 days (3,652.5 d), in ms: a longer duration is a mistake of units rather than a wish. */
export const maxDurationMs: number = 315_576_000_000

// Largest first, so that formatting finds the shortest text.
const unitMs: Readonly<Record<DurationUnit, number>> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 }

// Longer text is refused before any arithmetic: the longest sensible one has twelve digits, a point and ten more.
const maxTextLength = 40

const decimalWithUnit = /^(-?)(\d+)(?:\.(\d+))?(\p{L}*)$/u

/**
 * The duration in milliseconds: a number as it is, text as a whole number. Refuses with `DURATION_INVALID` what is
 * neither, or not between the limits; `details.reason` says why, as one of {@link DurationRefusal}.
 */
export function durationMs(duration: Duration, limits: DurationLimits = {}): number {
  const { minMs = 0, maxMs = maxDurationMs, option } = limits
  // Asked in this way round because NaN would make the comparisons below false, and so lift the limits silently.
  if (!(minMs >= 0 && minMs <= maxMs)) {
    throw new RepriseError('ARGUMENT_INVALID', 'The limits of a duration must satisfy 0 <= minMs <= maxMs.')
  }
  const longestMs = Math.min(maxMs, maxDurationMs)
  const ms = typeof duration === 'number' ? duration : parseMs(duration, option)
  if (!Number.isFinite(ms)) throw refusal(option, 'not-finite', 'be finite')
  if (ms < 0) throw refusal(option, 'negative', 'not be negative')
  if (ms < minMs) throw refusal(option, 'too-short', `be at least ${minMs} ms here`, { minMs })
  if (ms > longestMs) throw refusal(option, 'too-long', `be at most ${longestMs} ms here`, { maxMs: longestMs })
  return ms === 0 ? 0 : ms // never -0
}

/**
 * The shortest exact text of a whole number of milliseconds: `90000` gives `'90s'`. `durationMs` reads it back. Refuses
 * a fraction.
 */
export function formatDuration(ms: number): `${number}${DurationUnit}` {
  const whole = durationMs(ms)
  if (!Number.isInteger(whole)) throw fractional()
  for (const [unit, size] of Object.entries(unitMs) as [DurationUnit, number][]) {
    if (whole >= size && whole % size === 0) return `${whole / size}${unit}`
  }
  return `${whole}ms`
}

function parseMs(text: unknown, option: string | undefined): number {
  const match = typeof text === 'string' && text.length <= maxTextLength ? decimalWithUnit.exec(text) : null
  if (match === null) {
    throw refusal(option, 'not-a-duration', 'be a number of ms, or text of a decimal number and a unit')
  }
  const [, sign, whole = '', fraction = '', unit = ''] = match
  if (sign === '-') return -1 // refused as any negative number is
  if (!Object.hasOwn(unitMs, unit)) throw refusal(option, 'unknown-unit', 'end in one of the units ms, s, m, h, d')
  const scaled = BigInt(whole + fraction) * BigInt(unitMs[unit as DurationUnit])
  const divisor = 10n ** BigInt(fraction.length)
  // Rounded up, so that what lies just above the longest is seen to be too long.
  const ms = Number((scaled + divisor - 1n) / divisor)
  if (ms <= maxDurationMs && scaled % divisor !== 0n) throw fractional(option)
  return ms
}

function fractional(option?: string): RepriseError {
  return refusal(option, 'fraction', 'be a whole number of milliseconds where it is text')
}

function refusal(
  option: string | undefined,
  reason: DurationRefusal,
  demand: string,
  limits: Record<string, number> = {},
): RepriseError {
  const which = option === undefined ? '' : `The option ${option} is not valid. `
  // Where a limit is passed, the form was right.
  const right = Object.keys(limits).length > 0 ? '' : " Right are 1500 (in ms) and '1.5s'."
  const details = { reason, ...limits, ...(option !== undefined && { option }) }
  return new RepriseError('DURATION_INVALID', `${which}A duration must ${demand}.${right}`, { details })
}

/** A point in the monotonic time of this process. It means nothing to another process: send what remains instead. */
export interface Deadline {
  /** The point, in ms on the scale of {@link Clock.monotonicMs}. */
  readonly expiresAtMs: number
}

/**
 * The deadline that lies the given duration from now. Default clock: {@link systemClock}.
 *
 * @example
 * ```ts
 * import { deadlineAfter, remainingMs } from 'reprise/kernel'
 *
 * const deadline = deadlineAfter('1.5s')
 * console.log(remainingMs(deadline) <= 1500)
 * ```
 * ```text
 * true
 * ```
 */
export function deadlineAfter(duration: Duration, clock: Clock = systemClock): Deadline {
  return Object.freeze({ expiresAtMs: clock.monotonicMs() + durationMs(duration) })
}

/**
 * The milliseconds left until the deadline, with fractions; 0 once it has passed. Default clock: {@link systemClock}.
 */
export function remainingMs(deadline: Deadline, clock: Clock = systemClock): number {
  const { expiresAtMs } = deadline
  if (typeof expiresAtMs !== 'number' || Number.isNaN(expiresAtMs)) throw notADeadline()
  return Math.max(0, expiresAtMs - clock.monotonicMs())
}

/** The earlier of two deadlines, of which one may be absent: what is nested in another deadline can only shrink. */
export function earlier(a: Deadline, b: Deadline | undefined): Deadline
export function earlier(a: Deadline | undefined, b: Deadline): Deadline
export function earlier(a: Deadline | undefined, b: Deadline | undefined): Deadline | undefined
export function earlier(a: Deadline | undefined, b: Deadline | undefined): Deadline | undefined {
  if (a === undefined || b === undefined) return a ?? b
  const [left, right] = [a.expiresAtMs, b.expiresAtMs]
  if (typeof left !== 'number' || typeof right !== 'number') throw notADeadline()
  if (right < left) return b
  if (left <= right) return a
  throw notADeadline()
}

// NaN compares false with everything, and a deadline that never arrives would be the result.
function notADeadline(): RepriseError {
  return new RepriseError('ARGUMENT_INVALID', 'A deadline needs expiresAtMs, a number of ms of monotonic time.')
}
