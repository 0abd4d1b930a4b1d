// What a drill is: for those who set one up, and for the layers whose calls it repeats.

import type { Chance, Clock, Duration } from '../kernel/index.js'
import type { DrillEvent, DrillSkippedEvent, DrillViolationEvent } from './events.js'

/** A call that was repeated on purpose. */
export interface DrilledCall extends DrillEvent {
  /**
   * What it was about: the input of an operation; of a route what its handler gets, but for `tx` and `lease`; the
   * message of a consumer.
   */
  readonly input: unknown
}

/** How a drill works. */
export interface DrillOptions {
  /** One call in so many is repeated, by chance: 1,000 for one in a thousand, 1 for each. 0: none, the drill is off. */
  readonly oneIn: number
  /**
   * Where this runs. Refused with DRILL_IN_PRODUCTION where it begins with `prod` or `live`, and so is the variable
   * `REPRISE_ENVIRONMENT`. Where neither says anything, `NODE_ENV` counts. Default: only the variables count.
   */
  readonly environment?: string | undefined
  /** How long after the answer the repeat is made. Default `'1s'`. */
  readonly after?: Duration
  /** How many repeats may wait or be under way; one more is left out. 1 to 1,000; default 8. */
  readonly atOnce?: number
  /**
   * How often this one call has taken effect, by your own tables: 0 or 1. Asked before the repeat and after it; a
   * number that changes, or that is above 1, is a violation. Default: only runs of the body are seen.
   */
  readonly effects?: (call: DrilledCall) => number | Promise<number>
  /** Hears of each violation. What it throws is told as a warning. Default: a warning of Node for each. */
  readonly onViolation?: (violation: DrillViolationEvent, call: DrilledCall) => unknown
  /** Who draws. Default: the system's chance. */
  readonly random?: Chance
}

/** What a drill did so far. */
export interface DrillCounts {
  /** Repeats that got what the first call got. */
  readonly agreed: number
  /** Repeats that came to something else. */
  readonly violations: number
  /** Calls that were drawn, and whose repeat was left out or says nothing, by the reason. */
  readonly skipped: Readonly<Record<DrillSkippedEvent['because'], number>>
}

/** What a repeat came to. */
export type Repeated =
  /** It was answered. */
  | { readonly told: string }
  /** It was refused, with this code or status. */
  | { readonly refused: string }

/** A call that is to be repeated. */
export interface Repeat {
  readonly call: DrilledCall
  /** Whose body must not run: what {@link Drill.reached} is asked with. */
  readonly owner: object
  /** By which time passes. */
  readonly clock: Clock
  /** For how long its outcome is remembered, in ms. */
  readonly rememberedMs: number
  /** What its caller was told. */
  readonly first: string
  /** Makes the same call. */
  readonly again: () => Promise<Repeated>
}

/** Duplicates on purpose, for the option `drill` of a store. */
export interface Drill {
  readonly oneIn: number
  /** What it did so far. */
  readonly counts: DrillCounts
  /** Waits until no repeat waits or is under way, and gives the counts. */
  settled(): Promise<DrillCounts>
  /** For the layers: whether a call is one to repeat. Never inside of a repeat. */
  draws(): boolean
  /** For the layers: a call that was drawn is not repeated. */
  skip(call: DrillEvent, because: DrillSkippedEvent['because'], error?: unknown): void
  /** For the layers: repeats a call later. Returns at once, and never throws. */
  repeat(repeat: Repeat): void
  /** For the layers, before a body runs: what to throw in its place, where this is a repeat of its owner's. */
  reached(owner: object): Error | undefined
}
