// A resolve token names a transaction whose outcome is not known, as text that outlives the process.

import type { Trace } from '../../atomicity/index.js'
import { isStoredKey, type StoredKey } from '../../identity/index.js'
import { defined, RepriseError } from '../../kernel/index.js'

/** What a token names: a marker, or a transaction on its server. */
export type Unresolved = KeyedUnresolved | { readonly trace: Trace }

/** A record, and the claim of the transaction that was to write it; tokens of the first version name no claim. */
interface KeyedUnresolved {
  readonly id: StoredKey
  readonly token?: string
  /** Until when its outcome is remembered for certain, in ms since 1970. Absent: for ever. */
  readonly until?: number
}

const version = 'rt1.'

/** The token of a transaction in a domain. */
export function printResolveToken(domain: string, unresolved: Unresolved): string {
  return version + Buffer.from(JSON.stringify({ domain, ...unresolved })).toString('base64url')
}

/** Reads a token. Refuses with RESOLVE_TOKEN_INVALID what is not one, or belongs to another domain. */
export function parseResolveToken(domain: string, token: string): Unresolved {
  const parsed = typeof token === 'string' && token.startsWith(version) ? parsedToken(token) : undefined
  if (parsed === undefined) throw refused('The text is not a resolve token of this version.')
  if (parsed['domain'] !== domain) throw refused('The resolve token belongs to another domain.')
  const { id } = parsed
  if (isStoredKey(id)) {
    const token = typeof parsed['token'] === 'string' ? parsed['token'] : undefined
    const until = Number.isFinite(parsed['until']) ? (parsed['until'] as number) : undefined
    return { id, ...defined({ token, until }) }
  }
  const trace = parsed['trace']
  if (typeof trace === 'object' && trace !== null && Object.values(trace).every((part) => typeof part === 'string'))
    return { trace: trace as Trace }
  throw refused('The resolve token names nothing.')
}

function parsedToken(token: string): Record<string, unknown> | undefined {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(token.slice(version.length), 'base64url').toString())
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

function refused(message: string): RepriseError {
  return new RepriseError('RESOLVE_TOKEN_INVALID', message)
}
