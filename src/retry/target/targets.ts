// One budget or breaker per target, for a bounded number of targets.

import { demandOnly, demandRanges } from '../demand.js'

/** Settings of {@link perTarget}. */
export interface PerTargetOptions<T = unknown> {
  /** How many targets are remembered, 1 to 100,000; the least recently used one leaves first. Default 100. */
  readonly maxTargets?: number
  /**
   * Whether a thing is as good as a new one, such as a budget that is full. Given that, only targets with such a thing
   * leave, since they come back as they went; while there is none, all further targets share one thing, made for the
   * rest. Default: every target may leave, and one that comes back starts anew.
   */
  readonly isLikeNew?: (made: T) => boolean
}

// How many targets are looked at for one that may leave. Those that may not are looked at again after all others.
const mostLooks = 16

/**
 * Makes one thing per target and hands the same one out again: `const budgetOf = perTarget(() => tokenBudget())`.
 *
 * @param make Told whether the thing is the one that the rest of the targets share; its target is then the first of
 * them.
 */
export function perTarget<T>(
  make: (target: string, isForRest: boolean) => T,
  options: PerTargetOptions<T> = {},
): (target: string) => T {
  demandOnly(options, 'targets', 'maxTargets', 'isLikeNew')
  const { maxTargets = 100, isLikeNew } = options
  demandRanges('targets', { maxTargets }, { maxTargets: [1, 100_000, 'whole'] })
  // A Map keeps the order of insertion: the first is the least recently used.
  const known = new Map<string, T>()
  const use = (target: string, made: T): T => {
    known.delete(target)
    known.set(target, made)
    return made
  }
  const leaves = (): boolean => {
    for (const [target, made] of [...first(known, mostLooks)]) {
      if (isLikeNew?.(made) ?? true) return known.delete(target)
      use(target, made)
    }
    return false
  }
  let rest: { readonly made: T } | undefined
  return (target) => {
    if (known.has(target)) return use(target, known.get(target) as T)
    if (known.size < maxTargets || leaves()) return use(target, make(target, false))
    rest ??= { made: make(target, true) }
    return rest.made
  }
}

function* first<Entry>(entries: Iterable<Entry>, most: number): Generator<Entry> {
  let left = most
  for (const entry of entries) {
    if (left-- <= 0) return
    yield entry
  }
}
