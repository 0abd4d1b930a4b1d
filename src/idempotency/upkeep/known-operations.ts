// What those who look after records know of an operation that is defined in this process.

import type { RecordStore, Records } from '../../atomicity/index.js'
import type { LeasedOperation } from '../definition.js'
import type { Plan } from '../leased/plan.js'
import type { OutcomeStorage } from '../outcome.js'

/** An operation, as far as its records go. */
export interface KnownOperation {
  readonly name: string
  readonly records: Records
  /** How its outcomes are written and read. */
  readonly storage: OutcomeStorage
  /** Leased ones: everything else. */
  readonly plan: Plan | undefined
}

const known = new WeakMap<object, KnownOperation>()
const leasedByRecords = new WeakMap<Records, LeasedOperation<never, unknown>[]>()

/** Remembers an operation for as long as it is in use; a leased one for as long as its store is. */
export function makeKnown(operation: object, facts: KnownOperation): void {
  known.set(operation, facts)
  if (facts.plan === undefined) return
  const others = leasedByRecords.get(facts.records) ?? []
  leasedByRecords.set(facts.records, [...others, operation as LeasedOperation<never, unknown>])
}

/** The leased operations of a store that were defined in this process so far. */
export function leasedOperationsOf(records: Records): readonly LeasedOperation<never, unknown>[] {
  return leasedByRecords.get(records) ?? []
}

/** The store that keeps the records of a leased operation; undefined for anything else. */
export function leasedStoreOf(operation: unknown): RecordStore | undefined {
  return knownOperation(operation)?.plan?.domain
}

/** What is known of an operation; undefined for anything else. */
export function knownOperation(operation: unknown): KnownOperation | undefined {
  return typeof operation === 'function' ? known.get(operation) : undefined
}
