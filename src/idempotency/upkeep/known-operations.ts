// What those who look after records know of an operation that is defined in this process.

import type { Records } from '../../atomicity/index.js'
import type { Plan, RecordStore } from '../leased/plan.js'
import type { OutcomeValues } from '../values.js'

/** An operation, as far as its records go. */
export interface KnownOperation {
  /** Its name. */
  readonly name: string
  /** Where its records are. */
  readonly records: Records
  /** How its outcomes are written and read. */
  readonly values: OutcomeValues
  /** How long an outcome is remembered, in ms. */
  readonly windowMs: number
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
  const place = knownOperation(operation)?.plan?.place
  return place === undefined ? undefined : { name: place.domain, manifest: place.manifest, records: place.records }
}

/** What is known of an operation; undefined for anything else. */
export function knownOperation(operation: unknown): KnownOperation | undefined {
  return typeof operation === 'function' ? known.get(operation) : undefined
}
