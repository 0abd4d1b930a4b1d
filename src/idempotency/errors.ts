// Why a call is not carried out, or its outcome is not known, as errors.

import type { StoredRecord } from '../atomicity/index.js'
import { defined, type ErrorCode, type ErrorDetails, isRepriseError, RepriseError } from '../kernel/index.js'
import { type OperationEvent, operationRefused } from '../telemetry/index.js'
import type { Decision } from './machine.js'

/** The error of a decision that refuses. */
export function refusedBy(
  { because, retryInMs }: Pick<Extract<Decision, { readonly act: 'refuse' }>, 'because' | 'retryInMs'>,
  record: StoredRecord | undefined,
): RepriseError {
  switch (because) {
    case 'mismatch':
      return mismatch()
    case 'mode':
      return new RepriseError(
        'OPERATION_MODE_CHANGED',
        'The key was used by an operation of this name in another mode.',
      )
    case 'format':
      return new RepriseError(
        'RECORD_FORMAT_NEWER',
        'The record was written by a newer version than this one; it is neither read nor replaced.',
        { details: { format: record?.format ?? 0 } },
      )
    case 'in-flight':
      return inFlight(defined({ retryInMs, heldSinceMs: record?.claimedAtMs }))
    case 'unknown':
      return operationUnknown({ because: record?.because ?? 'held' })
    default:
      return new RepriseError(
        'MARKER_INVALID',
        'The key is committed as claimed, without an outcome: a body ended its transaction itself, or something else ' +
          'wrote the record. Nothing runs under it until its effect is looked for and the key settled.',
      )
  }
}

/** The key was used with other content. */
export function mismatch(): RepriseError {
  return new RepriseError('OPERATION_MISMATCH', 'The key was used with other content before.')
}

/** Somebody works on the key; `heldSinceMs` says since when, in ms since 1970, where that is known. */
export function inFlight(
  details: {
    readonly retryInMs?: number
    readonly waitedMs?: number
    readonly heldSinceMs?: number
    readonly certain?: boolean
  },
  cause?: unknown,
): RepriseError {
  return new RepriseError('OPERATION_IN_FLIGHT', 'The key is being worked on; try again later.', {
    details: { ...details, retryable: true },
    ...defined({ cause }),
  })
}

/** The operation may have had its effect. */
export function operationUnknown(details: ErrorDetails, cause?: unknown): RepriseError {
  return new RepriseError(
    'OPERATION_UNKNOWN',
    'The operation may have had its effect, and nothing says whether. It is held until it is resolved or settled.',
    { details, ...defined({ cause }) },
  )
}

/** The claim is not held any more. */
export function leaseLost(because: string, details: ErrorDetails = {}, cause?: unknown): RepriseError {
  return new RepriseError(
    'LEASE_LOST',
    'The claim is no longer held: nothing more is written, and nothing more may be sent.',
    { details: { because, ...details }, ...defined({ cause }) },
  )
}

const refusals: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'FAILURE_UNREGISTERED',
  'MARKER_INVALID',
  'OPERATION_IN_FLIGHT',
  'OPERATION_MISMATCH',
  'OPERATION_MODE_CHANGED',
  'OPERATION_REENTERED',
  'OPERATION_UNKNOWN',
  'OUTCOME_TOO_LARGE',
  'OUTCOME_UNREADABLE',
  'QUEUE_FULL',
  'RECORD_FORMAT_NEWER',
])

/** Says that a call was refused, where an error is a refusal and somebody listens. */
export function tellRefusal(error: unknown, event: () => OperationEvent): void {
  if (!operationRefused.hasSubscribers || !isRepriseError(error) || !refusals.has(error.code)) return
  operationRefused.publish({ ...event(), code: error.code })
}
