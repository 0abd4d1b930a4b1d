// What relays, consumers and tools need of a domain whose transactions emit messages.

import type { StoredMessage } from '../atomicity/index.js'
import type { LaneStore } from './lanes.js'
import type { LetterStore } from './letters.js'

/** The messages of a domain. */
export interface MessageStore<Handle> extends LaneStore<Handle>, LetterStore {
  /** The source of what is emitted here. */
  readonly source: string
  /**
   * The data of a stored message, by the codec that wrote it. Undefined: it was erased. Refuses with MESSAGE_UNREADABLE
   * where the codec is not known here, or fails.
   */
  dataOf(message: StoredMessage): unknown
  /** The text that the codec in use makes of data, for messages that are stored on their arrival. */
  textOf(
    message: Pick<StoredMessage, 'source' | 'id' | 'type' | 'key'>,
    data: unknown,
  ): { codec: string | undefined; data: string }
  /**
   * Calls `listener` after a transaction of this domain object has committed messages, soon and once for several.
   * Returns what ends that.
   */
  onEmit(listener: () => void): () => void
}

/** What has messages: every domain. */
export interface MessageDomain<Handle> {
  /** Its name, in events. */
  readonly name: string
  readonly messages: MessageStore<Handle>
}
