// A scope says who may share a key. Without it, a stranger who sends the same key is handed somebody else's answer.

import { encodeTuple, isWellFormed, parseDigest, RepriseError, sha256 } from '../kernel/index.js'
import { type Key, parseKey } from './key.js'

declare const scopeBrand: unique symbol

/**
 * Who may share a key, as a digest that does not spell out its parts. Whoever can guess all parts can recompute it: it hides
 * names from readers of a log, not from somebody who looks for one name.
 */
export type Scope = string & { readonly [scopeBrand]: true }

/** The name under which a key is stored: a digest of scope and key. */
export type StoredKey = string & { readonly [scopeBrand]: 'stored' }

const maxParts = 16
const maxPartLength = 4_096

/**
 * Builds a scope from its parts, most general first: `scope(tenant, principal, 'POST /payments')`.
 * The parts are hashed as a tuple, never joined by a separator, so `scope('a:b', 'c')` and `scope('a', 'b:c')` differ,
 * and so do `scope('a')` and `scope('a', '')` (which is refused).
 *
 * A part that is missing or empty is refused with SCOPE_INVALID: two callers whose tenant could not be read
 * would otherwise share one scope.
 */
export function scope(...parts: [string, ...string[]]): Scope {
  if (parts.length === 0 || parts.length > maxParts) {
    throw new RepriseError('SCOPE_INVALID', `A scope has 1 to ${maxParts} parts.`, { details: { parts: parts.length } })
  }
  parts.forEach((part, position) => {
    if (typeof part !== 'string' || part.length === 0 || part.length > maxPartLength || !isWellFormed(part)) {
      const details = { position }
      throw new RepriseError(
        'SCOPE_INVALID',
        `Part ${position} of the scope must be well-formed text of 1 to ${maxPartLength} characters.`,
        { details },
      )
    }
  })
  return sha256(encodeTuple(['scope1', ...parts])) as string as Scope
}

/** The name under which a store remembers a key: the same only for the same scope and the same key. */
export function storedKey(scope: Scope, key: Key): StoredKey {
  try {
    parseDigest(scope)
  } catch (cause) {
    throw new RepriseError('SCOPE_INVALID', 'The scope was not made by scope(…).', { cause })
  }
  return sha256(encodeTuple(['key1', scope, parseKey(key)])) as string as StoredKey
}
