// How many remembered keys a caller has: counted in the store, and only where a route sets a limit.

import { inspectionOf, type Records } from '../../../atomicity/index.js'
import { operationId, timeOfRecords } from '../../../idempotency/index.js'
import { type Key, scope } from '../../../identity/index.js'
import { deadlineAfter } from '../../../kernel/index.js'
import type { Arrival } from './handler.js'

/** Whether a caller may have one more key, or has this one already; found out within a time in ms. */
export type HasRoom<Native, Input> = (arrival: Arrival<Native, Input>, withinMs: number) => Promise<boolean>

const mostMs = 5_000

/**
 * Whether a caller may have one more key. What is counted is committed: as many requests as arrive at the same moment
 * may exceed the limit by their number, and none of them is wrong for it. Refuses a store that cannot count with
 * CAPABILITY_UNSUPPORTED.
 *
 * @param most How many keys a caller may have; undefined: any number.
 */
export function roomFor<Native, Input>(
  name: string,
  records: Records,
  most: number | undefined,
): HasRoom<Native, Input> | undefined {
  if (most === undefined) return undefined
  const { clock } = timeOfRecords(records)
  const inspection = inspectionOf(records)
  return async ({ principal, method, key }, withinMs) => {
    const limits = { deadline: deadlineAfter(Math.min(mostMs, withinMs), clock) }
    const owner = scope(...principal, method, name)
    const { pepper } = records
    const counted = pepper === undefined ? owner : pepper.hide(owner)
    if ((await inspection.live(counted, most, limits)) < most) return true
    const { record } = await records.read(operationId(name, owner, key as Key, pepper), limits)
    return record !== undefined
  }
}
