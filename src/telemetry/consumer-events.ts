// What consumers report: what became of each message, and when they pause.

import { type EventChannel, eventChannel } from './channels.js'

/** What every event about a message says. */
export interface ConsumerMessageEvent {
  /** The name of the store. */
  readonly domain: string
  readonly consumer: string
  /** The identity of the message. */
  readonly source: string
  readonly id: string
  readonly type: string
}

/** The handler of a message failed, and was rolled back. */
export interface ConsumerFailedEvent extends ConsumerMessageEvent {
  /** Whether another try would help. */
  readonly help: 'transient' | 'permanent' | 'discard'
  /** A stable word for the cause. */
  readonly code: string
  /** How often it had failed before. */
  readonly failures: number
  readonly error: unknown
}

/** A message is a dead letter. */
export interface ConsumerParkedEvent extends ConsumerMessageEvent {
  readonly code: string
  /** Whether the messages of its key wait for it. */
  readonly parks: boolean
}

/** A consumer pauses. */
export interface ConsumerPausedEvent {
  readonly domain: string
  readonly consumer: string
  /** The store or the source is away, or a handler said that something is overloaded. */
  readonly because: 'store' | 'overload' | 'source'
  readonly forMs: number
  readonly error: unknown
}

/** `reprise.consumer.handled`: the effect of a message is committed. */
export const consumerHandled: EventChannel<ConsumerMessageEvent> =
  /* @__PURE__ */ eventChannel('reprise.consumer.handled')

/** `reprise.consumer.duplicate`: a message came again after it was handled. */
export const consumerDuplicate: EventChannel<ConsumerMessageEvent> =
  /* @__PURE__ */ eventChannel('reprise.consumer.duplicate')

/**
 * `reprise.consumer.mismatch`: a message came with the identity of one that was handled, and other content. An alarm.
 */
export const consumerMismatch: EventChannel<ConsumerMessageEvent> =
  /* @__PURE__ */ eventChannel('reprise.consumer.mismatch')

/** `reprise.consumer.failed`: a handler failed. */
export const consumerFailed: EventChannel<ConsumerFailedEvent> = /* @__PURE__ */ eventChannel('reprise.consumer.failed')

/** `reprise.consumer.parked`: a message is a dead letter. An alarm. */
export const consumerParked: EventChannel<ConsumerParkedEvent> = /* @__PURE__ */ eventChannel('reprise.consumer.parked')

/** `reprise.consumer.late`: a message came after a later one of its key was handled. An alarm. */
export const consumerLate: EventChannel<ConsumerMessageEvent> = /* @__PURE__ */ eventChannel('reprise.consumer.late')

/** `reprise.consumer.fenced`: somebody else has the key by now, and the handler's work was rolled back. */
export const consumerFenced: EventChannel<ConsumerMessageEvent> =
  /* @__PURE__ */ eventChannel('reprise.consumer.fenced')

/** `reprise.consumer.paused`: a consumer pauses. */
export const consumerPaused: EventChannel<ConsumerPausedEvent> = /* @__PURE__ */ eventChannel('reprise.consumer.paused')
