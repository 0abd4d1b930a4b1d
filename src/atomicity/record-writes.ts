// What a write makes of a record, as pure functions: the meaning that every store's writes must have. Stores that are
// no databases use them; the statements of SQL stores are compared with them by tests.

import {
  type AuditNote,
  type Expected,
  type RecordChange,
  type RecordDraft,
  recordFormat,
  type StoredRecord,
} from './record.js'
import type { DueQuery, PurgeQuery } from './records.js'

/** The record of a new claim. */
export function draftedRecord(draft: RecordDraft, nowMs: number, nextFence: () => number): StoredRecord {
  const { mode, operation, scope, fingerprint, token, leaseMs, input } = draft
  return {
    format: recordFormat,
    version: 1,
    mode,
    operation,
    scope,
    fingerprint,
    state: 'claimed',
    token,
    fence: leaseMs === undefined ? undefined : nextFence(),
    firstClaimedAtMs: nowMs,
    claimedAtMs: nowMs,
    dueAtMs: leaseMs === undefined ? undefined : nowMs + leaseMs,
    completedAtMs: undefined,
    expiresAtMs: undefined,
    claims: 1,
    looks: 0,
    codec: undefined,
    value: undefined,
    input,
    because: undefined,
  }
}

/**
 * Whether a record is still the one that was read, so that a write that depends on it may be made. The version alone
 * would not tell: a row that was removed and inserted again begins at 1, and a late write would meet another life of
 * the key. Claims of other lives have other tokens and fences.
 */
export function isStill(record: StoredRecord | undefined, { version, token, fence }: Expected): boolean {
  return record !== undefined && record.version === version && record.token === token && record.fence === fence
}

/** Whether a record may be written to: one of a newer format is left to those who understand it. */
export function isOurFormat({ format }: StoredRecord): boolean {
  return format <= recordFormat
}

/** Whether the outcome of a record is remembered, or still to come. */
export function isLive({ state, expiresAtMs }: StoredRecord, nowMs: number): boolean {
  return (state !== 'succeeded' && state !== 'failed') || expiresAtMs === undefined || expiresAtMs > nowMs
}

/** Whether a sweep takes a record: its lease, or the time until its next look, is over. */
export function isDue(
  record: StoredRecord,
  { operations, marginMs }: Pick<DueQuery, 'operations' | 'marginMs'>,
  nowMs: number,
): boolean {
  const { mode, operation, state, dueAtMs } = record
  if (!isOurFormat(record) || mode !== 'leased' || dueAtMs === undefined) return false
  if (!operations.includes(operation ?? '')) return false
  return state === 'unknown' ? dueAtMs <= nowMs : state === 'claimed' && dueAtMs + marginMs <= nowMs
}

/** As what a purge forgets a record, and the time its age is counted from. */
export interface Forgettable {
  readonly as: 'finished' | 'markers' | 'unknown'
  readonly sinceMs: number
}

/**
 * As what a purge forgets a record, and since when that counts: an outcome from the end of its window on, the marker of
 * a transaction without one from its claim on, an unknown outcome from its first claim on. Undefined: it stays.
 */
export function forgettableSince(record: StoredRecord): Forgettable | undefined {
  const { state, operation, expiresAtMs, claimedAtMs, firstClaimedAtMs } = record
  if (!isOurFormat(record) || state === 'claimed') return undefined
  if (state === 'unknown') return { as: 'unknown', sinceMs: firstClaimedAtMs }
  if (expiresAtMs !== undefined) return { as: 'finished', sinceMs: expiresAtMs }
  return operation === undefined ? { as: 'markers', sinceMs: claimedAtMs } : undefined
}

/** As what a purge forgets a record by the ages that it names. Undefined: it stays. */
export function forgettableAs(
  record: StoredRecord,
  { markersAfterMs, unknownAfterMs }: Pick<PurgeQuery, 'markersAfterMs' | 'unknownAfterMs'>,
  nowMs: number,
): Forgettable['as'] | undefined {
  const found = forgettableSince(record)
  if (found === undefined) return undefined
  const afterMs = { finished: 0, markers: markersAfterMs, unknown: unknownAfterMs }[found.as]
  return afterMs !== undefined && found.sinceMs + afterMs <= nowMs ? found.as : undefined
}

/** How long a record is put off that has been looked at so often before, in ms. */
export function lookDelayMs(looks: number, { baseMs, capMs }: Pick<DueQuery, 'baseMs' | 'capMs'>): number {
  return Math.min(capMs, baseMs * 2 ** looks)
}

/**
 * The record after a sweep has taken it as due: a claim whose lease is over becomes unknown, and the next look comes
 * later than this one did.
 */
export function lookedAt(
  record: StoredRecord,
  delays: Pick<DueQuery, 'baseMs' | 'capMs'>,
  nowMs: number,
): StoredRecord {
  const dueInMs = lookDelayMs(record.looks, delays)
  const expired = record.state === 'claimed' ? { token: null, because: 'lease-expired' } : {}
  const changed = changedRecord(record, { state: 'unknown', dueInMs, ...expired }, nowMs, () => 0)
  return { ...changed, looks: record.looks + 1 }
}

/** What is noted of an unknown outcome that a purge forgets. */
export const droppedNote: AuditNote = {
  action: 'dropped',
  actor: 'purge',
  reason: 'unknown for longer than its retention',
}

/** The record after a change. */
export function changedRecord(
  record: StoredRecord,
  change: RecordChange,
  nowMs: number,
  nextFence: () => number,
): StoredRecord {
  const { claimed, remembered, dueInMs } = change
  const anew = claimed === 'first'
  // All members by name, in the order of a drafted record: records then have one shape, and a spread would be slower.
  return {
    format: recordFormat,
    version: record.version + 1,
    mode: change.mode ?? record.mode,
    operation: record.operation,
    scope: record.scope,
    fingerprint: replaced(change.fingerprint, record.fingerprint),
    state: change.state,
    token: replaced(change.token, record.token),
    fence: change.fence === 'next' ? nextFence() : anew ? undefined : record.fence,
    firstClaimedAtMs: anew ? nowMs : record.firstClaimedAtMs,
    claimedAtMs: claimed === undefined ? record.claimedAtMs : nowMs,
    dueAtMs: dueInMs === undefined ? record.dueAtMs : dueInMs === null ? undefined : nowMs + dueInMs,
    completedAtMs: remembered !== undefined ? nowMs : claimed === undefined ? record.completedAtMs : undefined,
    expiresAtMs:
      remembered === undefined
        ? claimed === undefined
          ? record.expiresAtMs
          : undefined
        : remembered === Number.POSITIVE_INFINITY
          ? undefined
          : nowMs + remembered,
    claims: anew ? 1 : record.claims + (claimed === undefined ? 0 : 1),
    looks: anew ? 0 : record.looks,
    codec: replaced(change.codec, record.codec),
    value: replaced(change.value, record.value),
    input: replaced(change.input, record.input),
    because: replaced(change.because, record.because),
  }
}

function replaced(given: string | null | undefined, before: string | undefined): string | undefined {
  return given === undefined ? before : (given ?? undefined)
}
