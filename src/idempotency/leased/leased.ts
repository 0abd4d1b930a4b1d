// Leased operations: the effect lies outside the store, under a claim with token, fence and heartbeat, and with a recovery that was declared beforehand.

import type { CallOptions, LeasedOperation, Outcome } from '../definition.js'
import { OperationFailedError } from '../failure.js'
import type { Keepable, Storable } from '../storable.js'
import { makeKnown } from '../upkeep/known-operations.js'
import { carryOut } from './call.js'
import { type LeasedOptions, planOf } from './plan.js'

/**
 * Defines an operation whose effect lies outside the store. Claim, heartbeat and outcome are kept in the store; each external call gets a key that is the same in every
 * run. What may have happened is never repeated blindly: `recover` says what is done about it.
 *
 * Refuses what cannot be safe: OPERATION_INVALID (`details.option` says which), OPERATION_DEFINED_TWICE, SCOPE_MISSING, RECOVERY_MISSING, WINDOW_SHORTER_THAN_LEASE,
 * WINDOW_SHORTER_THAN_HORIZON, DURATION_INVALID, CAPABILITY_UNSUPPORTED where the store keeps no records.
 */
export function leased<Input, Result, const Code extends string = never>(
  name: string,
  options: LeasedOptions<Input, Result, Code> & Storable<Result> & Keepable<Input>,
): LeasedOperation<Input, Result, Code> {
  const plan = planOf(name, options)
  const { answers, place, settings } = plan
  place.registry.add(answers)
  const outcome = async (input: Input, call?: CallOptions): Promise<Outcome<Result, Code>> =>
    (await carryOut(plan, input, call)) as Outcome<Result, Code>
  const operation = async (input: Input, call?: CallOptions): Promise<Result> => {
    const end = await outcome(input, call)
    if (end.outcome === 'succeeded') return end.value
    throw new OperationFailedError(end.failure, { replayed: end.replayed })
  }
  const { values, windowMs } = settings
  makeKnown(operation, { name, records: place.records, values, windowMs, plan })
  return Object.freeze(Object.assign(operation, { outcome, answers }))
}
