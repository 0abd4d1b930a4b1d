// Text that only holders of a key can read or change: AES-256-GCM (NIST SP 800-38D), bound to what it belongs to.

import { RepriseError } from './errors.js'
import { type Random, systemRandom } from './random.js'
import { builtin } from './runtime.js'

/** How many bytes a key has. */
export const sealKeyBytes = 32

const nonceBytes = 12
const tagBytes = 16

/**
 * Seals text under a key of 32 bytes; the associated text is not in the result, and must be given again to open it. The
 * result is base64url: a nonce of 96 random bits, the ciphertext, a tag of 128 bits. One key is good for 2^32 texts (SP
 * 800-38D section 8.3). Needs Node's crypto, else `RUNTIME_UNSUPPORTED`.
 */
export function seal(key: Uint8Array, text: string, associated: string, random: Random = systemRandom): string {
  const nonce = new Uint8Array(nonceBytes)
  random.fill(nonce)
  const cipher = nodeCrypto().createCipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes })
  cipher.setAAD(Buffer.from(associated))
  return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString('base64url')
}

/** Opens sealed text. Throws where it was changed, or the key or the associated text is another one. */
export function unseal(key: Uint8Array, sealed: string, associated: string): string {
  const bytes = Buffer.from(sealed, 'base64url')
  if (bytes.length < nonceBytes + tagBytes) throw new RepriseError('ARGUMENT_INVALID', 'The text was not sealed.')
  const nonce = bytes.subarray(0, nonceBytes)
  const decipher = nodeCrypto().createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes })
  decipher.setAAD(Buffer.from(associated))
  decipher.setAuthTag(bytes.subarray(-tagBytes))
  return decipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, 'utf8') + decipher.final('utf8')
}

function nodeCrypto(): typeof import('node:crypto') {
  const crypto = builtin<typeof import('node:crypto')>('node:crypto')
  if (crypto !== undefined) return crypto
  throw new RepriseError('RUNTIME_UNSUPPORTED', 'AES-GCM needs node:crypto, which this runtime does not offer.')
}
