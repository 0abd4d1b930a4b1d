// What relays, consumers and tools need of a domain whose transactions emit messages.

import type { OutboxReading } from '../atomicity/index.js'
import type { LaneStore } from './lanes.js'
import type { LetterStore } from './letters.js'

/** The messages of a domain. */
export interface MessageStore<Handle> extends LaneStore<Handle>, LetterStore, OutboxReading {}

/** What has messages: every domain. */
export interface MessageDomain<Handle> {
  /** Its name, in events. */
  readonly name: string
  readonly messages: MessageStore<Handle>
}
