// Channels on which Reprise reports what it decides: `node:diagnostics_channel` where there is one, else nothing.

import { diagnosticsChannel } from '../kernel/index.js'

/** A channel of events. Ask `hasSubscribers` before building a message, so that nothing is allocated for nobody. */
export interface EventChannel<Message> {
  /** The channel's name, to be handed to `diagnostics_channel.subscribe`. */
  readonly name: string
  /** Whether anybody listens. */
  readonly hasSubscribers: boolean
  /**
   * Hands a message to all who listen. A listener that throws does not reach the caller: Node reports it as uncaught.
   */
  publish(message: Message): void
}

/** The channel with a name. The same name gives the same channel everywhere in the process. */
export function eventChannel<Message>(name: `reprise.${string}`): EventChannel<Message> {
  return (
    (diagnosticsChannel(name) as EventChannel<Message> | undefined) ?? { name, hasSubscribers: false, publish() {} }
  )
}
