// The message as its handler gets it: its data read by the codec that wrote it, and checked by the schema of its type.

import type { Message, StoredMessage } from '../../atomicity/index.js'
import type { StandardSchema } from '../../kernel/index.js'
import type { MessageStore } from '../store.js'
import { reasonOf } from './failure.js'
import type { Ending } from './machine.js'

/** Why a message cannot be handled as it is. */
export type Unfit = Extract<Ending, { readonly is: 'dead' }>

/** In place of a codec: the message had been discarded when it arrived, and this is why. */
const discardedCodec = 'reprise:discarded'

/** What is stored of a message that arrived. */
export function storable<Handle>(
  messages: Pick<MessageStore<Handle>, 'textOf'>,
  message: Message,
): Pick<StoredMessage, 'codec' | 'data'> {
  const { discarded, data } = message
  return discarded === undefined ? messages.textOf(message, data ?? null) : { codec: discardedCodec, data: discarded }
}

/** A stored message with its data. One that was discarded, or whose data was erased, has none, and says so. */
export function readStored<Handle>(
  messages: Pick<MessageStore<Handle>, 'dataOf'>,
  stored: StoredMessage,
): Message | Unfit {
  const { codec, ...envelope } = stored
  if (codec === discardedCodec) return { ...envelope, data: undefined, discarded: stored.data }
  if (stored.discarded !== undefined) return { ...envelope, data: undefined }
  try {
    const data = messages.dataOf(stored)
    return data === undefined ? { ...envelope, data, discarded: 'erased' } : { ...envelope, data }
  } catch (error) {
    return { is: 'dead', code: 'MESSAGE_UNREADABLE', reason: reasonOf(error) }
  }
}

/** The message with its data as the schema gives it back, or why it does not fit. */
export async function fitted(
  message: Message,
  schemas: Readonly<Record<string, StandardSchema>>,
): Promise<Message | Unfit> {
  const schema = Object.hasOwn(schemas, message.type) ? schemas[message.type] : undefined
  if (schema === undefined || message.discarded !== undefined) return message
  try {
    const checked = await schema['~standard'].validate(message.data)
    // A schema may also change what it has checked.
    if (checked.issues === undefined) return { ...message, data: checked.value }
    const first = checked.issues[0]?.message ?? 'it says nothing more'
    return unfit(`Its data is not as the schema of its type says: ${first}`)
  } catch (error) {
    return unfit(`The schema of its type failed: ${reasonOf(error)}`)
  }
}

function unfit(reason: string): Unfit {
  return { is: 'dead', code: 'MESSAGE_INVALID', reason }
}

/** Whether it is a message. */
export function isMessage(read: Message | Unfit): read is Message {
  return !('is' in read)
}
