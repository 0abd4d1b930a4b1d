// The port of people and upkeep to a store: dead letters and what a person decides about them, the state of the outbox,
// and what is forgotten.

import type { RecordLimits } from '../atomicity/index.js'
import type { DeadLetter, LetterDecision } from './lanes.js'
import type { TraceStore } from './traces.js'

/** Which dead letter. */
export interface WhichLetter {
  readonly reader: string
  readonly source: string
  readonly id: string
}

/** Which dead letters are listed, the oldest first. */
export interface LetterQuery {
  readonly reader?: string | undefined
  readonly key?: string | undefined
  readonly code?: string | undefined
  /** Default: those that are not closed. */
  readonly state?: DeadLetter['state'] | undefined
  /** 1 to 1,000. */
  readonly limit: number
}

/** How many letters have the same cause. */
export interface LetterGroup {
  readonly reader: string
  readonly code: string
  readonly letters: number
  readonly oldestMs: number
  readonly newestMs: number
}

/** A decision, with who made it and why, which is kept. */
export interface Decided {
  readonly decision: LetterDecision
  readonly actor: string
  /** Up to 1,000 characters. */
  readonly reason: string
  /** How long until its lane is due, in ms: many redrives are spread over time. */
  readonly inMs: number
}

/** What a store knows about one reader. */
export interface ReaderState {
  readonly name: string
  readonly kind: 'relay' | 'consumer'
  /** Lanes with messages that are not done, parked ones included. */
  readonly behind: number
  /** Messages that are not done. */
  readonly depth: number
  /** The age of the oldest of them, in ms; undefined: there is none. */
  readonly oldestMs: number | undefined
  readonly parked: number
  /** Open dead letters. */
  readonly letters: number
}

/** What is forgotten. Each in ms; undefined: nothing of that kind. */
export interface MessagePurgeQuery {
  /** Messages that every reader has done, and that were emitted longer ago than this. */
  readonly sentAfterMs: number | undefined
  /** Processed rows that are older, and older than the longest memory that a reader is registered with. */
  readonly processedAfterMs: number | undefined
  /**
   * Heads of keys without a message, without a version to remember, and without an emit for longer; at least a minute.
   * With them go lanes of the inbox in which nothing waits: those that know no numbers, and those that know some when
   * they are older, and older than the longest memory.
   */
  readonly headsAfterMs: number | undefined
  /** Letters that were closed longer ago. */
  readonly lettersAfterMs: number | undefined
  /** The most rows of each kind in one call. */
  readonly limit: number
}

/** How many rows a purge has removed. */
export interface MessagesPurged {
  readonly messages: number
  readonly processed: number
  /** Heads, and lanes of the inbox. */
  readonly heads: number
  readonly letters: number
}

/** What a store does for people and upkeep. */
export interface LetterStore extends TraceStore {
  letters(query: LetterQuery, limits: RecordLimits): Promise<readonly DeadLetter[]>
  letter(which: WhichLetter, limits: RecordLimits): Promise<DeadLetter | undefined>
  groups(limits: RecordLimits): Promise<readonly LetterGroup[]>
  /**
   * Writes a decision about an open letter and lets its lane go on with it, in one commit. A consumer's discard is done
   * here and now: its lane goes on behind the message, and a processed row keeps it from coming back. False: the letter
   * is not there, or not open.
   */
  decide(which: WhichLetter, decided: Decided, limits: RecordLimits): Promise<boolean>
  readers(limits: RecordLimits): Promise<readonly ReaderState[]>
  /**
   * A reader that does not come back: its lanes, inbox and processed rows are removed. Its letters stay; those that
   * were decided are open again, and what is decided about them then waits for a reader of that name. False: there was
   * none.
   */
  forget(reader: string, limits: RecordLimits): Promise<boolean>
  /** All keys begin a new epoch with their next message; how many had one. */
  newEpochs(limits: RecordLimits): Promise<number>
  purge(query: MessagePurgeQuery, limits: RecordLimits): Promise<MessagesPurged>
}
