// A key names one intent. The caller mints it before the first attempt and sends the same one with every repeat.
//
// A scope says who may share a key. Without it, a stranger who sends the same key is handed somebody else's answer.

import { encodeTuple, isWellFormed, parseDigest, RepriseError, sha256, uuidv7, uuidv7TimeMs } from '../kernel/index.js'
import type { Pepper } from './pepper.js'

declare const keyBrand: unique symbol

/** A checked key: 1 to 255 characters of visible ASCII (0x21 to 0x7e). Case matters. */
export type Key = string & { readonly [keyBrand]: true }

/** The longest key accepted anywhere, in characters. */
export const maxKeyLength = 255

/** Limits on the length of a key, in characters. */
export interface KeyLimits {
  /** Shortest key accepted. Default 1; 16 or more keeps out counters and other guessable keys. */
  readonly minLength?: number
  /** Longest key accepted. Default and maximum {@link maxKeyLength}. */
  readonly maxLength?: number
}

const invisible = /[^\x21-\x7e]/

/**
 * Mints the key of a new intent: a UUIDv7, so that its age can be read later.
 * Call it once per intent, outside of any loop that repeats, and store it with the intent.
 *
 * @example
 * ```ts
 * import { mintKey } from 'reprise/identity'
 *
 * // Once per intent, before the first attempt; every repeat sends the same key.
 * const order = { id: 4711, key: mintKey() }
 * ```
 */
export function mintKey(): Key {
  return uuidv7() as Key
}

/**
 * Checks a text and returns it as a {@link Key}. Refuses with KEY_EMPTY, KEY_TOO_SHORT, KEY_TOO_LONG or
 * KEY_CHARACTER (with the position, never the character).
 */
export function parseKey(text: string, limits?: KeyLimits): Key {
  if (typeof text !== 'string') throw new RepriseError('ARGUMENT_INVALID', `A key is a string, not ${typeof text}.`)
  if (limits !== undefined) checkKeyLimits(limits)
  const minLength = limits?.minLength ?? 1
  const maxLength = limits?.maxLength ?? maxKeyLength
  const { length } = text
  if (length === 0) throw new RepriseError('KEY_EMPTY', 'The key is empty.')
  if (length > maxLength) throw wrongLength('KEY_TOO_LONG', length, 'most', maxLength)
  const position = text.search(invisible)
  if (position >= 0) {
    throw new RepriseError('KEY_CHARACTER', `The character at position ${position} is not visible ASCII.`, {
      details: { position },
    })
  }
  if (length < minLength) throw wrongLength('KEY_TOO_SHORT', length, 'least', minLength)
  return text as Key
}

function wrongLength(
  code: 'KEY_TOO_LONG' | 'KEY_TOO_SHORT',
  length: number,
  side: string,
  limit: number,
): RepriseError {
  return new RepriseError(code, `The key has ${length} characters; it must have at ${side} ${limit}.`, {
    details: { length, limit },
  })
}

/** Refuses limits that no key could meet, with ARGUMENT_INVALID. */
export function checkKeyLimits(limits: KeyLimits): void {
  const minLength = limits.minLength ?? 1
  const maxLength = limits.maxLength ?? maxKeyLength
  const sound = Number.isInteger(minLength) && Number.isInteger(maxLength)
  if (sound && minLength >= 1 && minLength <= maxLength && maxLength <= maxKeyLength) return
  throw new RepriseError('ARGUMENT_INVALID', `Key lengths must satisfy 1 <= minLength <= maxLength <= ${maxKeyLength}.`)
}

/**
 * How long ago a key was minted, in ms, or undefined when the key carries no time (only UUIDv7 keys do).
 * Negative when the minting machine's clock is ahead of `nowMs`. The caller chose the time: use it to refuse
 * repeats that come too late, never to grant anything.
 *
 * @param nowMs Wall time in ms since 1970, such as `systemClock.wallMs()`; refused with ARGUMENT_INVALID when it is no
 *   number.
 */
export function keyAgeMs(key: Key, nowMs: number): number | undefined {
  if (!Number.isFinite(nowMs))
    throw new RepriseError('ARGUMENT_INVALID', 'The present time is missing or not a number.')
  const mintedAtMs = uuidv7TimeMs(key)
  return mintedAtMs === undefined ? undefined : nowMs - mintedAtMs
}

declare const scopeBrand: unique symbol

/**
 * Who may share a key, as a digest that does not spell out its parts. Whoever can guess all parts can recompute it: it
 * hides names from readers of a log, not from somebody who looks for one name.
 */
export type Scope = string & { readonly [scopeBrand]: true }

/** The name under which a key is stored: a digest of scope and key, or what a pepper made of it. */
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
 *
 * @example
 * ```ts
 * import { scope } from 'reprise/identity'
 *
 * const tenant = 'acme'
 * const owner = scope(tenant, 'alice', 'POST /payments')
 * ```
 */
export function scope(...parts: [string, ...string[]]): Scope {
  if (parts.length === 0 || parts.length > maxParts) {
    throw new RepriseError('SCOPE_INVALID', `A scope has 1 to ${maxParts} parts.`, { details: { parts: parts.length } })
  }
  for (let position = 0; position < parts.length; position += 1) {
    const part = parts[position]
    if (typeof part === 'string' && part.length > 0 && part.length <= maxPartLength && isWellFormed(part)) continue
    const message = `Part ${position} of the scope must be well-formed text of 1 to ${maxPartLength} characters.`
    throw new RepriseError('SCOPE_INVALID', message, { details: { position } })
  }
  return sha256(encodeTuple(['scope1', ...parts])) as string as Scope
}

/**
 * The name under which a store remembers a key: the same only for the same scope and the same key.
 *
 * @param pepper The store's, `db.records.pepper`. Default: it has none.
 */
export function storedKey(scope: Scope, key: Key, pepper?: Pepper): StoredKey {
  try {
    parseDigest(scope)
  } catch (cause) {
    throw new RepriseError('SCOPE_INVALID', 'The scope was not made by scope(…).', { cause })
  }
  const name = sha256(encodeTuple(['key1', scope, parseKey(key)])) as string as StoredKey
  return pepper === undefined ? name : pepper.hide(name)
}

const shapeOfStored = /^(?:sha256|hmac256-[0-9a-f]{8}):[A-Za-z0-9_-]{43}$/

/** Whether a text can be the name under which a key is stored, with a pepper or without. */
export function isStoredKey(text: unknown): text is StoredKey {
  return typeof text === 'string' && shapeOfStored.test(text)
}
