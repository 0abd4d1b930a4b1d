// What those who look after records know of an operation that is defined in this process.

import type { RecordStore, Records } from '../../atomicity/index.js'
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

/** Remembers an operation for as long as it is in use. */
export function makeKnown(operation: object, facts: KnownOperation): void {
  known.set(operation, facts)
}

/** The store that keeps the records of a leased operation; undefined for anything else. */
export function leasedStoreOf(operation: unknown): RecordStore | undefined {
  return knownOperation(operation)?.plan?.domain
}

/** What is known of an operation; undefined for anything else. */
export function knownOperation(operation: unknown): KnownOperation | undefined {
  return typeof operation === 'function' ? known.get(operation) : undefined
}
