// How long to wait before the next attempt: the exponential kinds, with the cap applied first and the jitter last.
//
// Many libraries cap after the jitter, so that after a few failures every client waits exactly the cap and all come
// back together. Here jitter survives the cap.

import { type Chance, maxDurationMs } from '../kernel/index.js'
import { demand, demandOnly, demandRanges, huge, tiny } from './demand.js'

/** The kinds of backoff; see the constructors. */
export type BackoffKind = 'none' | 'full' | 'equal' | 'decorrelated' | 'constant' | 'grpc'

/** A backoff as plain data. */
export interface BackoffData {
  /** How ceilings and chance make a wait. */
  readonly kind: BackoffKind
  /** The first ceiling, in ms. */
  readonly baseMs: number
  /** No ceiling is above it, in ms. */
  readonly capMs: number
  /** Growth per failure, above 0. Default 2; 3 for `decorrelated`, 1 for `constant`. */
  readonly multiplier?: number
  /** Of `decorrelated` alone: what a draw past the cap becomes. Default `'redrawn'`. */
  readonly pastCap?: PastCap
}

/** A new draw from the upper half of what the cap allows, or the cap itself, as it was published. */
export type PastCap = 'redrawn' | 'cap'

/** Decides how long to wait after a failed attempt. Pure but for the chance it is handed. */
export interface Backoff {
  /** The backoff as plain data. */
  readonly data: BackoffData
  /**
   * The wait in ms, not rounded. `failures`: failed attempts so far, from 1. `previousDelayMs`: the last wait, 0 before
   * the first one; only `decorrelated` looks at it.
   */
  delayMs(failures: number, previousDelayMs: number, random: Chance): number
}

/** Limits of an exponential backoff, in ms. */
export interface BackoffOptions {
  /** The first ceiling, above 0. Default 50. */
  readonly baseMs?: number
  /** The highest ceiling, at least `baseMs`. Default 2,000. */
  readonly capMs?: number
}

/** Limits of {@link decorrelatedJitter}, in ms. */
export interface DecorrelatedOptions extends BackoffOptions {
  /**
   * What a draw past the cap becomes: `'redrawn'`, one of U(cap / 2, cap); `'cap'`, the cap itself, as it was
   * published. Default `'redrawn'`.
   */
  readonly pastCap?: PastCap
}

/** gRPC's names for its backoff, in ms. */
export interface GrpcBackoffOptions {
  /** The first delay before jitter, above 0. */
  readonly initialMs: number
  /** The highest delay before jitter, above 0; the jitter may pass it by a fifth. */
  readonly maxMs: number
  /** Growth per failure, above 0. */
  readonly multiplier: number
}

/**
 * Exactly the ceiling, min(cap, base · 2^(failures − 1)). All clients come back together: for tests and comparisons.
 */
export function noJitter(options?: BackoffOptions): Backoff {
  return none(doubling('none', options))
}

/**
 * U(0, ceiling): the default. Spreads best for the fewest calls (Brooker, "Exponential Backoff And Jitter", 2015).
 *
 * @example
 * ```ts
 * import { fullJitter, retryPolicy } from 'reprise/retry'
 *
 * const policy = retryPolicy({ attempts: 5, backoff: fullJitter({ baseMs: 100, capMs: 5_000 }) })
 * ```
 */
export function fullJitter(options?: BackoffOptions): Backoff {
  return full(doubling('full', options))
}

/** Half the ceiling + U(0, half the ceiling): never a very short wait. */
export function equalJitter(options?: BackoffOptions): Backoff {
  return equal(doubling('equal', options))
}

/**
 * U(base, 3 · previous), where previous starts at base. The published form takes the smaller of that and the cap, and
 * so loses its jitter there; here a draw past the cap becomes one of U(cap / 2, cap). `pastCap: 'cap'` is the published
 * form.
 */
export function decorrelatedJitter(options: DecorrelatedOptions = {}): Backoff {
  demandOnly(options, 'backoff', 'baseMs', 'capMs', 'pastCap')
  const { baseMs = 50, capMs = 2000, pastCap } = options
  return decorrelated({ kind: 'decorrelated', baseMs, capMs, ...(pastCap !== undefined && { pastCap }) })
}

/** The same wait each time, in ms. 0 is allowed and means none. */
export function constantDelay(delayMs: number): Backoff {
  return constant({ kind: 'constant', baseMs: delayMs, capMs: delayMs })
}

/** min(initial · multiplier^(failures − 1), max) · U(0.8, 1.2), as gRPC proposal A6 has it. */
export function grpcBackoff(options: GrpcBackoffOptions): Backoff {
  demandOnly(options, 'backoff', 'initialMs', 'maxMs', 'multiplier')
  const { initialMs, maxMs, multiplier } = options
  return grpc({ kind: 'grpc', baseMs: initialMs, capMs: maxMs, multiplier })
}

function doubling(kind: BackoffKind, options: BackoffOptions = {}): BackoffData {
  demandOnly(options, 'backoff', 'baseMs', 'capMs')
  const { baseMs = 50, capMs = 2000 } = options
  return { kind, baseMs, capMs }
}

// The wait is a share of a ceiling that grows with every failure: at least so much, plus so much by chance.
function growing(
  data: BackoffData,
  least: number,
  chance: number,
  usualGrowth = 2,
  leastBaseMs = tiny,
  leastCapMs = data.baseMs,
): Backoff {
  const { baseMs, capMs, multiplier = usualGrowth } = data
  demandLimits({ baseMs, capMs, multiplier }, leastBaseMs, leastCapMs)
  return {
    data: Object.freeze({ ...data }),
    // The power may overflow to Infinity: the cap is then the smaller. If the base is 0, so is the cap, and the power
    // is 1.
    delayMs: (failures, _previousDelayMs, random) =>
      Math.min(capMs, baseMs * multiplier ** (failures - 1)) * (least + chance * random.next()),
  }
}

// The kinds, each by itself, so that a program loads those that it names.
const none = (data: BackoffData): Backoff => growing(data, 1, 0)
const full = (data: BackoffData): Backoff => growing(data, 0, 1)
const equal = (data: BackoffData): Backoff => growing(data, 0.5, 0.5)
const constant = (data: BackoffData): Backoff => growing(data, 1, 0, 1, 0)
// A6 allows a maximum below the initial delay; elsewhere that is a mistake.
const grpc = (data: BackoffData): Backoff => growing(data, 0.8, 0.4, 2, tiny, tiny)

function decorrelated(data: BackoffData): Backoff {
  const { baseMs, capMs, multiplier = 3, pastCap } = data
  demand(pastCap === undefined || pastCap === 'cap' || pastCap === 'redrawn', 'backoff.pastCap')
  demandLimits({ baseMs, capMs, multiplier }, tiny, baseMs)
  return {
    data: Object.freeze({ ...data }),
    delayMs(_failures, previousDelayMs, random) {
      const drawnMs = baseMs + random.next() * (multiplier * Math.max(baseMs, previousDelayMs) - baseMs)
      if (drawnMs < capMs) return drawnMs
      if (pastCap === 'cap') return capMs
      const leastMs = Math.max(baseMs, capMs / 2)
      return leastMs + random.next() * (capMs - leastMs)
    },
  }
}

function demandLimits(given: object, leastBaseMs: number, leastCapMs: number): void {
  demandRanges('backoff', given, {
    baseMs: [leastBaseMs, maxDurationMs],
    capMs: [leastCapMs, maxDurationMs],
    multiplier: [tiny, huge],
  })
}

const kinds: Readonly<Record<BackoffKind, (data: BackoffData) => Backoff>> = {
  none,
  full,
  equal,
  decorrelated,
  constant,
  grpc,
}

/** The backoff that the data describes. Refuses data that cannot be with `POLICY_INVALID`. */
export function backoffFrom(data: BackoffData): Backoff {
  demandOnly(data, 'backoff', 'kind', 'baseMs', 'capMs', 'multiplier', 'pastCap')
  const { kind, pastCap } = data
  demand(Object.hasOwn(kinds, kind), 'backoff.kind')
  demand(pastCap === undefined || kind === 'decorrelated', 'backoff.pastCap')
  return kinds[kind](data)
}
