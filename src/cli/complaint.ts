// The message and the exit code for an error that a command failed with.

import { type ErrorCode, isRepriseError } from '../kernel/index.js'
import { printable } from './io.js'
import { UsageError } from './option-table.js'

/** The message for an error, and the exit code: 1 for a failure, 2 for wrong use, 3 where there is no such record. */
export interface Complaint {
  /** One line, fit for a terminal, without passwords. */
  readonly line: string
  readonly exitCode: 1 | 2 | 3
}

/** Errors that lie with the store or this machine. No other option would help, so they are no wrong use. */
const failures: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'COMMITS_UNANSWERED',
  'CONNECT_TIMEOUT',
  'DEADLINE_EXCEEDED',
  'LOCK_TIMEOUT',
  'MARKER_INVALID',
  'MIGRATION_BLOCKED',
  'MIGRATION_MISSING',
  'MIGRATION_NEWER',
  'PEPPER_RENAME_REFUSED',
  'POOLING_UNSUPPORTED',
  'POOL_EXHAUSTED',
  'QUEUE_FULL',
  'RECORD_FORMAT_NEWER',
  'RUNTIME_UNSUPPORTED',
  'SQLITE_DRIVER_MISSING',
  'STORE_CLOSED',
  'STORE_FULL',
  'STORE_UNREACHABLE',
  'TIMELINE_PASSED',
  'UPKEEP_UNKNOWN',
])

/** The message and the exit code for an error. */
export function complaintOf(error: unknown): Complaint {
  const code = error instanceof UsageError || isRepriseError(error) ? error.code : undefined
  const line = `${printable(withoutPasswords(messageOf(error)))}${code === undefined ? '' : ` [${code}]`}`
  return { line, exitCode: exitCodeOf(error) }
}

/** The text with the passwords of addresses removed, wherever the address came from. */
export function withoutPasswords(text: string): string {
  return text.replace(/:\/\/\S*@/g, '://…@').replace(/([?&]password=)[^&\s]*/gi, '$1…')
}

function exitCodeOf(error: unknown): 1 | 2 | 3 {
  if (error instanceof UsageError) return 2
  if (!isRepriseError(error)) return 1
  if (error.code === 'SETTLE_REFUSED' || error.code === 'LETTER_REFUSED') return 3
  return failures.has(error.code) ? 1 : 2
}

function messageOf(error: unknown): string {
  if (isRepriseError(error, 'SETTLE_REFUSED')) return `nothing was settled: the record is ${word(error.details)}`
  // A host with several addresses fails with one error for each, and no message of its own.
  const first: unknown = error instanceof AggregateError && error.message === '' ? error.errors[0] : error
  return first instanceof Error && first.message !== '' ? first.message : 'something failed'
}

const refusals: Readonly<Record<string, string>> = {
  absent: 'not there',
  finished: 'finished already',
  'in-flight': 'being worked on',
  format: 'of a newer version',
}

function word({ because, retryInMs }: Readonly<Record<string, unknown>>): string {
  const wait = typeof retryInMs === 'number' ? `; its lease is over in ${Math.ceil(retryInMs / 1000)} s` : ''
  return `${refusals[String(because)] ?? 'not one that can be settled'}${wait}`
}
