// What is reported about the messages of a domain as a whole: how far its readers are, and when dead letters grow.

import { type EventChannel, eventChannel } from './channels.js'

/** How far one reader is. */
export interface MessagesReaderEvent {
  readonly reader: string
  readonly kind: 'relay' | 'consumer'
  /** Keys with messages that are not done. */
  readonly behind: number
  /** Messages that are not done. */
  readonly depth: number
  /** The age of the oldest of them, in ms: how far the reader lags behind. Undefined: there is none. */
  readonly oldestMs: number | undefined
  /** Keys that wait behind a dead letter. */
  readonly parked: number
  /** Open dead letters. */
  readonly letters: number
}

/** How far the readers of a domain are. */
export interface MessagesGaugesEvent {
  /** The domain's name. */
  readonly domain: string
  readonly readers: readonly MessagesReaderEvent[]
}

/** A reader has more open dead letters than before. */
export interface MessagesLettersEvent {
  readonly domain: string
  readonly reader: string
  /** Open dead letters now. */
  readonly letters: number
  /** How many there were. */
  readonly before: number
}

/** How a process hears of messages that others emit. */
export interface MessagesListeningEvent {
  readonly domain: string
  /**
   * `listening`: a word of its own was heard. `lost`: the connection has ended, or could not be had; it is tried again.
   * `deaf`: a word of its own was not heard, as behind a pooler of transactions. Readers ask the store all the time.
   */
  readonly is: 'listening' | 'lost' | 'deaf'
  readonly error: unknown
}

/** Other processes were not told of messages. */
export interface MessagesUntoldEvent {
  readonly domain: string
  /** How often that was so, in this process. */
  readonly dropped: number
  readonly error: unknown
}

/** `reprise.messages.gauges`: how far the readers of a domain are, whenever somebody asks. */
export const messagesGauges: EventChannel<MessagesGaugesEvent> = /* @__PURE__ */ eventChannel('reprise.messages.gauges')

/** `reprise.messages.letters`: a reader has more open dead letters than before. An alarm. */
export const messagesLetters: EventChannel<MessagesLettersEvent> =
  /* @__PURE__ */ eventChannel('reprise.messages.letters')

/** `reprise.messages.listening`: whether readers hear of what other processes emit, when it changes. */
export const messagesListening: EventChannel<MessagesListeningEvent> =
  /* @__PURE__ */ eventChannel('reprise.messages.listening')

/** `reprise.messages.untold`: other processes were not told of messages, which they find by asking. */
export const messagesUntold: EventChannel<MessagesUntoldEvent> = /* @__PURE__ */ eventChannel('reprise.messages.untold')
