// A budget of other clients, to compare with: the retry quota that the AWS SDKs keep in each client ("standard" mode).
//
// Only the simulator has it. A balance this large in every process is what a fleet multiplies into a storm.

import { RepriseError } from '../kernel/index.js'
import type { Budget } from '../retry/index.js'

/** The retry quota of the AWS SDKs as plain data. */
export interface QuotaBudgetData {
  /** A fixed price for each repeat, given back by its success. */
  readonly kind: 'quota'
  /** Tokens at the start, and at most. */
  readonly capacity: number
  /** Tokens that a repeat takes, and gets back if it succeeds. */
  readonly cost: number
  /** Tokens that a first attempt gains by its success. */
  readonly gain: number
}

/**
 * Settings of {@link QuotaBudgetData}; the defaults are those of the AWS SDK for JavaScript since its "retries 2026".
 */
export interface QuotaBudgetOptions {
  /** Names the scheme. */
  readonly kind: 'quota'
  /** Tokens at the start, and at most: 1 to 1,000,000. Default 500. */
  readonly capacity?: number
  /**
   * Tokens that a repeat takes, and gets back if it succeeds: 1 to 1,000,000. Default 14, for time-outs; it was 5
   * before.
   */
  readonly cost?: number
  /** Tokens that a first attempt gains by its success: 0 to 1,000,000. Default 1. */
  readonly gain?: number
}

/** What the simulator asks of a budget. */
export type Allowance = Omit<Budget, 'data'>

const most = 1_000_000

/** Fills in the defaults, and refuses with `ARGUMENT_INVALID` what lies outside its limits. */
export function quotaData(options: QuotaBudgetOptions): QuotaBudgetData {
  const { kind, capacity = 500, cost = 14, gain = 1 } = options ?? {}
  if (kind !== 'quota') throw new RepriseError('ARGUMENT_INVALID', 'peerBudget.kind is quota.')
  for (const [name, value, least] of [
    ['capacity', capacity, 1],
    ['cost', cost, 1],
    ['gain', gain, 0],
  ] as const) {
    if (typeof value === 'number' && value >= least && value <= most) continue
    throw new RepriseError('ARGUMENT_INVALID', `peerBudget.${name} is a number from ${least} to ${most}.`, {
      details: { name: `peerBudget.${name}`, least, most },
    })
  }
  return { kind, capacity, cost, gain }
}

/** A quota with a balance of its own. A repeat that fails gives nothing back. */
export function quotaBudget({ capacity, cost, gain }: QuotaBudgetData): Allowance {
  let tokens = capacity
  return {
    level: () => tokens,
    succeeded(_nowMs, isRepeat = false) {
      tokens = Math.min(capacity, tokens + (isRepeat ? cost : gain))
    },
    failed() {},
    tryRepeat() {
      if (tokens < cost) return false
      tokens -= cost
      return true
    },
  }
}
