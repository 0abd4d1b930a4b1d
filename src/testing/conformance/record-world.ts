// What the cases of records share: names, limits, and records to put there.

import {
  draftedRecord,
  type Expected,
  inspectionOf,
  type RecordDraft,
  type RecordLimits,
  type RecordManifest,
  type Records,
  type StoredRecord,
} from '../../atomicity/index.js'
import { type Key, type StoredKey, scope } from '../../identity/index.js'
import { deadlineAfter } from '../../kernel/index.js'
import type { RecordWorld } from './conformance-case.js'
import { failing, same } from './expectations.js'

/** The name of a record. */
export const id = (name: string): StoredKey => `sha256:${name}` as StoredKey

/** Time enough. */
export const limits = (): RecordLimits => ({ deadline: deadlineAfter('60s') })

/** A claim under a lease, with every member that a claim can have. */
export function leasedDraft(token: string, leaseMs = 60_000, operation = 'charge'): RecordDraft {
  return {
    mode: 'leased',
    operation,
    scope: 'sha256:scope',
    fingerprint: 'sha256:content',
    token,
    leaseMs,
    input: '{"amount":1}',
  }
}

/** A leased record as it would be `agoMs` before now, with some of it otherwise. */
export function leasedRecord(nowMs: number, agoMs: number, otherwise: Partial<StoredRecord> = {}): StoredRecord {
  return { ...draftedRecord(leasedDraft('old', 10), nowMs - agoMs, () => 1), ...otherwise }
}

/** The record that is there, as it was or would be at a version: what a write depends on. */
export async function at(records: Records, name: string, version: number): Promise<Expected> {
  const { record } = await records.read(id(name), limits())
  return { token: record?.token, fence: record?.fence, version }
}

/** Those of some names that have a record. */
export async function present(records: Records, names: readonly string[]): Promise<readonly string[]> {
  const found: string[] = []
  for (const name of names) if ((await records.read(id(name), limits())).record !== undefined) found.push(name)
  return found
}

/** Why a case that looks around among the records does not apply. */
export function cannotInspect({ inspection = true, because }: RecordManifest): string | undefined {
  return inspection ? undefined : (because.inspection ?? 'its records cannot be listed')
}

/** A store whose records cannot be looked at says so, and knows of no notes. */
export async function refusesInspection({ db }: RecordWorld): Promise<void> {
  await failing((async () => inspectionOf(db.records))(), 'CAPABILITY_UNSUPPORTED')
  const { notes } = await db.lookup({ operation: 'nobody', scope: scope('conformance'), key: 'nobody' as Key })
  same(notes, [], 'notes')
}

/** What a store should know of notes: those that are given, or none where it has no way to show them. */
export function noted<Notes>({ db }: Pick<RecordWorld, 'db'>, notes: Notes): Notes | [] {
  return db.manifest.inspection === false ? [] : notes
}
