// What relays report: what became of each message, and when they pause.

import { type EventChannel, eventChannel } from './channels.js'

/** What every event about a message says. */
export interface RelayMessageEvent {
  /** The name of the store. */
  readonly domain: string
  readonly relay: string
  /** The identity of the message. */
  readonly source: string
  readonly id: string
  readonly type: string
}

/** A message was refused, or is not confirmed while others are. */
export interface RelayRefusedEvent extends RelayMessageEvent {
  /** A stable word for the cause. */
  readonly code: string
  /** How often that happened to it by now. */
  readonly failures: number
}

/** A message is a dead letter, and its key waits for it. */
export interface RelayParkedEvent extends RelayMessageEvent {
  readonly code: string
}

/** Somebody else has the key by now: what was published here is published there too. */
export interface RelayFencedEvent {
  readonly domain: string
  readonly relay: string
  /** The number of the claim that was lost. */
  readonly attempt: number
}

/** A relay pauses. */
export interface RelayPausedEvent {
  readonly domain: string
  readonly relay: string
  /** Who is away. */
  readonly because: 'broker' | 'store'
  readonly forMs: number
  readonly error: unknown
}

/** A publisher answered in a way that says nothing about its messages. */
export interface RelayMisansweredEvent {
  readonly domain: string
  readonly relay: string
  /** How many messages it was given. */
  readonly messages: number
  readonly error: unknown
}

/** `reprise.relay.published`: the broker has confirmed a message. */
export const relayPublished: EventChannel<RelayMessageEvent> = /* @__PURE__ */ eventChannel('reprise.relay.published')

/** `reprise.relay.refused`: a message was refused, or is not confirmed while others are. */
export const relayRefused: EventChannel<RelayRefusedEvent> = /* @__PURE__ */ eventChannel('reprise.relay.refused')

/** `reprise.relay.parked`: a message is a dead letter, and its key waits for it. An alarm. */
export const relayParked: EventChannel<RelayParkedEvent> = /* @__PURE__ */ eventChannel('reprise.relay.parked')

/** `reprise.relay.fenced`: somebody else has a key by now. */
export const relayFenced: EventChannel<RelayFencedEvent> = /* @__PURE__ */ eventChannel('reprise.relay.fenced')

/** `reprise.relay.paused`: a relay pauses, since the broker or the store is away. */
export const relayPaused: EventChannel<RelayPausedEvent> = /* @__PURE__ */ eventChannel('reprise.relay.paused')

/** `reprise.relay.misanswered`: a publisher threw, or gave another number of answers than it got messages. An alarm. */
export const relayMisanswered: EventChannel<RelayMisansweredEvent> =
  /* @__PURE__ */ eventChannel('reprise.relay.misanswered')
