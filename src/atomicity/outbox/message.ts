// A message: plain data with a name that never changes, a key that it stays in order under, and a place in that order.

import { type Duration, RepriseError } from '../../kernel/index.js'

/** A message, as it is published and handled. On the wire it is an event of CloudEvents 1.0. */
export interface Message<Data = unknown> {
  /** Who made it, as a URI reference. With `id` it is the identity of the message, everywhere and for good. */
  readonly source: string
  readonly id: string
  /** What happened, such as `order.placed`. */
  readonly type: string
  /** What it happened to, such as `order/4711`. */
  readonly subject: string | undefined
  /** Messages with the same key stay in their order. */
  readonly key: string
  /**
   * Its place among the messages of its key. Within an epoch the numbers begin at 1 and have no gap; a higher epoch
   * begins anew. Undefined: it was made by somebody who does not number.
   */
  readonly place: MessagePlace | undefined
  /** The version of the subject after what happened. */
  readonly version: number | undefined
  /** When it was emitted, in ms since 1970, by the store's clock. */
  readonly atMs: number
  /** Derived from the key of the intent that caused it. */
  readonly intent: string | undefined
  /** The W3C trace context of whoever emitted it. */
  readonly traceparent: string | undefined
  /** The address of the schema of its data. */
  readonly schema: string | undefined
  readonly data: Data
  /** Present: a person discarded the message for this reason, or its data was erased. It has no data then. */
  readonly discarded?: string | undefined
}

/** A place in the order of a key. The higher epoch is later, then the higher number. */
export interface MessagePlace {
  readonly epoch: number
  readonly number: number
}

/** What a body hands to `tx.emit`. */
export interface MessageDraft<Data = unknown> {
  /** What happened: 1 to 255 characters. */
  readonly type: string
  /** What it happened to: 1 to 255 characters. Default: none. */
  readonly subject?: string
  /**
   * Messages with the same key are delivered in the order of their commits: 1 to 255 characters. Default: the subject;
   * without one the message is in order with no other.
   */
  readonly key?: string
  /** Plain data, stored as JSON. */
  readonly data: Data
  /**
   * 1 to 255 visible ASCII characters. Two messages of a domain with the same id are refused with MESSAGE_EXISTS: for
   * what is computed, compute it with `contentKey`. Default: a new UUIDv7.
   */
  readonly id?: string
  /**
   * The version of the subject, a whole number from 1. A second message with the same subject and version is refused
   * with VERSION_TAKEN, also when the first one has been purged. Of what was purged only the highest version is
   * remembered, so that a lower one is refused too, whether it was emitted or not. It needs a subject, and no other
   * key. Default: none.
   */
  readonly version?: number
  /**
   * The message is delivered no earlier than this after its commit. It is then in order with no other message, and has
   * a key of its own. Default: at once.
   */
  readonly after?: Duration
  /** The address of the schema of `data`, as a URI. Default: none. */
  readonly schema?: string
}

/** A message as it goes into the outbox, before its place is known. */
export interface Emission {
  readonly id: string
  readonly type: string
  readonly subject: string | undefined
  /** What it stays in order under. A delayed message has one of its own. */
  readonly key: string
  readonly version: number | undefined
  /** How long after its commit it may be delivered, in ms; 0: at once. */
  readonly afterMs: number
  readonly intent: string | undefined
  readonly traceparent: string | undefined
  readonly schema: string | undefined
  /** How `data` is to be read; undefined: it is JSON. */
  readonly codec: string | undefined
  readonly data: string
}

/** A message as it is stored: its data is still the text that the codec wrote. */
export interface StoredMessage extends Omit<Message<never>, 'data' | 'place'> {
  readonly place: MessagePlace
  readonly codec: string | undefined
  readonly data: string
}

/** Whether a place is behind another one. */
export function isBehind(place: MessagePlace, other: MessagePlace): boolean {
  return place.epoch === other.epoch ? place.number < other.number : place.epoch < other.epoch
}

/**
 * What an emit is refused with whose version is taken. The head of a key remembers the highest version that was purged
 * and no other, so that a lower one cannot be told from one that was emitted: refusing it is the safe side.
 */
export function versionTaken(cause?: unknown): RepriseError {
  const message =
    'A message of the subject with this version was emitted before, or one with a higher version was purged.'
  return new RepriseError('VERSION_TAKEN', message, cause === undefined ? {} : { cause })
}
