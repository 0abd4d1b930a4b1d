// Maps errors of Reprise and its stores to problem answers. Errors thrown by the handler are not mapped: the framework
// answers those as it always does.

import { type ErrorCode, isRepriseError } from '../../../kernel/index.js'
import { type FailedTransaction, transactionHistoryOf } from '../../../transaction/index.js'
import { type ProblemName, type ProblemOptions, problemKinds } from '../problems.js'
import { thrower } from './handler.js'

/** What is known of the request that failed. */
export interface FailedRequest {
  /** Whether the request has a key. */
  readonly keyed: boolean
  /** The name of the key's field, in lower case. */
  readonly keyField: string
  /** Whether an unknown outcome becomes known by itself: not where a person has to settle it. */
  readonly settlesItself: boolean
}

/** A problem that is to be answered. */
export interface NamedProblem extends ProblemOptions {
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
  MIGRATION_MISSING: 'store-not-migrated',
  OPERATION_IN_FLIGHT: 'in-flight',
  OPERATION_MISMATCH: 'key-reused',
  OPERATION_MODE_CHANGED: 'record-unusable',
  OPERATION_UNKNOWN: 'outcome-unknown',
  OUTCOME_TOO_LARGE: 'answer-not-kept',
  OUTCOME_UNREADABLE: 'record-unusable',
  QUEUE_FULL: 'in-flight',
  RECORD_FORMAT_NEWER: 'record-unusable',
  SEQUENCE_FENCED: 'sequence-fenced',
  SEQUENCE_GAP: 'sequence-gap',
  SEQUENCE_INVALID: 'sequence-invalid',
  SEQUENCE_MISMATCH: 'sequence-reused',
  SEQUENCE_MISSING: 'sequence-missing',
  UNKNOWN_OUTCOME: 'outcome-unknown',
}

// What a handler lets through, and whose answer is known: the time was up, or its number was refused. Nothing was
// carried out, since its work is rolled back.
const ofHandlers: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'DEADLINE_EXCEEDED',
  'SEQUENCE_FENCED',
  'SEQUENCE_GAP',
  'SEQUENCE_INVALID',
  'SEQUENCE_MISMATCH',
  'SEQUENCE_MISSING',
])

const storeCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'COMMITS_UNANSWERED',
  'CONNECT_TIMEOUT',
  'LOCK_TIMEOUT',
  'MIGRATION_NEWER',
  'POOLING_UNSUPPORTED',
  'POOL_EXHAUSTED',
  'STORE_CLOSED',
  'STORE_FULL',
  'STORE_UNREACHABLE',
  'TIMELINE_PASSED',
])

/**
 * The problem that an error of the layer, or of its store, comes to; undefined for an error that is the handler's own.
 */
export function errorProblem(error: unknown, request: FailedRequest): NamedProblem | undefined {
  const last = lastAttempt(error)
  const isOwn = last === undefined ? thrower(error) !== undefined : last.ruling.sign === 'body-threw'
  if (isOwn && !(isRepriseError(error) && ofHandlers.has(error.code))) return undefined
  if (!isRepriseError(error)) return isStoreTrouble(error, last) ? { name: 'store-unavailable' } : undefined
  const { code, details, message } = error
  // The store's own queue, not that of the duplicates of a key.
  const isStoreQueue = code === 'QUEUE_FULL' && (last !== undefined || 'places' in details)
  // Nobody can tell whether it was this key that somebody was at work on.
  const isAnyKey = code === 'OPERATION_IN_FLIGHT' && details['certain'] === false
  if (isStoreQueue || isAnyKey) return { name: 'store-unavailable' }
  if (code === 'RECORD_FORMAT_NEWER') return { name: 'record-unusable', status: 503, retryable: true }
  if (code === 'BODY_CUT') {
    return {
      name: 'request-invalid',
      detail: 'The body did not arrive whole. Nothing was carried out.',
      retryable: true,
    }
  }
  // Of the names that authentication found, since all else in a scope is the route's own.
  if (code === 'SCOPE_INVALID') {
    const detail =
      'The name of the caller is not well-formed text of a length that can be kept. Nothing was carried out.'
    return { name: 'unauthenticated', detail }
  }
  const name = byCode[code]
  // The commit of a transaction is only sent where the handler ran; of a lease, the error says whether it did.
  if (name === 'outcome-unknown') return unknownOutcome(code === 'UNKNOWN_OUTCOME' || details['ran'] === true, request)
  if (name === 'key-invalid' || name === 'key-missing') return aboutKey(name, message, request.keyField)
  const heldSinceMs = details['heldSinceMs']
  if (name === 'in-flight' && typeof heldSinceMs === 'number') return { name, heldSinceMs }
  if (name !== undefined) return { name }
  return isStoreTrouble(error, last) ? { name: 'store-unavailable' } : undefined
}

/**
 * Whether an error came of a store that was down, slow or contended until the attempts were used up, whatever the
 * handler made of it: nothing was carried out.
 */
export function isTransientAbort(error: unknown): boolean {
  const last = lastAttempt(error)
  const isDead = last?.ruling.outcome === 'aborted' || last?.resolved === 'aborted'
  return last?.ruling.help === 'transient' && isDead
}

// What is wrong with the key is said: messages hold positions and limits, never what was sent. A field by another name
// is called by that name.
function aboutKey(name: 'key-invalid' | 'key-missing', message: string, keyField: string): NamedProblem {
  const detail = name === 'key-invalid' ? `${message} Nothing was carried out.` : problemKinds[name].detail
  if (keyField === 'idempotency-key') return { name, detail }
  return {
    name,
    detail: detail.replace('an Idempotency-Key', `the ${keyField}`).replace('Idempotency-Key', keyField),
  }
}

function unknownOutcome(ran: boolean, { keyed, settlesItself }: FailedRequest): NamedProblem {
  const name = 'outcome-unknown'
  // The one whose own run may have had the effect must not read that this request changed nothing.
  if (keyed) return { name, retryable: settlesItself, ...(ran ? { status: 500 } : {}) }
  const detail =
    'The request may have been carried out, and without a key nothing says whether. A repeat may be a second time.'
  return { name, status: 500, retryable: false, detail }
}

function lastAttempt(error: unknown): FailedTransaction | undefined {
  return transactionHistoryOf(error)?.attempts.at(-1)
}

// A transaction that is known not to have happened because its store was down, slow, full or contended. Without a
// transaction: any error that is neither the handler's nor the layer's, since drivers say in many ways that they cannot
// reach their server.
function isStoreTrouble(error: unknown, last: FailedTransaction | undefined): boolean {
  // Waiting installs no driver: whoever runs the program has to read this.
  if (isRepriseError(error, 'SQLITE_DRIVER_MISSING')) return false
  // Whatever the phase: tables that are not there, for one, are missed by the first statement after BEGIN.
  if (isRepriseError(error) && storeCodes.has(error.code)) return true
  if (last !== undefined) return isTransientAbort(error) || last.phase === 'waiting' || last.phase === 'connecting'
  return !isRepriseError(error)
}
