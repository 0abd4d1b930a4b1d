// What a drill reports: which calls it repeated, what came of that, and what it left out. No message holds an input.

import { type EventChannel, eventChannel } from '../telemetry/index.js'

/** What every message about a repeat on purpose says. */
export interface DrillEvent {
  /** What was repeated. */
  readonly kind: 'operation' | 'route' | 'consumer'
  readonly domain: string
  /** The name of the operation, the route or the consumer. */
  readonly name: string
}

/** A repeat did not come to what the first call came to. */
export interface DrillViolationEvent extends DrillEvent {
  /**
   * What is wrong: the repeat came as far as the body; the count of effects changed, or is above 1; it was refused; it
   * was answered differently.
   */
  readonly code: 'DRILL_EXECUTED' | 'DRILL_EFFECTS' | 'DRILL_REFUSED' | 'DRILL_DIFFERENT'
  /** All of this in a sentence or two. */
  readonly message: string
  /** DRILL_REFUSED: with which code, or status. */
  readonly refusal?: string
  /** What `effects` counted before the repeat and after it; absent: nobody counted. */
  readonly effects?: { readonly before: number; readonly after: number }
}

/** A call that was drawn was not repeated, or its repeat says nothing. */
export interface DrillSkippedEvent extends DrillEvent {
  /**
   * Why: it had no key; it ended without an outcome; that is remembered too briefly, or was not kept whole; too many
   * repeats were open; the repeat was not answered; effects could not be counted.
   */
  readonly because: 'unkeyed' | 'no-outcome' | 'window' | 'not-kept' | 'busy' | 'unanswered' | 'uncounted'
  /** What was thrown, where that is why. */
  readonly error?: unknown
}

/** `reprise.drill.agreed`: a repeat got what the first call got, and nothing ran. */
export const drillAgreed: EventChannel<DrillEvent> = /* @__PURE__ */ eventChannel('reprise.drill.agreed')

/** `reprise.drill.violation`: a repeat came to something else. An alarm. */
export const drillViolation: EventChannel<DrillViolationEvent> = /* @__PURE__ */ eventChannel('reprise.drill.violation')

/** `reprise.drill.skipped`: a call that was drawn was not repeated, or its repeat says nothing. */
export const drillSkipped: EventChannel<DrillSkippedEvent> = /* @__PURE__ */ eventChannel('reprise.drill.skipped')
