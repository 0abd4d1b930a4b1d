// How many repeats a target may be sent. Backoff spreads a storm over time; only a budget makes it smaller.
//
// A budget is shared by everything that repeats against one target, hedges included. It never waits: it says yes or no.
// It is told of each attempt's result, and is then asked last, once nothing else forbids the repeat.

import { type Duration, durationMs, maxDurationMs } from '../../kernel/index.js'
import { demand, demandObject, demandOnly, demandRanges, huge } from '../demand.js'
import { added, aged, stepAt, total } from './sliding-window.js'

/** A budget after gRPC proposal A6, as plain data. */
export interface TokenBudgetData {
  /** The throttle of gRPC proposal A6. */
  readonly kind: 'token'
  /** Tokens at the start, and at most. */
  readonly maxTokens: number
  /** With at most three decimals. */
  readonly tokenRatio: number
  /** Whether a repeat is allowed while exactly half is left; absent: it is not, as A6 has it. */
  readonly allowsAtHalf?: true
}

/** A budget over a sliding window, as plain data. */
export interface RatioBudgetData {
  /** A share of calls over a sliding window. */
  readonly kind: 'ratio'
  /** Repeats allowed per call. */
  readonly ratio: number
  /** How far back calls are counted, in ms. */
  readonly windowMs: number
  /** Repeats regained per second. */
  readonly refillPerSecond: number
  /** Repeats per second that are always allowed. */
  readonly floorPerSecond: number
  /** Repeats in hand at the start. */
  readonly initial: number
}

/** A budget as plain data; see {@link tokenBudget} and {@link ratioBudget}. */
export type BudgetData = TokenBudgetData | RatioBudgetData

/**
 * Decides whether a repeat may be sent. Times are monotonic ms from 0 on; one that goes back counts as the latest seen.
 */
export interface Budget {
  /** The budget as plain data, without its level. */
  readonly data: BudgetData
  /** True: a success would change nothing, and need not be told. Absent: it may always change something. */
  readonly full?: boolean
  /** What is left: tokens, or repeats. Never negative. */
  level(nowMs: number): number
  /**
   * An attempt succeeded.
   *
   * @param isRepeat Whether an earlier attempt of the same call has reported, so that the call is counted already.
   * Default false.
   */
  succeeded(nowMs: number, isRepeat?: boolean): void
  /**
   * An attempt failed in a way that a repeat may cure, or the server forbade a repeat. Nothing else counts (A6).
   *
   * @param isRepeat Whether an earlier attempt of the same call has reported, so that the call is counted already.
   * Default false.
   */
  failed(nowMs: number, isRepeat?: boolean): void
  /** Whether one repeat or hedge may be sent now; `true` takes it from the budget. */
  tryRepeat(nowMs: number): boolean
}

/** Settings of {@link tokenBudget}, with the names of gRPC. */
export interface TokenBudgetOptions {
  /**
   * Tokens at the start, and at most: 0.001 to 1,000; decimals beyond the third are ignored. Up to 2, the first failure
   * leaves no more than half, and nothing is ever repeated. Default 10.
   */
  readonly maxTokens?: number
  /** Tokens gained by a success, at least 0.001; decimals beyond the third are ignored. Default 0.1. */
  readonly tokenRatio?: number
  /** Whether a repeat is still allowed while exactly half of the tokens is left. Default false, as A6 has it. */
  readonly allowsAtHalf?: boolean
}

/** Settings of {@link ratioBudget}. */
export interface RatioBudgetOptions {
  /** Repeats allowed per call, 0 to 1. Default 0.1. */
  readonly ratio?: number
  /** How far back calls and repeats are counted, in ten steps. Default `'10s'`. */
  readonly window?: Duration
  /** Repeats regained per second, whatever the traffic, so that a quiet client recovers. Default 0.01. */
  readonly refillPerSecond?: number
  /**
   * Repeats per second that are always allowed. Default 0: with each client of a fleet it adds to the load of a target
   * that is already down.
   */
  readonly floorPerSecond?: number
  /** Repeats in hand at the start, 0 to 1,000. Multiplies with the size of the fleet too. Default 1. */
  readonly initial?: number
}

/**
 * The throttle of gRPC proposal A6: starts full, a failure takes 1 token, a success gives `tokenRatio`, and a repeat is
 * allowed while more than half of `maxTokens` is left. A repeat itself takes nothing; its result does.
 *
 * @example
 * ```ts
 * import { retryPolicy, tokenBudget } from 'reprise/retry'
 *
 * const policy = retryPolicy({ budget: tokenBudget({ maxTokens: 20, tokenRatio: 0.1 }) })
 * ```
 */
export function tokenBudget(options: TokenBudgetOptions = {}): Budget {
  demandOnly(options, 'budget', 'maxTokens', 'tokenRatio', 'allowsAtHalf')
  const { maxTokens = 10, tokenRatio = 0.1, allowsAtHalf = false } = options
  demand(typeof allowsAtHalf === 'boolean', 'budget.allowsAtHalf')
  // A smaller ratio is 0 once truncated, and the budget would never recover.
  demandRanges('budget', { maxTokens, tokenRatio }, { maxTokens: [0.001, 1000], tokenRatio: [0.001, huge] })
  const gain = thousandths(tokenRatio)
  const full = thousandths(maxTokens)
  let tokens = full
  const budget = {
    data: Object.freeze({
      kind: 'token' as const,
      maxTokens: full / 1000,
      tokenRatio: gain / 1000,
      ...(allowsAtHalf && { allowsAtHalf }),
    }),
    // A field and no accessor: whoever commits looks at it each time.
    full: true,
    level: () => tokens / 1000,
    succeeded() {
      tokens = Math.min(full, tokens + gain)
      budget.full = tokens === full
    },
    failed() {
      tokens = Math.max(0, tokens - 1000)
      budget.full = false
    },
    tryRepeat: () => tokens * 2 > full || (allowsAtHalf && tokens * 2 === full),
  }
  return budget
}

// Read from the decimal text, because 1.005 · 1000 is 1004.99… in floats. More than 1,000 gained is no more than full.
function thousandths(value: number): number {
  return Math.floor(Number(`${Math.min(value, 1000)}e3`))
}

/**
 * Allows repeats up to a share of the calls of a sliding window. A repeat is not a call of its own: its result does not
 * earn another. Beside the share there is a small reserve that starts at `initial` and refills slowly by time, up to
 * `initial` or 1 if that is more.
 *
 * @example
 * ```ts
 * import { ratioBudget, retryPolicy } from 'reprise/retry'
 *
 * const policy = retryPolicy({ budget: ratioBudget({ ratio: 0.1, window: '10s' }) }) // one repeat per ten calls
 * ```
 */
export function ratioBudget(options: RatioBudgetOptions = {}): Budget {
  demandOnly(options, 'budget', 'ratio', 'window', 'refillPerSecond', 'floorPerSecond', 'initial')
  const { ratio = 0.1, window = '10s', refillPerSecond = 0.01, floorPerSecond = 0, initial = 1 } = options
  const windowMs = durationMs(window, { option: 'window' })
  const data: RatioBudgetData = { kind: 'ratio', ratio, windowMs, refillPerSecond, floorPerSecond, initial }
  const most = 1000
  demandRanges('budget', data, {
    ratio: [0, 1],
    windowMs: [1, maxDurationMs],
    refillPerSecond: [0, most],
    floorPerSecond: [0, most],
    initial: [0, most],
  })
  // Calls, and the repeats charged to their share. Counts are whole, so sums stay exact.
  let pairs: readonly number[] = []
  let reserve = initial
  let latestMs = -1
  /** Brings the window to now, and says what the calls in it allow. */
  const shareAt = (nowMs: number): number => {
    if (nowMs > latestMs) {
      if (latestMs >= 0) {
        reserve = Math.min(Math.max(1, initial), reserve + ((nowMs - latestMs) * refillPerSecond) / 1000)
        pairs = aged(pairs, stepAt(nowMs, windowMs) - stepAt(latestMs, windowMs))
      }
      latestMs = nowMs
    }
    return ratio * total(pairs, 0) + (floorPerSecond * windowMs) / 1000 - total(pairs, 1)
  }
  // Only results add calls, one for each call: what never reports (a hedge that lost, a wait that was left) changes
  // nothing.
  const result = (nowMs: number, isRepeat = false): void => {
    shareAt(nowMs)
    if (!isRepeat) pairs = added(pairs, 1, 0)
  }
  return {
    data: Object.freeze(data),
    level: (nowMs) => Math.max(0, shareAt(nowMs)) + reserve,
    succeeded: result,
    failed: result,
    tryRepeat(nowMs) {
      const shared = shareAt(nowMs) >= 1
      if (!shared && reserve < 1) return false
      if (shared) pairs = added(pairs, 0, 1)
      else reserve -= 1
      return true
    },
  }
}

/**
 * The budget that the data describes, new and with a balance of its own. Refuses data that cannot be with
 * `POLICY_INVALID`.
 */
export function budgetFrom(data: BudgetData): Budget {
  demandObject(data, 'budget')
  if (data.kind === 'token') {
    const { kind, ...rest } = data
    return tokenBudget(rest)
  }
  demand(data.kind === 'ratio', 'budget.kind')
  const { kind, windowMs, ...rest } = data
  return ratioBudget({ ...rest, window: windowMs })
}
