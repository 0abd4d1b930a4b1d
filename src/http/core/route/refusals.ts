// Why a request is not carried out, as problems. What a handler threw of its own accord is not among them: the framework answers that as it always does.

import { type ErrorCode, isRepriseError } from '../../../kernel/index.js'
import { type FailedTransaction, transactionHistoryOf } from '../../../transaction/index.js'
import { type ProblemName, type ProblemOptions, problemKinds } from '../problems.js'

/** What is known of the request that failed. */
export interface Circumstances {
  /** Whether the handler was called for this very request. */
  readonly ran: boolean
  /** Whether the request has a key. */
  readonly keyed: boolean
  /** What the handler threw last. */
  readonly thrown: { readonly error: unknown } | undefined
  /** The name of the key's field, in lower case. */
  readonly keyField: string
  /** Whether an unknown outcome becomes known by itself: not where a person has to settle it. */
  readonly settlesItself: boolean
}

/** A problem that is to be answered. */
export interface Refusal extends ProblemOptions {
  /** Its kind. */
  readonly name: ProblemName
}

const byCode: Partial<Record<ErrorCode, ProblemName>> = {
  BODY_CUT: 'request-invalid',
  BODY_TIME_LIMIT: 'deadline-exceeded',
  BODY_TOO_LARGE: 'body-too-large',
  DEADLINE_EXCEEDED: 'deadline-exceeded',
  FINGERPRINT_INVALID: 'record-unusable',
  KEY_CHARACTER: 'key-invalid',
  KEY_EMPTY: 'key-invalid',
  KEY_FIELD_ESCAPE: 'key-invalid',
  KEY_FIELD_PARAMETER: 'key-invalid',
  KEY_FIELD_REPEATED: 'key-invalid',
  KEY_FIELD_TRAILING: 'key-invalid',
  KEY_FIELD_UNQUOTED: 'key-invalid',
  KEY_FIELD_UNTERMINATED: 'key-invalid',
  KEY_MISSING: 'key-missing',
  KEY_TOO_LONG: 'key-invalid',
  KEY_TOO_OLD: 'key-too-old',
  KEY_TOO_SHORT: 'key-invalid',
  LEASE_LOST: 'outcome-unknown',
  MARKER_INVALID: 'record-unusable',
  OPERATION_IN_FLIGHT: 'in-flight',
  OPERATION_MISMATCH: 'key-reused',
  OPERATION_MODE_CHANGED: 'record-unusable',
  OPERATION_UNKNOWN: 'outcome-unknown',
  OUTCOME_TOO_LARGE: 'answer-not-kept',
  OUTCOME_UNREADABLE: 'record-unusable',
  QUEUE_FULL: 'in-flight',
  RECORD_FORMAT_NEWER: 'record-unusable',
  UNKNOWN_OUTCOME: 'outcome-unknown',
}

const storeCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'CONNECT_TIMEOUT',
  'LOCK_TIMEOUT',
  'MIGRATION_MISSING',
  'MIGRATION_NEWER',
  'POOLING_UNSUPPORTED',
  'POOL_EXHAUSTED',
  'STORE_CLOSED',
])

/** The refusal that an error of the layer, or of its store, comes to; undefined for an error that is the handler's own. */
export function refusalOf(error: unknown, circumstances: Circumstances): Refusal | undefined {
  const { ran, thrown } = circumstances
  const last = lastOf(error)
  const isOwn = thrown?.error === error && (last === undefined || last.ruling.sign === 'body-threw')
  // Whatever ran out of time in a handler whose work was rolled back: nothing was carried out.
  if (isOwn && !isRepriseError(error, 'DEADLINE_EXCEEDED')) return undefined
  // The store's own queue, not that of the duplicates of a key.
  if (isRepriseError(error, 'QUEUE_FULL') && (last !== undefined || 'places' in error.details)) {
    return { name: 'store-unavailable' }
  }
  // Nobody can tell whether it was this key that somebody was at work on.
  if (isRepriseError(error, 'OPERATION_IN_FLIGHT') && error.details['certain'] === false) {
    return { name: 'store-unavailable' }
  }
  const name = isRepriseError(error) ? byCode[error.code] : undefined
  if (name === 'outcome-unknown') return unknownOutcome(circumstances)
  if (isRepriseError(error, 'RECORD_FORMAT_NEWER')) return { name: 'record-unusable', status: 503, retryable: true }
  if (isRepriseError(error, 'BODY_CUT')) {
    return {
      name: 'request-invalid',
      detail: 'The body did not arrive whole. Nothing was carried out.',
      retryable: true,
    }
  }
  if (isRepriseError(error) && (name === 'key-invalid' || name === 'key-missing')) {
    return aboutKey(name, error.message, circumstances.keyField)
  }
  if (name !== undefined) return { name }
  return isStoreTrouble(error, ran) ? { name: 'store-unavailable' } : undefined
}

/** Whether an error came of a store that was down, slow or contended until the attempts were used up, whatever the handler made of it: nothing was carried out. */
export function isPassing(error: unknown): boolean {
  const last = lastOf(error)
  const isDead = last?.ruling.outcome === 'aborted' || last?.resolved === 'aborted'
  return last?.ruling.help === 'transient' && isDead
}

// What is wrong with the key is said: messages hold positions and limits, never what was sent. A field by another name is called by that name.
function aboutKey(name: 'key-invalid' | 'key-missing', message: string, keyField: string): Refusal {
  const detail = name === 'key-invalid' ? `${message} Nothing was carried out.` : problemKinds[name].detail
  return {
    name,
    detail:
      keyField === 'idempotency-key'
        ? detail
        : detail.replace('an Idempotency-Key', `the ${keyField}`).replace('Idempotency-Key', keyField),
  }
}

function unknownOutcome({ ran, keyed, settlesItself }: Circumstances): Refusal {
  const name = 'outcome-unknown'
  // The one whose own run may have had the effect must not read that this request changed nothing.
  if (keyed) return { name, retryable: settlesItself, ...(ran ? { status: 500 } : {}) }
  const detail =
    'The request may have been carried out, and without a key nothing says whether. A repeat may be a second time.'
  return { name, status: 500, retryable: false, detail }
}

function lastOf(error: unknown): FailedTransaction | undefined {
  return transactionHistoryOf(error)?.attempts.at(-1)
}

// A transaction that is known not to have happened because its store was down, slow, full or contended; or whatever went wrong before the handler was called: errors of the user's own code
// do not come here, and drivers say in many ways that they cannot reach their server.
function isStoreTrouble(error: unknown, ran: boolean): boolean {
  // Waiting installs no driver: whoever runs the program has to read this.
  if (isRepriseError(error, 'SQLITE_DRIVER_MISSING')) return false
  // Whatever the phase: tables that are not there, for one, are missed by the first statement after BEGIN.
  if (isRepriseError(error) && storeCodes.has(error.code)) return true
  const last = lastOf(error)
  if (last !== undefined) return isPassing(error) || last.phase === 'waiting' || last.phase === 'connecting'
  return !isRepriseError(error) && !ran
}
