// Defining an atomic operation: checked, registered, callable.

import type { Engine, TransactionControls } from '../../atomicity/index.js'
import {
  keyedTransactions,
  readTransactionOptions,
  type TransactionDefaults,
  transactionOptionNames,
} from '../../transaction/index.js'
import { answersOf } from '../define/answers.js'
import { placeOf } from '../define/place.js'
import { invalid, operationSettings } from '../define/settings.js'
import type { CallOptions, Operation, Outcome } from '../definition.js'
import { OperationFailedError } from '../failure.js'
import { makeKnown } from '../upkeep/known-operations.js'
import { type AtomicRunner, carryOut } from './call.js'
import type { AtomicOptions, ResultOf } from './options.js'

/** Defines an operation of a domain. Refuses with OPERATION_INVALID, OPERATION_DEFINED_TWICE, SCOPE_MISSING, WINDOW_SHORTER_THAN_HORIZON or DURATION_INVALID. */
export function defineAtomic<Handle extends TransactionControls, Input, Returned, Code extends string>(
  engine: Engine<Handle>,
  defaults: TransactionDefaults,
  name: string,
  options: AtomicOptions<Handle, Input, Returned, Code>,
): Operation<Input, ResultOf<Returned>, Code> {
  const place = placeOf(engine, defaults)
  const settings = operationSettings(name, options, { mode: 'atomic', names: transactionOptionNames })
  const transactions = readTransactionOptions(place.manifest, defaults, options, invalid)
  const answers = answersOf(settings, place, {
    mode: 'atomic',
    rung: 'atomic',
    placement: Object.freeze({ layer: 'transaction', attempts: transactions.attempts }),
    holds: 'marker and effect',
    leaseMs: undefined,
    recovery: undefined,
  })
  place.registry.add(answers)
  const { run } = options
  const runner: AtomicRunner<Handle, Input> = {
    settings,
    place,
    transact: keyedTransactions(engine, defaults, transactions),
    run,
  }
  type Result = ResultOf<Returned>
  const call = async (input: Input, callOptions?: CallOptions): Promise<Result> => {
    const end = await carryOut(runner, input, callOptions)
    if (end.outcome === 'succeeded') return end.value as Result
    const { failure, replayed, cause } = end
    throw new OperationFailedError(failure, cause === undefined ? { replayed } : { replayed, cause })
  }
  const outcome = async (input: Input, callOptions?: CallOptions): Promise<Outcome<Result, Code>> => {
    const { cause: _cause, ...end } = await carryOut(runner, input, callOptions)
    return end as Outcome<Result, Code>
  }
  const operation = Object.freeze(Object.assign(call, { outcome, answers }))
  const { values, windowMs } = settings
  makeKnown(operation, { name, records: place.records, values, windowMs, plan: undefined })
  return operation
}
