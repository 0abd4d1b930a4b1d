// The places in the runner of leased operations at which a test can stop, fail or kill the process.

import { faultPoint } from '../../kernel/index.js'

/** Every fault point of the runner of leased operations. */
export const leasedFaultPoints = [
  'leased.claiming',
  'leased.claimed',
  'leased.before-effect',
  'leased.after-effect',
  'leased.renewing',
  'leased.renewed',
  'leased.before-complete',
  'leased.completed',
  'leased.before-release',
  'leased.released',
  'leased.before-lose',
  'leased.unknown',
  'leased.asking',
  'leased.asked',
] as const

/** The name of a fault point of the runner of leased operations. */
export type LeasedFaultPoint = (typeof leasedFaultPoints)[number]

/** Reaches a fault point; undefined, unless a test armed them. */
export function reach(point: LeasedFaultPoint): PromiseLike<void> | undefined {
  return faultPoint(point)
}
