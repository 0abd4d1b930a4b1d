// How many remembered keys a caller has: counted in the store, and only where a route sets a limit.

import { inspectionOf, type Records } from '../../../atomicity/index.js'
import { operationId, timeOfRecords } from '../../../idempotency/index.js'
import { scope } from '../../../identity/index.js'
import { deadlineAfter } from '../../../kernel/index.js'
import type { Arrival } from './arrival.js'

/** Says whether a caller may have one more key, or has this one already, within a time in ms. */
export type HasRoom<Native, Input> = (
  arrival: Arrival<Native, Input>,
  most: number,
  withinMs: number,
) => Promise<boolean>

const mostMs = 5_000

/**
 * Whether a caller may have one more key, or has this one already. What is counted is committed: as many requests as arrive at the same moment may exceed the limit by their number, and
 * none of them is wrong for it.
 */
export function roomFor<Native, Input>(name: string, records: Records): HasRoom<Native, Input> {
  const { clock } = timeOfRecords(records)
  return async ({ principal, method, key }, most, withinMs) => {
    const limits = { deadline: deadlineAfter(Math.min(mostMs, withinMs), clock) }
    const owner = scope(...principal, method, name)
    if ((await inspectionOf(records).live(owner, most, limits)) < most) return true
    const { record } = await records.read(operationId(name, owner, key as NonNullable<typeof key>), limits)
    return record !== undefined
  }
}
