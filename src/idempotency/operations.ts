// The operations of a domain, as its users define and run them.

import type { Engine, Records, TransactionControls } from '../atomicity/index.js'
import { RepriseError } from '../kernel/index.js'
import { type TransactionDefaults, withBudget } from '../transaction/index.js'
import { defineAtomic } from './atomic/define.js'
import type { AtomicOptions, Registered, ResultOf } from './atomic/options.js'
import type { AnyOperation, LeasedOperation, Operation, OperationAnswers } from './definition.js'
import { operationDomain } from './domain.js'
import type { Storable } from './storable.js'
import { type Known, lookup } from './upkeep/lookup.js'
import { type PurgeOptions, type PurgeReport, purge } from './upkeep/purge.js'
import { type SettlementOf, type SettleOptions, settle } from './upkeep/settle.js'
import { type SweepOptions, type SweepReport, sweep } from './upkeep/sweep.js'
import type { UpkeepCall, Which, WhichHere } from './upkeep/which.js'

/** The operations of a domain. */
export interface Operations<Handle> {
  /**
   * Defines an operation whose marker, effect and outcome commit together in this domain. Call what it returns with an
   * input: the first call executes, every repeat within the window gets the stored outcome.
   *
   * Refuses definitions that cannot be safe: OPERATION_INVALID (`details.option` says which), OPERATION_DEFINED_TWICE,
   * SCOPE_MISSING, WINDOW_SHORTER_THAN_HORIZON, WINDOW_SHORTER_THAN_DEADLINE, DURATION_INVALID.
   *
   * @example
   * ```ts
   * import { type Key, mintKey, scope } from 'reprise/identity'
   * import { memory } from 'reprise/stores/memory'
   *
   * const db = memory({ name: 'shop' })
   * const pay = db.operation('pay', {
   *   scope: () => scope('shop'), key: (order: { key: Key; amount: number }) => order.key, window: '24h',
   *   run: async (_tx, { amount }) => ({ paid: amount }),
   * })
   * const order = { key: mintKey(), amount: 5 }
   * console.log(await pay(order), (await pay.outcome(order)).replayed)
   * ```
   * ```text
   * { paid: 5 } true
   * ```
   */
  operation<Input, Returned, const Code extends string = never>(
    name: string,
    definition: AtomicOptions<Handle, Input, Returned, Code> &
      Registered<Returned, Code> &
      Storable<ResultOf<Returned>>,
  ): Operation<Input, ResultOf<Returned>, Code>
  /** The five answers of every operation of this domain, in the order of their definition. */
  operations(): readonly OperationAnswers[]
  /** What is known of a key: how far it is, its outcome, and the notes about it. Changes nothing. */
  lookup(which: WhichHere, call?: UpkeepCall): Promise<Known>
  /**
   * A person decides an unknown outcome, with a reason that is kept. Refuses with SETTLE_REFUSED where there is nothing
   * to settle.
   */
  settle<Which extends AnyOperation | string = string>(
    which: WhichHere<Which>,
    settlement: SettlementOf<Which>,
    options: SettleOptions,
  ): Promise<void>
  /**
   * Drives leased operations whose owner is gone, or whose outcome is unknown, to an outcome, as each of them declares.
   */
  sweep(
    operations: readonly LeasedOperation<never, unknown>[],
    options?: Omit<SweepOptions, 'store' | 'operations'>,
  ): Promise<SweepReport>
  /** Forgets finished records past their window, in small batches, and what else is asked for. */
  purge(options?: Omit<PurgeOptions, 'store'>): Promise<PurgeReport>
  /** The records, as a port: each call is a commit of its own, past all transactions. */
  readonly records: Records
}

/** The operations of a store, for its domain. Refuses a store that keeps no records with CAPABILITY_UNSUPPORTED. */
export function operationsOf<Handle extends TransactionControls>(
  engine: Engine<Handle>,
  given: TransactionDefaults = {},
): Operations<Handle> {
  const { name, manifest, records } = engine
  if (records === undefined) {
    throw new RepriseError('CAPABILITY_UNSUPPORTED', 'The store keeps no records of operations.', {
      details: { option: 'records', engine: manifest.engine },
    })
  }
  const defaults = withBudget(engine, given)
  const store = { name, manifest, records }
  const domain = operationDomain(store, defaults)
  const here = (which: WhichHere<AnyOperation | string>): Which => ({ ...which, store }) as Which
  return {
    operation: (named, definition) => defineAtomic(engine, domain, defaults, named, definition),
    operations: () => [...domain.operations.values()],
    lookup: async (which, call) => lookup(here(which), call),
    settle: async (which, settlement, options) => settle(here(which), settlement, options),
    sweep: async (operations, options = {}) => sweep({ ...options, operations, store }),
    purge: async (options = {}) => purge({ ...options, store }),
    records,
  }
}
