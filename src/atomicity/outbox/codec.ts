// The data of a message as text: JSON, or what a codec makes of it, such as encryption.

import { RepriseError } from '../../kernel/index.js'
import type { StoredMessage } from './message.js'

/** Which message a codec is asked for. */
export type MessageIdentity = Pick<StoredMessage, 'source' | 'id' | 'type' | 'subject' | 'key'>

/** How the data of messages is stored, in the outbox, in the inbox and in dead letters alike. */
export interface MessageCodec {
  /** Stored beside the text, so that it is read by the codec that wrote it: 1 to 64 visible ASCII characters. */
  readonly name: string
  /** The text that is stored in place of the JSON. */
  encode(json: string, message: MessageIdentity): string
  /** The JSON again. Undefined: it was erased on purpose, and nobody can read it any more. */
  decode(text: string, message: MessageIdentity): string | undefined
}

/** Text as it is stored, and who can read it. */
export interface EncodedText {
  /** Undefined: it is JSON. */
  readonly codec: string | undefined
  readonly data: string
}

/** The codecs of a domain: the one that writes, and all that read. */
export class MessageCodecs {
  readonly #writes: MessageCodec | undefined
  readonly #reads = new Map<string, MessageCodec>()

  /** @param earlier Codecs that only read what they have written. */
  constructor(codec: MessageCodec | undefined, earlier: readonly MessageCodec[]) {
    this.#writes = codec
    for (const known of codec === undefined ? earlier : [codec, ...earlier]) {
      demandCodec(known)
      if (this.#reads.has(known.name)) {
        throw new RepriseError('ARGUMENT_INVALID', 'Two codecs of messages have the same name.', {
          details: { option: 'codecs' },
        })
      }
      this.#reads.set(known.name, known)
    }
  }

  /** The text that is stored for the JSON of a message. */
  encode(json: string, message: MessageIdentity): EncodedText {
    const codec = this.#writes
    if (codec === undefined) return { codec: undefined, data: json }
    const data = codec.encode(json, message)
    if (typeof data !== 'string' || data.includes('\0')) {
      throw new RepriseError('MESSAGE_INVALID', 'A codec of messages makes text without NUL, and no promise of it.', {
        details: { field: 'data', codec: codec.name },
      })
    }
    return { codec: codec.name, data }
  }

  /** The data of a stored message; undefined: it was erased. Refuses with MESSAGE_UNREADABLE. */
  decode(message: StoredMessage): unknown {
    const { codec: name, data } = message
    try {
      const json = name === undefined ? data : this.#reader(name).decode(data, message)
      return json === undefined ? undefined : JSON.parse(json)
    } catch (cause) {
      if (cause instanceof RepriseError && cause.code === 'MESSAGE_UNREADABLE') throw cause
      throw new RepriseError('MESSAGE_UNREADABLE', 'The stored data of a message cannot be decoded.', {
        cause,
        details: { codec: name ?? 'json' },
      })
    }
  }

  #reader(name: string): MessageCodec {
    const codec = this.#reads.get(name)
    if (codec !== undefined) return codec
    const message = 'The data of a message was written by a codec that is not known here: name it in messages.codecs.'
    throw new RepriseError('MESSAGE_UNREADABLE', message, { details: { codec: name } })
  }
}

function demandCodec(codec: MessageCodec): void {
  const { name, encode, decode } = Object(codec) as MessageCodec
  const named = typeof name === 'string' && /^[!-~]{1,64}$/.test(name)
  if (named && typeof encode === 'function' && typeof decode === 'function') return
  const message =
    'A codec of messages has a name of 1 to 64 visible ASCII characters, and the functions encode and decode.'
  throw new RepriseError('ARGUMENT_INVALID', message, { details: { option: 'codec' } })
}
