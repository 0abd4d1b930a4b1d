// The port: what a store does for its sequences, inside a transaction that somebody else began.

import type { SequenceNumber } from '../identity/index.js'
import type { ProducerRow } from './rule.js'

/** Which row of a producer. */
export interface ProducerName {
  readonly sequence: string
  readonly producer: string
}

/** Which number of which sequence. */
export interface SequencePlace extends SequenceNumber, ProducerName {}

/** What is written with a number that was accepted. */
export interface AcceptedMark {
  readonly fingerprint: string | undefined
  /** Its result, as text; undefined: it is not kept, or not there yet. */
  readonly value: string | undefined
}

/** The rows of producers in a store. `Handle` is what bodies of its transactions get. */
export interface SequenceStore<Handle> {
  /**
   * Opens an epoch that is higher than all that the store ever gave out, with no number accepted yet. Of several at
   * once, the one that writes last has the highest.
   */
  open(tx: Handle, name: ProducerName): Promise<number>
  /**
   * Accepts a number where it is the next one of the open epoch; false: it is not. Waits for a transaction that has
   * written to the row, so that of several at once one gets true.
   */
  advance(tx: Handle, at: SequencePlace, mark: AcceptedMark): Promise<boolean>
  read(tx: Handle, name: ProducerName): Promise<ProducerRow | undefined>
  /**
   * Writes the result of a number that this transaction accepted, unless the row holds another one by now: its own
   * `run` may have accepted the next.
   */
  keep(tx: Handle, at: SequencePlace, value: string): Promise<void>
  /**
   * Forgets producers of a sequence of which nothing was accepted or opened for longer than that, by the store's clock,
   * at most so many; how many it were.
   */
  forget(tx: Handle, sequence: string, idleMs: number, most: number): Promise<number>
}
