// What an error of PostgreSQL or of its driver means, in each phase, as data.
//
// A SQLSTATE that PostgreSQL answers to COMMIT as an ERROR is a definite abort: after the commit record an error would
// be a PANIC (xact.c). FATAL, class 08, class XX and 40003 are not: a pooler may have made them up, or the connection
// ended at an unknown point.

import { type ClassificationRow, type Phase, type Ruling, ruleBy, ruleByFirst } from '../../atomicity/index.js'
import { isRepriseError } from '../../kernel/index.js'
import { LockTimeoutError } from '../sql/index.js'
import { postgresTable } from './classification-table.js'

/** What an error means in a phase. Total: an error that is not in the table gets the ruling of the unlisted. */
export function classifyPostgres(error: unknown, phase: Phase): Ruling {
  const dead = ruleByFirst(postgresTable, error, phase, (first) => classifyPostgres(first, 'body'))
  if (dead !== undefined) return dead
  const { blocked, ...ruling } = ruleBy(postgresTable, signsOf(error), phase)
  return blocked && waitedForRow(error) ? { ...ruling, blocked } : ruling
}

// By the presence of a context, which the server gives to a wait for another transaction's row, in words that are
// translated. A wait for the table, or for its next page, has none, and says nothing about a key.
function waitedForRow(error: unknown): boolean {
  const { where, cause } = Object(error) as { readonly where?: unknown; readonly cause?: unknown }
  return (typeof where === 'string' && where !== '') || (cause !== undefined && waitedForRow(cause))
}

/** Whether the connection that an error came from is gone, or in a state nobody knows. */
export function endsConnection(error: unknown): boolean {
  return signsOf(error).some((sign) => connectionSigns.has(sign))
}

const connectionSigns: ReadonlySet<string> = new Set(['connection-lost', 'query-timeout', 'fatal'])

/**
 * The signs that an error shows, most telling first: what a FATAL means at COMMIT, its SQLSTATE or the driver's sign,
 * then what its severity alone says. An error that wraps another one, as those of query builders do, shows the signs of
 * its cause. Pure.
 */
export function signsOf(error: unknown): readonly string[] {
  let current = error
  for (let depth = 0; depth < 5; depth++) {
    const signs = ownSigns(current)
    if (signs.length > 0) return signs
    current = (current as { readonly cause?: unknown } | null | undefined)?.cause
  }
  return []
}

const listed: ReadonlySet<string> = new Set(postgresTable.map(({ sign }) => sign))

function ownSigns(error: unknown): readonly string[] {
  if (typeof error !== 'object' || error === null) return []
  const { code, severity, message, routine, cause } = error as Record<string, unknown>
  if (isRepriseError(error)) return cause === undefined || listed.has(error.code) ? [error.code] : []
  if (typeof code === 'string' && typeof severity === 'string' && /^[0-9A-Z]{5}$/.test(code)) {
    return serverSigns(code, severity, routine)
  }
  if (typeof code === 'string' && Object.hasOwn(networkSigns, code)) return [networkSigns[code] as string]
  return driverSigns.filter(([text]) => message === text).map(([, sign]) => sign)
}

// The severity is translated by the server. ERROR and FATAL are trusted as what they say; of any other word nothing is
// concluded, so an unlisted code at COMMIT is resolved.
function serverSigns(code: string, severity: string, routine: unknown): readonly string[] {
  const special = specialSigns.filter(([of, by]) => code === of && routine === by).map(([, , sign]) => sign)
  if (severity === 'FATAL' || severity === 'PANIC') return ['fatal-at-commit', ...special, code, 'fatal']
  return severity === 'ERROR' ? [...special, code, 'error-at-commit'] : [...special, code]
}

// A code that stands for several things; the function that raised it, whose name is never translated, tells them apart.
const specialSigns: readonly (readonly [code: string, routine: string, sign: string])[] = [
  ['0A000', 'RevalidateCachedQuery', 'cached-plan-changed'],
  ['08P01', 'exec_bind_message', 'values-mismatch'],
]

const networkSigns: Readonly<Record<string, string>> = {
  ECONNRESET: 'connection-lost',
  ECONNABORTED: 'connection-lost',
  EPIPE: 'connection-lost',
  ETIMEDOUT: 'connection-lost',
  ENETRESET: 'connection-lost',
  ENETDOWN: 'connection-lost',
  ENETUNREACH: 'connection-lost',
  EHOSTUNREACH: 'connection-lost',
  ECONNREFUSED: 'connection-refused',
  ENOENT: 'connection-refused', // no socket file: the server is not up
  ENOTFOUND: 'connection-refused',
  EAI_AGAIN: 'connection-refused',
}

// pg has no codes for these.
const driverSigns: readonly (readonly [message: string, sign: string])[] = [
  ['Connection terminated unexpectedly', 'connection-lost'],
  ['Connection terminated', 'connection-lost'],
  ['Client has encountered a connection error and is not queryable', 'connection-lost'],
  ['Client was closed and is not queryable', 'connection-lost'],
  ['Query read timeout', 'query-timeout'],
  ['timeout exceeded when trying to connect', 'POOL_EXHAUSTED'],
  ['timeout expired', 'CONNECT_TIMEOUT'],
  ['Connection terminated due to connection timeout', 'CONNECT_TIMEOUT'],
  ['Cannot use a pool after calling end on the pool', 'pool-ended'],
]

/** The table, for documents and reports. */
export const postgresClassification: readonly ClassificationRow[] = postgresTable

/** Whether the connection is sound: the server refused one of the statements. */
export function isServerError(error: unknown): boolean {
  if (error instanceof LockTimeoutError) return true
  const { code, severity } = error as { readonly code?: unknown; readonly severity?: unknown }
  return typeof code === 'string' && typeof severity === 'string' && !endsConnection(error)
}
