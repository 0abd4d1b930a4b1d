// Digests that say which algorithm made them, so that a stored one can be compared after the default has changed.

import { RepriseError } from './errors.js'
import { builtin } from './runtime.js'
import { byteCount, isWellFormed } from './text.js'

/** A SHA-256 digest (FIPS 180-4): `sha256:` and 32 bytes as base64url without padding (RFC 4648 section 5). */
export type Digest = `sha256:${string}`

/** The algorithm ids that a digest may carry. */
export type DigestAlgorithm = 'sha256'

/** A digest taken apart. */
export interface DigestParts {
  readonly algorithm: DigestAlgorithm
  /** The bytes as base64url without padding: 43 characters. */
  readonly value: string
}

// 43 characters hold 258 bits; the last two must be zero, or one digest would have four spellings.
const shape = /^sha256:([A-Za-z0-9_-]{42}[AEIMQUYcgkosw048])$/

let crypto: typeof import('node:crypto') | undefined

/**
 * The SHA-256 digest of bytes, or of text as UTF-8. Text with half of a surrogate pair is refused with
 * `ARGUMENT_INVALID`, since all such halves would become the same replacement character; so are bytes whose buffer was
 * transferred, since all such would be empty. Needs Node's crypto, else `RUNTIME_UNSUPPORTED`.
 */
export function sha256(data: string | Uint8Array): Digest {
  if (typeof data === 'string') {
    if (!isWellFormed(data)) throw new RepriseError('ARGUMENT_INVALID', 'The text to digest is not well-formed.')
  } else if (byteCount(data) === undefined) {
    throw new RepriseError('ARGUMENT_INVALID', 'A digest is made of text or of a Uint8Array.')
  }
  crypto ??= builtin<typeof import('node:crypto')>('node:crypto')
  if (crypto === undefined) {
    throw new RepriseError('RUNTIME_UNSUPPORTED', 'SHA-256 needs node:crypto, which this runtime does not offer.')
  }
  // The one-shot form makes no Hash object; the other is for runtimes that lack it.
  if (typeof crypto.hash === 'function') return `sha256:${crypto.hash('sha256', data, 'base64url')}`
  return `sha256:${crypto.createHash('sha256').update(data).digest('base64url')}`
}

/**
 * HMAC-SHA-256 (RFC 2104) under a key that is prepared once: a function from text to 32 bytes, as base64url without
 * padding or as hexadecimal digits. Needs Node's crypto, else `RUNTIME_UNSUPPORTED`.
 */
export function hmacSha256(key: Uint8Array): (text: string, as?: 'base64url' | 'hex') => string {
  const node = builtin<typeof import('node:crypto')>('node:crypto')
  if (node === undefined) {
    throw new RepriseError('RUNTIME_UNSUPPORTED', 'HMAC needs node:crypto, which this runtime does not offer.')
  }
  const prepared = node.createSecretKey(key)
  return (text, as = 'base64url') => node.createHmac('sha256', prepared).update(text).digest(as)
}

/** Takes a digest apart, or refuses it with `DIGEST_INVALID`: unknown algorithm, wrong length, stray characters. */
export function parseDigest(text: string): DigestParts {
  const value = typeof text === 'string' ? shape.exec(text)?.[1] : undefined
  if (value === undefined) {
    throw new RepriseError('DIGEST_INVALID', 'The text is not sha256: followed by 43 characters of base64url.')
  }
  return { algorithm: 'sha256', value }
}

/**
 * Whether two digests are equal, in a time that does not depend on where they differ. Refuses what is not a digest with
 * `DIGEST_INVALID`, so that two missing values never count as equal.
 */
export function sameDigest(a: Digest, b: Digest): boolean {
  const left = parseDigest(a)
  const right = parseDigest(b)
  let difference = left.algorithm === right.algorithm ? 0 : 1
  // Both values have 43 characters once parsed.
  for (let index = 0; index < left.value.length; index += 1) {
    difference |= left.value.charCodeAt(index) ^ right.value.charCodeAt(index)
  }
  return difference === 0
}
