// What a command says of an error, and how it ends by it.

import { type ErrorCode, isRepriseError } from '../kernel/index.js'
import { printable } from './io.js'
import { UsageError } from './option-table.js'

/** A line about an error, and the code that the command ends with: 1 something failed, 2 used wrongly, 3 there is no such thing. */
export interface Complaint {
  /** One line, fit for a terminal, without passwords. */
  readonly line: string
  /** The code of the end. */
  readonly exitCode: 1 | 2 | 3
}

/** What lies with the store or this machine: no other option would help. */
const failures: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'CONNECT_TIMEOUT',
  'DEADLINE_EXCEEDED',
  'LOCK_TIMEOUT',
  'MARKER_INVALID',
  'MIGRATION_BLOCKED',
  'MIGRATION_MISSING',
  'MIGRATION_NEWER',
  'POOLING_UNSUPPORTED',
  'POOL_EXHAUSTED',
  'QUEUE_FULL',
  'RECORD_FORMAT_NEWER',
  'RUNTIME_UNSUPPORTED',
  'SQLITE_DRIVER_MISSING',
  'STORE_CLOSED',
])

/** What to say of an error, and how to end. */
export function complaintOf(error: unknown): Complaint {
  const code = error instanceof UsageError || isRepriseError(error) ? error.code : undefined
  const line = `${printable(withoutPasswords(messageOf(error)))}${code === undefined ? '' : ` [${code}]`}`
  return { line, exitCode: exitCodeOf(error) }
}

/** A text without the passwords of addresses in it, wherever the address came from. */
export function withoutPasswords(text: string): string {
  return text.replace(/:\/\/\S*@/g, '://…@').replace(/([?&]password=)[^&\s]*/gi, '$1…')
}

function exitCodeOf(error: unknown): 1 | 2 | 3 {
  if (error instanceof UsageError) return 2
  if (!isRepriseError(error)) return 1
  if (error.code === 'SETTLE_REFUSED') return 3
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
