// Outcomes and messages that only holders of a key can read, bound to the record or the message they belong to.

import { type MessageCodec, type MessageIdentity, ownKeyOf } from '../../atomicity/index.js'
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

/** The secrets of {@link encryptedMessages}. */
export interface MessageEncryptionOptions {
  /**
   * The secret of 32 bytes for the messages of a key, and always the same one for the same key. Undefined: it was
   * deleted; what was written with it is erased, and nothing more can be emitted under that key. Called for each
   * message, so look it up in memory.
   *
   * @param key The key of the message. A message that was delayed has its subject here, where it has one: its own key
   *   is shared with no other.
   */
  readonly keyFor: (key: string, message: MessageIdentity) => Uint8Array | undefined
  /** Chance for the nonces. Default the system's. */
  readonly random?: Random
}

/**
 * A codec for messages that stores their data under AES-256-GCM, with a secret for each key: deleting the secret erases
 * the data of its messages wherever they are stored, in outbox, inbox, dead letters and backups alike. They are
 * delivered as discarded then. Source and id of the message are associated data, so that a text that is moved to
 * another message cannot be decoded. One secret is good for 2^32 messages.
 *
 * @example
 * ```ts
 * import { randomBytes } from 'node:crypto'
 * import { encryptedMessages } from 'reprise/messaging'
 * import { sqlite } from 'reprise/stores/sqlite'
 *
 * const secrets = new Map([['customer/7', randomBytes(32)]])
 * const codec = encryptedMessages({ keyFor: (key) => secrets.get(key) })
 * const db = sqlite({ name: 'shop', file: 'shop.db', messages: { codec } })
 * ```
 */
export function encryptedMessages({ keyFor, random = systemRandom }: MessageEncryptionOptions): MessageCodec {
  if (typeof keyFor !== 'function') throw new RepriseError('ARGUMENT_INVALID', 'keyFor is a function.')
  const secretOf = (message: MessageIdentity): Uint8Array | undefined => {
    const { key, subject, id } = message
    const secret = keyFor(key === ownKeyOf(id) ? (subject ?? key) : key, message)
    if (secret === undefined || (secret instanceof Uint8Array && secret.length === sealKeyBytes)) return secret
    throw new RepriseError('ARGUMENT_INVALID', 'The secret of a key of messages has 32 bytes.')
  }
  return {
    name: 'aes-256-gcm-key-1',
    encode(json, message) {
      const secret = secretOf(message)
      if (secret !== undefined) return seal(secret, json, boundTo(message), random)
      throw new RepriseError('MESSAGE_INVALID', 'There is no secret for the key of a message.', {
        details: { field: 'key' },
      })
    },
    decode(text, message) {
      const secret = secretOf(message)
      return secret === undefined ? undefined : unseal(secret, text, boundTo(message))
    },
  }
}

function boundTo({ source, id }: MessageIdentity): string {
  return encodeTuple(['reprise-message-1', source, id])
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
