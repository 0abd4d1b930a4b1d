// What servers report: one message for each answer of a route under the layer.

import { type EventChannel, eventChannel } from './channels.js'

/** A route has answered. */
export interface HttpAnsweredEvent {
  readonly route: string
  /**
   * How: the handler ran, a stored answer was repeated, the layer refused, the request went past the layer without a
   * key, its work was accepted and goes on behind a 202, or the status of such work was asked for.
   */
  readonly how: 'executed' | 'replayed' | 'refused' | 'unkeyed' | 'accepted' | 'asked'
  readonly status: number
  /** Which call of the intent it was, as the caller says; undefined: it does not say. */
  readonly attempt: number | undefined
  /** Refused: the kind of problem, such as `in-flight`. */
  readonly problem?: string
  /** Refused: why, where an error was behind it. It stays here, and is not in the answer. */
  readonly error?: unknown
}

/**
 * A caller sent equal content under another key a moment ago: two intents that look alike, or a client that mints a key
 * for each attempt.
 */
export interface HttpRekeyedEvent {
  readonly route: string
  readonly method: string
  /** How long ago the other request arrived, in ms. */
  readonly agoMs: number
  /** Which call of the intent it was, as the caller says; undefined: it does not say. */
  readonly attempt: number | undefined
}

/** `reprise.http.rekeyed`: a caller sent equal content under another key within the last 10 seconds. */
export const httpRekeyed: EventChannel<HttpRekeyedEvent> = /* @__PURE__ */ eventChannel('reprise.http.rekeyed')

/** `reprise.http.answered`: a route has answered. */
export const httpAnswered: EventChannel<HttpAnsweredEvent> = /* @__PURE__ */ eventChannel('reprise.http.answered')
