// What the cases of records share: names, limits, and records to put there.

import {
  draftedRecord,
  type Expected,
  type RecordDraft,
  type RecordLimits,
  type Records,
  type StoredRecord,
} from '../../atomicity/index.js'
import type { StoredKey } from '../../identity/index.js'
import { deadlineAfter } from '../../kernel/index.js'

/** The name of a record. */
export const id = (name: string): StoredKey => `sha256:${name}` as StoredKey

/** Time enough. */
export const limits = (): RecordLimits => ({ deadline: deadlineAfter('20s') })

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
