// What sequences report: the numbers that they refuse.

import { type EventChannel, eventChannel } from './channels.js'

/**
 * A number was refused. Nothing of it was carried out. It does not hold the name of the producer, which came with the
 * number; its epoch was given out once.
 */
export interface SequenceRefusedEvent {
  /** The name of the domain. */
  readonly domain: string
  /** The name of the sequence. */
  readonly sequence: string
  readonly epoch: number
  readonly number: number
  /**
   * `'fenced'`: of another epoch than the open one; `'gap'`: one before it has not arrived; `'mismatch'`: the last one,
   * with other content.
   */
  readonly because: 'fenced' | 'gap' | 'mismatch'
  /** The epoch that is open, where it was fenced; absent: none is. */
  readonly open?: number
  /** The number that is to come next, where it came too early. */
  readonly next?: number
}

/** `reprise.sequence.refused`: a number was refused. An alarm where it is a gap or other content. */
export const sequenceRefused: EventChannel<SequenceRefusedEvent> =
  /* @__PURE__ */ eventChannel('reprise.sequence.refused')
