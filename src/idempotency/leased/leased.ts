// Leased operations: the effect lies outside the store, under a claim with token, fence and heartbeat, and with a
// recovery that was declared beforehand.

import type { CallOptions, LeasedOperation } from '../definition.js'
import { addOperation } from '../domain.js'
import { drilled } from '../drill/calls.js'
import { OperationFailedError, type Outcome } from '../outcome.js'
import type { Keepable, Recoverable, Storable } from '../storable.js'
import { makeKnown } from '../upkeep/known-operations.js'
import { LeasedCall } from './call.js'
import { type LeasedOptions, planOf } from './plan.js'

/**
 * Defines an operation whose effect lies outside the store. Claim, heartbeat and outcome are kept in the store; each
 * external call gets a key that is the same in every run. What may have happened is never repeated blindly: `recover`
 * says what is done about it. A store of records is enough, transactions are not needed.
 *
 * Refuses what cannot be safe: OPERATION_INVALID (`details.option` says which), OPERATION_DEFINED_TWICE, SCOPE_MISSING,
 * RECOVERY_MISSING, WINDOW_SHORTER_THAN_LEASE, WINDOW_SHORTER_THAN_HORIZON, DURATION_INVALID.
 *
 * @example
 * ```ts
 * import { type Key, scope } from 'reprise/identity'
 * import { leased, rerunKeyed } from 'reprise/idempotency'
 * import { memory } from 'reprise/stores/memory'
 *
 * const charge = leased('charge', {
 *   store: memory({ name: 'shop' }), scope: () => scope('shop'), key: (order: { key: Key }) => order.key,
 *   window: '24h', lease: '30s', recover: rerunKeyed('24h'),
 *   run: (lease) => lease.effect('capture', async ({ key }) => `captured under ${key.length} characters`),
 * })
 * ```
 */
export function leased<Input, Result, const Code extends string = never>(
  name: string,
  options: LeasedOptions<Input, Result, Code> & Recoverable & Storable<Result> & Keepable<Input>,
): LeasedOperation<Input, Result, Code> {
  const plan = planOf(name, options)
  const { answers, domain, settings } = plan
  addOperation(domain, answers)
  const outcome = drilled<Input, Outcome<Result, Code>>(
    plan,
    async (input, call) => new LeasedCall(plan, input, call).outcome() as Promise<Outcome<Result, Code>>,
  )
  const run = async (input: Input, call?: CallOptions): Promise<Result> => {
    const end = await outcome(input, call)
    if (end.outcome === 'succeeded') return end.value
    throw new OperationFailedError(end.failure, { replayed: end.replayed })
  }
  const operation = Object.freeze(Object.assign(run, { outcome, answers }))
  makeKnown(operation, { name, records: domain.records, storage: settings.storage, plan })
  return operation
}
