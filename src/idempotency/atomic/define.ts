// Defining an atomic operation: checked, registered, callable.

import type { Engine, TransactionControls } from '../../atomicity/index.js'
import { defined } from '../../kernel/index.js'
import {
  demandMemory,
  keyedTransactions,
  readTransactionOptions,
  type TransactionDefaults,
  transactionOptionNames,
} from '../../transaction/index.js'
import type { CallOptions, Operation } from '../definition.js'
import { addOperation, type OperationDomain } from '../domain.js'
import { drilled } from '../drill/calls.js'
import { OperationFailedError, type Outcome } from '../outcome.js'
import { answersOf, invalidOption, operationSettings, placementOf } from '../settings.js'
import { makeKnown } from '../upkeep/known-operations.js'
import { AtomicCall, type AtomicOperation } from './call.js'
import type { AtomicOptions, ResultOf } from './options.js'

/**
 * Defines an operation of a domain. Refuses with OPERATION_INVALID, OPERATION_DEFINED_TWICE, SCOPE_MISSING,
 * WINDOW_SHORTER_THAN_HORIZON, WINDOW_SHORTER_THAN_DEADLINE or DURATION_INVALID.
 */
export function defineAtomic<Handle extends TransactionControls, Input, Returned, Code extends string>(
  engine: Engine<Handle>,
  domain: OperationDomain,
  defaults: TransactionDefaults,
  name: string,
  options: AtomicOptions<Handle, Input, Returned, Code>,
): Operation<Input, ResultOf<Returned>, Code> {
  const settings = operationSettings(name, options, { mode: 'atomic', names: transactionOptionNames })
  demandMemory('window', settings.windowMs, domain.deadlineMs)
  const transactions = readTransactionOptions(engine.manifest, defaults, options, invalidOption)
  const answers = answersOf(settings, domain, {
    mode: 'atomic',
    rung: 'atomic',
    placement: placementOf('transaction', transactions.attempts, transactions.foreignLayers),
    holds: 'marker and effect',
    leaseMs: undefined,
    recovery: undefined,
  })
  addOperation(domain, answers)
  const transact = keyedTransactions(engine, defaults, transactions)
  const shared: AtomicOperation<Handle, Input> = { settings, domain, transact, run: options.run }
  type Result = ResultOf<Returned>
  const outcome = drilled<Input, Outcome<Result, Code>>(
    { settings, domain, answers },
    async (input, call) => new AtomicCall(shared, input, call).outcome() as Promise<Outcome<Result, Code>>,
  )
  const run = async (input: Input, call?: CallOptions): Promise<Result> => {
    const end = await outcome(input, call)
    if (end.outcome === 'succeeded') return end.value
    const { failure, replayed, cause } = end
    throw new OperationFailedError(failure, { replayed, ...defined({ cause }) })
  }
  const operation = Object.freeze(Object.assign(run, { outcome, answers }))
  makeKnown(operation, { name, records: domain.records, storage: settings.storage, plan: undefined })
  return operation
}
