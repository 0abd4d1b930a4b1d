// What a record that was read means to whoever comes with its key, as pure functions.

import { type Content, sameContent } from '../identity/index.js'
import { recordFormat, type StoredRecord } from './record.js'

/** Content, with its fingerprint. */
export interface BoundContent {
  /** The fingerprint of the content; undefined: nothing is compared. */
  readonly fingerprint: string | undefined
  /** What the fingerprint was made of, to be compared with fingerprints made otherwise. */
  readonly content: Content | undefined
}

/**
 * Whether a record is bound to the content of a call, judged by the algorithm and the rule that its fingerprint was
 * made with.
 */
export function isSameContent(
  { fingerprint, content }: BoundContent,
  { fingerprint: stored, format }: Pick<StoredRecord, 'format' | 'fingerprint'>,
): boolean {
  // One of a newer format is refused for that, and nothing in it is read.
  if (stored === undefined || content === undefined || format > recordFormat) return true
  return stored === fingerprint || sameContent(stored, content)
}

/** Whether a record says how its operation ended. */
export function isFinished({ state }: StoredRecord): boolean {
  return state === 'succeeded' || state === 'failed'
}

/** Whether the memory of a finished record has ended: its window is over by the store's clock. */
export function isForgotten(record: StoredRecord, nowMs: number): boolean {
  return isFinished(record) && record.expiresAtMs !== undefined && record.expiresAtMs <= nowMs
}
