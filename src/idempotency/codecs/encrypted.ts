// Outcomes that only holders of a key can read, bound to the record they belong to.

import { encodeTuple, type Random, RepriseError, seal, sealKeyBytes, systemRandom, unseal } from '../../kernel/index.js'
import type { CodecContext, ValueCodec } from '../outcome.js'
import { parseJson, printJson } from './json.js'

/** The keys of {@link encrypted}. */
export interface EncryptionOptions {
  /**
   * 32 bytes each, by an id of 1 to 32 letters, digits, dashes or underscores that is stored beside the text. Keep old
   * ones for as long as outcomes written with them are remembered.
   */
  readonly keys: Readonly<Record<string, Uint8Array>>
  /** The id of the key that new outcomes are written with. */
  readonly current: string
  /** Chance for the nonces. Default the system's. */
  readonly random?: Random
}

const keyIdShape = /^[A-Za-z0-9_-]{1,32}$/
const largestBytes = 67_108_864

/**
 * A codec that stores results and failures as JSON under AES-256-GCM. The names of the record, the operation and the
 * key are associated data, so that a text that is moved to another record cannot be decoded: the call ends with
 * OUTCOME_UNREADABLE, and nothing is executed again. One key is good for 2^32 outcomes; then make another one the
 * current. Refuses keys that are none with ARGUMENT_INVALID.
 *
 * @example
 * ```ts
 * import { randomBytes } from 'node:crypto'
 * import { encrypted } from 'reprise/idempotency'
 *
 * export const codec = encrypted<{ pin: string }>({ keys: { 'key-1': randomBytes(32) }, current: 'key-1' })
 * ```
 */
export function encrypted<Result = unknown>(options: EncryptionOptions): ValueCodec<Result> {
  const { current, random = systemRandom } = options
  const keys = checkedKeys(options)
  return {
    name: 'aes-256-gcm-1',
    failures: true,
    encode(value, context) {
      const text = printJson(value, largestBytes)
      if (text === undefined) throw new RepriseError('JSON_TOO_LARGE', 'The outcome is too large to be encrypted.')
      return `${current}.${seal(keyOf(keys, current), text, associated(context, current), random)}`
    },
    decode(text, context) {
      const dot = text.indexOf('.')
      const id = text.slice(0, Math.max(0, dot))
      return parseJson(unseal(keyOf(keys, id), text.slice(dot + 1), associated(context, id))) as Result
    },
  }
}

function checkedKeys({ keys, current }: EncryptionOptions): ReadonlyMap<string, Uint8Array> {
  const copies = new Map<string, Uint8Array>()
  for (const [id, key] of Object.entries(Object(keys) as EncryptionOptions['keys'])) {
    if (!keyIdShape.test(id) || !(key instanceof Uint8Array) || key.length !== sealKeyBytes) {
      throw new RepriseError('ARGUMENT_INVALID', 'A key has 32 bytes and an id of 1 to 32 letters, digits, - or _.')
    }
    copies.set(id, Uint8Array.from(key))
  }
  if (!copies.has(current)) throw new RepriseError('ARGUMENT_INVALID', 'The current key is not among the keys.')
  return copies
}

function keyOf(keys: ReadonlyMap<string, Uint8Array>, id: string): Uint8Array {
  const key = keys.get(id)
  if (key === undefined) throw new RepriseError('OUTCOME_UNREADABLE', 'The text names a key that is not at hand.')
  return key
}

function associated({ id, operation }: CodecContext, keyId: string): string {
  return encodeTuple(['reprise-outcome-1', operation, id, keyId])
}
