// What a part of a policy must satisfy when it is built: refused at once, with the part's name, never at the third
// failure.

import { demandKnown, RepriseError } from '../kernel/index.js'

/** The least and the most of a number, both included, and whether it must be whole. */
export type Range = readonly [least: number, most: number, whole?: 'whole']

/** The least number above 0, and the largest: limits that exclude 0, Infinity and NaN. */
export const tiny: number = Number.MIN_VALUE
/** See {@link tiny}. */
export const huge: number = Number.MAX_VALUE

/** Throws `POLICY_INVALID` unless the condition holds. `path` names the part or the option, never a value. */
export function demand(holds: boolean, path: string): asserts holds {
  if (!holds) throw new RepriseError('POLICY_INVALID', `Not valid: ${path}.`, { details: { path } })
}

/** Demands that a part is an object, so that its members can be asked for. Data from a file may be anything. */
export function demandObject(part: unknown, path: string): void {
  demand(typeof part === 'object' && part !== null, path)
}

/** Demands that a part is an object with no other members than those. A misspelt limit would be no limit. */
export function demandOnly(part: object, path: string, ...known: readonly string[]): void {
  demandObject(part, path)
  demandKnown(part, known, path, 'POLICY_INVALID')
}

/** Whether the value is a number in the range. */
export function within(value: unknown, [least, most, whole]: Range): value is number {
  return typeof value === 'number' && value >= least && value <= most && (!whole || Number.isInteger(value))
}

/** Demands that each named member of `part` lies in its range. */
export function demandRanges(path: string, part: object, ranges: Readonly<Record<string, Range>>): void {
  for (const [name, range] of Object.entries(ranges)) {
    demand(within((part as Record<string, unknown>)[name], range), `${path}.${name}`)
  }
}
