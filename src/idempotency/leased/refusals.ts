// Why a leased operation is not carried out, or its outcome is not known, as errors.

import type { StoredRecord } from '../../atomicity/index.js'
import { type ErrorDetails, RepriseError } from '../../kernel/index.js'
import { refusalError } from '../call/refusals.js'
import type { Decision } from '../machine.js'

/** The error of a decision that refuses. */
export function refusalOf(
  decision: Extract<Decision, { readonly act: 'refuse' }>,
  record: StoredRecord | undefined,
): RepriseError {
  if (decision.because === 'unknown') return operationUnknown({ because: record?.because ?? 'held' })
  return refusalError(decision, record)
}

/** The operation may have had its effect. */
export function operationUnknown(details: ErrorDetails, cause?: unknown): RepriseError {
  return new RepriseError(
    'OPERATION_UNKNOWN',
    'The operation may have had its effect, and nothing says whether. It is held until it is resolved or settled.',
    { details, ...(cause === undefined ? {} : { cause }) },
  )
}

/** The claim is not held any more. */
export function leaseLost(because: string, details: ErrorDetails = {}, cause?: unknown): RepriseError {
  return new RepriseError(
    'LEASE_LOST',
    'The claim is no longer held: nothing more is written, and nothing more may be sent.',
    { details: { because, ...details }, ...(cause === undefined ? {} : { cause }) },
  )
}

/** Why the store refuses an owner: another one has the claim, a sweep found its lease over, a person has settled it, or its record is not there. */
export type Gone = 'taken-over' | 'expired' | 'settled' | 'removed'

/** Why, by the record that the store showed. */
export function goneBy(record: StoredRecord | undefined): Gone {
  if (record === undefined) return 'removed'
  if (record.state === 'unknown') return 'expired'
  return record.because === 'settled' ? 'settled' : 'taken-over'
}
