// Records that are looked for among many.

import { inspectionOf, type NamedRecord, type RecordState } from '../../atomicity/index.js'
import { operationId } from '../../idempotency/index.js'
import type { Key, Scope } from '../../identity/index.js'
import { defined } from '../../kernel/index.js'
import { printable } from '../io.js'
import { type CommandStore, commandLimits } from './open-store.js'
import type { NamedParts } from './which-record.js'

/** At most so many records are looked at. */
export const mostListed = 1_000

/** Which records are wanted. */
export interface Wanted {
  readonly operation?: string | undefined
  readonly scope?: Scope | undefined
  readonly state?: RecordState | undefined
  readonly limit: number
}

/**
 * Records, newest first. What the indexes of time do not hold is listed by name, and put in order here.
 */
export async function newest(store: CommandStore, wanted: Wanted): Promise<readonly NamedRecord[]> {
  const { operation, scope, state, limit } = wanted
  const inspection = inspectionOf(store.records)
  const isUnfinished = state === 'unknown' || state === 'claimed'
  if (!isUnfinished && inspection.recent !== undefined) {
    return inspection.recent({ limit, ...defined({ operation, scope, state }) }, commandLimits())
  }
  const found = await inspection.list({ limit: mostListed, ...defined({ operation, state }) }, commandLimits())
  const atMs = ({ record }: NamedRecord): number => record.completedAtMs ?? record.claimedAtMs
  return found
    .filter(({ record }) => scope === undefined || record.scope === scope)
    .sort((one, other) => atMs(other) - atMs(one))
    .slice(0, limit)
}

/** How many records of an operation hold a key under other scopes. */
export interface Elsewhere {
  readonly operation: string
  readonly records: number
}

/**
 * Among the newest records: whose names come of this key and their own scopes. Nobody else's scope is shown.
 */
export async function underOtherScopes(store: CommandStore, { key }: NamedParts): Promise<readonly Elsewhere[]> {
  const counts = new Map<string, number>()
  for (const { record } of await newestOfKey(store, key, {})) {
    const operation = record.operation ?? ''
    counts.set(operation, (counts.get(operation) ?? 0) + 1)
  }
  return [...counts].map(([operation, records]) => ({ operation, records }))
}

/** Among the newest records that are wanted: those whose names come of this key and their own scopes. */
export async function newestOfKey(
  store: CommandStore,
  key: Key | undefined,
  { operation, scope }: Pick<Wanted, 'operation' | 'scope'>,
): Promise<readonly NamedRecord[]> {
  // Under a pepper nobody knows which scope a record has.
  if (key === undefined || store.records.pepper !== undefined) return []
  const found = await newest(store, { limit: mostListed, operation, scope })
  return found.filter(({ id, record }) => {
    if (record.operation === undefined || record.scope === undefined) return false
    return operationId(record.operation, record.scope as Scope, key) === id
  })
}

/** The same in words, a line for each operation. */
export function elsewhereText({ operation, records }: Elsewhere): string {
  const many = records === 1 ? 'a record' : `${records} records`
  return `the same key has ${many} of ${printable(operation)} under another scope: is the scope right?\n`
}
