// What an error means that comes through an ORM: the engine's code where it can be found inside, the ORM's own where
// not.

import {
  type ClassificationRow,
  errorsIn,
  type Phase,
  type Ruling,
  type RulingWord,
  ruleBy,
  ruleByFirst,
  rulingOf,
} from '../../atomicity/index.js'
import { isRepriseError } from '../../kernel/index.js'
import { isBusySign } from '../sql/index.js'
import { callbackTable } from './classification-table.js'

/** The table, for documents and reports. */
export const callbackClassification: readonly ClassificationRow[] = callbackTable

/** What an error means in a phase. */
export type Classify = (error: unknown, phase: Phase) => Ruling

/**
 * The classifier of a domain. Total: what neither the user's function nor the table knows gets the ruling of the
 * unlisted.
 *
 * @param own What the user says about it.
 * @param unsure Errors of COMMIT under a key: whatever they look like, the key is asked, since an ORM may fail after
 * COMMIT as well.
 */
export function classifierOf(
  own: ((error: unknown, phase: Phase) => RulingWord | undefined) | undefined,
  unsure: WeakSet<object>,
): Classify {
  const classify: Classify = (error, phase) => {
    const dead = ruleByFirst(callbackTable, error, phase, (first) => classify(first, 'body'))
    if (dead !== undefined) return dead
    const signs = signsOf(error)
    const word = isRepriseError(error) ? undefined : own?.(error, phase)
    const ruling =
      word === undefined ? ruleBy(callbackTable, signs, phase) : rulingOf(word, signs[0] ?? 'classified by the domain')
    const asked = phase === 'committing' && typeof error === 'object' && error !== null && unsure.has(error)
    return asked ? { ...ruling, outcome: 'unknown', connection: 'discard' } : ruling
  }
  return classify
}

/**
 * Whether an error that a body threw is one of the database, and not the body's own.
 *
 * @param own What the user says about errors: whatever it knows is one.
 */
export function isOfDatabase(error: unknown, own?: (error: unknown, phase: Phase) => RulingWord | undefined): boolean {
  if (!isRepriseError(error) && own?.(error, 'body') !== undefined) return true
  if (isRepriseError(error) && error.code !== 'LOCK_TIMEOUT') return false
  const [outermost] = errorsIn(error)
  // A network error as it is may be that of any call; inside an ORM's it is the connection's.
  const signs = signsOf(error).filter((sign) => sign !== lost || !isNetworkCode(outermost?.['code']))
  return signs.some((sign) => ruleBy(callbackTable, [sign], 'body').sign === sign && isListed(sign))
}

/**
 * The signs that an error shows, outermost first: `code` and `originalCode` of the error and of those in `driverError`,
 * `original`, `parent`, `cause`, `meta` and `driverAdapterError`; what means that the connection is gone is
 * `connection-lost`. Pure.
 */
export function signsOf(error: unknown): readonly string[] {
  const signs: string[] = []
  for (const found of errorsIn(error)) {
    const { code, originalCode, message, name, kind } = found
    for (const sign of [code, originalCode]) if (typeof sign === 'string') signs.push(isNetworkCode(sign) ? lost : sign)
    if ([message, name, kind].some((word) => lostWords.has(String(word)))) signs.push(lost)
  }
  return signs
}

/** Whether somebody else has the lock of the SQLite file below the ORM. */
export function isBusy(error: unknown): boolean {
  return signsOf(error).some(isBusySign)
}

const lost = 'connection-lost'

function isListed(sign: string): boolean {
  return callbackTable.some(
    ({ sign: listed, body }) =>
      body !== undefined && (listed.endsWith('*') ? sign.startsWith(listed.slice(0, -1)) : listed === sign),
  )
}

function isNetworkCode(code: unknown): boolean {
  return typeof code === 'string' && networkCodes.has(code)
}

const networkCodes: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'ECONNABORTED',
  'ECONNREFUSED',
  'EPIPE',
  'ETIMEDOUT',
  'ENETRESET',
  'ENETDOWN',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
])

// Messages of pg, which has no codes for them; the names under which TypeORM says that a connection ended while nothing
// was sent on it; the kinds that a driver adapter of Prisma makes of errors of the network.
const lostWords: ReadonlySet<string> = new Set([
  'Connection terminated unexpectedly',
  'Connection terminated',
  'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable',
  'QueryRunnerAlreadyReleasedError',
  'QueryRunnerProviderAlreadyReleasedError',
  'ConnectionClosed',
  'DatabaseNotReachable',
  'SocketTimeout',
])
