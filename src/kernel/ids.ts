// Names that nobody else will pick: UUIDs of version 7, which sort by the time of their making, and of version 4.

import { RepriseError } from './errors.js'
import { type Random, systemRandom } from './random.js'
import { type Clock, systemClock } from './time/clock.js'

/** Gives a new id at each call. */
export type IdSource = () => string

/** Where a source of UUIDs takes time and chance from. */
export interface IdSourceOptions {
  /** Its wall time is written into the ids. Default {@link systemClock}. */
  readonly clock?: Clock
  /** Fills the rest of the bits. Default {@link systemRandom}. */
  readonly random?: Random
}

/** The part of a version 7 UUID that decides its place in the order. */
export interface Stamp {
  /** Wall time in whole ms since 1970, 48 bits. */
  readonly timeMs: number
  /** Counts within one millisecond, 32 bits. */
  readonly counter: number
}

// Written out: a bundler leaves out a plain number that nobody uses, and not a sum.
const maxTimeMs = 0xffff_ffff_ffff
const maxCounter = 0xffff_ffff

// Clocks are corrected by little; a step of more than this was set by hand, and ids should tell that time.
const maxStepBackMs = 10_000

const hexOfByte: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
const uuidv7Shape = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i

/**
 * A source of UUIDs of version 7 (RFC 9562 section 5.7), each greater than the one before it, also as text.
 *
 * Within a millisecond a counter of 32 bits grows by one (section 6.2 method 1, fixed-length dedicated counter). It
 * fills `rand_a` and the upper 20 bits of `rand_b`, and each millisecond starts it at random with its highest bit
 * clear; the 42 bits below are random in every id. A counter that runs over borrows the next millisecond. A wall clock
 * that steps back by up to 10 s is ridden out at the last time used; after a longer step the ids tell the new time, and
 * for that once the order is broken.
 */
export function uuidv7Source(options: IdSourceOptions = {}): IdSource {
  const { clock = systemClock, random = systemRandom } = options
  const bytes = new Uint8Array(16)
  const view = new DataView(bytes.buffer)
  let last: Stamp | undefined
  return () => {
    random.fill(bytes)
    last = nextStamp(last, clock.wallMs(), view.getUint32(0) >>> 1)
    const { timeMs, counter } = last
    view.setUint32(0, Math.floor(timeMs / 0x1_0000))
    view.setUint16(4, timeMs % 0x1_0000)
    view.setUint16(6, 0x7000 | (counter >>> 20))
    // Variant 10, then the low 20 bits of the counter; the lowest 10 bits of this word stay random.
    view.setUint32(8, (0x8000_0000 | ((counter & 0xf_ffff) << 10) | (view.getUint32(8) & 0x3ff)) >>> 0)
    return uuidText(bytes)
  }
}

/**
 * The stamp that follows `previous` when the wall clock shows `wallMs`; `seed` is where a new millisecond begins to
 * count.
 */
export function nextStamp(previous: Stamp | undefined, wallMs: number, seed: number): Stamp {
  const nowMs = Math.floor(wallMs)
  if (!(nowMs >= 0 && nowMs <= maxTimeMs)) throw timeOutOfRange()
  if (previous === undefined || nowMs > previous.timeMs || previous.timeMs - nowMs > maxStepBackMs) {
    return { timeMs: nowMs, counter: seed }
  }
  if (previous.counter < maxCounter) return { timeMs: previous.timeMs, counter: previous.counter + 1 }
  if (previous.timeMs === maxTimeMs) throw timeOutOfRange()
  return { timeMs: previous.timeMs + 1, counter: seed }
}

let processSource: IdSource | undefined

/** A UUID of version 7 from the one source of this process; see {@link uuidv7Source}. */
export function uuidv7(): string {
  processSource ??= uuidv7Source()
  return processSource()
}

/** A UUID of version 4 (RFC 9562 section 5.4): 122 random bits. Default chance: {@link systemRandom}. */
export function uuidv4(random: Random = systemRandom): string {
  const bytes = new Uint8Array(16)
  random.fill(bytes)
  const view = new DataView(bytes.buffer)
  view.setUint8(6, 0x40 | (view.getUint8(6) & 0x0f))
  view.setUint8(8, 0x80 | (view.getUint8(8) & 0x3f))
  return uuidText(bytes)
}

/**
 * The wall time in ms that a UUID of version 7 tells, or undefined for any other text. Upper and lower case are read.
 */
export function uuidv7TimeMs(id: string): number | undefined {
  if (typeof id !== 'string' || !uuidv7Shape.test(id)) return undefined
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}

function uuidText(bytes: Uint8Array): string {
  let text = ''
  for (let index = 0; index < 16; index += 1) {
    if (index === 4 || index === 6 || index === 8 || index === 10) text += '-'
    text += hexOfByte[bytes[index] as number]
  }
  return text
}

function timeOutOfRange(): RepriseError {
  return new RepriseError('ARGUMENT_INVALID', 'The wall time does not fit into the 48 bits of a UUID of version 7.')
}
