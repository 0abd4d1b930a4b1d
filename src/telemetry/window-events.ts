// What dedupe windows report: what they drop, and when their store does not help.

import { type EventChannel, eventChannel } from './channels.js'

/** A duplicate was dropped. */
export interface WindowDroppedEvent {
  /** The window's name. */
  readonly window: string
  /** A digest of the window's name and the id of the message. */
  readonly id: string
  /** Who knew: this process, the one with the same id that was with the sink, or the store. */
  readonly knownBy: 'process' | 'leader' | 'store'
}

/** The store did not say whether an id was seen. */
export interface WindowUncheckedEvent {
  readonly window: string
  /** The name of the store. */
  readonly domain: string
  readonly id: string
  /** Whether it was let through all the same. */
  readonly passed: boolean
  readonly error: unknown
}

/** The sink has accepted, and the mark could not be written. */
export interface WindowUnrememberedEvent {
  readonly window: string
  readonly domain: string
  readonly id: string
  readonly error: unknown
}

/** `reprise.window.dropped`: a duplicate was dropped. */
export const windowDropped: EventChannel<WindowDroppedEvent> = /* @__PURE__ */ eventChannel('reprise.window.dropped')

/** `reprise.window.unchecked`: the store did not say whether an id was seen. An alarm. */
export const windowUnchecked: EventChannel<WindowUncheckedEvent> =
  /* @__PURE__ */ eventChannel('reprise.window.unchecked')

/** `reprise.window.unremembered`: a mark could not be written. An alarm. */
export const windowUnremembered: EventChannel<WindowUnrememberedEvent> =
  /* @__PURE__ */ eventChannel('reprise.window.unremembered')
