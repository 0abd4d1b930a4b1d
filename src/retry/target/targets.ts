// One budget or breaker per target, for a bounded number of targets.

import { demandOnly, demandRanges } from '../demand.js'

/** Settings of {@link perTarget}. */
export interface PerTargetOptions {
  /** How many targets are remembered, 1 to 100,000; the least recently used one leaves first. Default 100. */
  readonly maxTargets?: number
}

/**
 * Makes one thing per target and hands the same one out again: `const budgetOf = perTarget(() => tokenBudget())`. A
 * target that left and comes back starts anew.
 */
export function perTarget<T>(make: (target: string) => T, options: PerTargetOptions = {}): (target: string) => T {
  demandOnly(options, 'targets', 'maxTargets')
  const { maxTargets = 100 } = options
  demandRanges('targets', { maxTargets }, { maxTargets: [1, 100_000, 'whole'] })
  // A Map keeps the order of insertion: the first is the least recently used.
  const known = new Map<string, T>()
  return (target) => {
    const made = known.has(target) ? (known.get(target) as T) : make(target)
    known.delete(target)
    known.set(target, made)
    if (known.size > maxTargets) known.delete(known.keys().next().value as string)
    return made
  }
}
