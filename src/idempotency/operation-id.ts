// The name under which an operation's record is stored: a digest of operation, scope and key, so that neither is spelled out, and no two of them meet.

import type { Key, Scope, StoredKey } from '../identity/index.js'
import { parseKey } from '../identity/index.js'
import { encodeTuple, parseDigest, RepriseError, sha256 } from '../kernel/index.js'

/** The record's name. Refuses with SCOPE_INVALID or the codes of keys. */
export function operationId(operation: string, scope: Scope, key: Key): StoredKey {
  try {
    parseDigest(scope)
  } catch (cause) {
    throw new RepriseError('SCOPE_INVALID', 'The scope was not made by scope(…).', { cause })
  }
  return sha256(encodeTuple(['op1', operation, scope, parseKey(key)])) as string as StoredKey
}
