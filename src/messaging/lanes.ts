// The port of relays and consumers to a store: lanes. A lane is what one reader knows about one key: how far it has
// come, who is at work on it, and until when it rests. All readers of a name share their lanes, and compete for them.
//
// A lane is idle (nothing behind what is done), ready (a message is there, and it is due), at rest until it is due, or
// parked behind a dead letter until a person decides. One that was claimed is due when its lease ends, so that a reader
// that died needs no other sign. All times are the store's.

import type { Message, MessagePlace, RecordLimits, StoredMessage } from '../atomicity/index.js'

/** Who reads. */
export interface Reader {
  /** 1 to 255 characters. */
  readonly name: string
  readonly kind: 'relay' | 'consumer'
  /**
   * Where its messages are: in the outbox of the store, or in its inbox, where what came from a broker waits for its
   * turn.
   */
  readonly reads: 'outbox' | 'inbox'
  /**
   * Of the inbox: for how long it has to be remembered that a message was handled, in ms. It is kept with the reader,
   * and no purge is earlier. Default: what is kept already, at first 0.
   */
  readonly memoryMs?: number
}

/** Which lanes are wanted. */
export interface LaneQuery {
  readonly reader: Reader
  /** Names the one who claims, and no other: random. */
  readonly owner: string
  /** How long the claim holds, in ms. */
  readonly leaseMs: number
  /** The most lanes. */
  readonly lanes: number
  /** The most messages of one lane. */
  readonly perLane: number
  /** Present: only this lane. */
  readonly key?: string
}

/** A lane that was claimed, with the messages that come next, in order; at least one. */
export interface ClaimedLane {
  readonly key: string
  /** Grows with each claim of the lane, and never again has the same value. */
  readonly attempt: number
  /**
   * How often the lane was claimed in a row, this time included, without one of the owners saying how it ended. More
   * than 1: the one before died, or was too slow. It is no proof against the first message: an owner has many lanes.
   */
  readonly claims: number
  /** How often the first message has failed. */
  readonly failures: number
  /** What `LaneEnd.history` was last set to, or an empty text. */
  readonly history: string
  /** The last message that is done; undefined: none yet. */
  readonly done: MessagePlace | undefined
  readonly messages: readonly StoredMessage[]
  /** What a person has decided about the first message, which was a dead letter. */
  readonly decision: LetterDecision | undefined
}

/** What a person decided about a dead letter. */
export type LetterDecision =
  | { readonly is: 'redrive' }
  /** In place of the message one with another id and other data. */
  | { readonly is: 'edit'; readonly id: string; readonly codec: string | undefined; readonly data: string }
  /** A message without data, of the same id and place, says that this one was discarded. */
  | { readonly is: 'discard'; readonly reason: string }

/** The answer to a claim. */
export interface ClaimedLanes {
  readonly lanes: readonly ClaimedLane[]
  /** In how many ms the next lane of the reader is due, by what is known now; undefined: none is at rest. */
  readonly nextDueMs: number | undefined
}

/** How the work on a claimed lane ended. */
export interface LaneEnd {
  readonly reader: Reader
  readonly key: string
  readonly owner: string
  readonly attempt: number
  /** The last message that is done now; undefined: none more than before. */
  readonly done: MessagePlace | undefined
  readonly then: /** It is ready again where there are more messages, else idle. Failures and history are forgotten. */
    | { readonly is: 'free' }
    /**
     * The claim goes on with the messages behind what is done, and ends so many ms from now. It counts as the first
     * claim of what comes next; failures and history are those of the message that comes next.
     */
    | { readonly is: 'hold'; readonly forMs: number; readonly failures: number; readonly history: string }
    /**
     * It rests. `failures` counts those of the message that comes next, 0 where the pause is not its fault; `history`
     * is kept for the next claim: up to 16 KiB.
     */
    | { readonly is: 'rest'; readonly forMs: number; readonly failures: number; readonly history: string }
    /** The message that comes next is dead, and the lane is parked behind it. */
    | { readonly is: 'park'; readonly letter: LetterDraft }
}

/** A dead letter, as it is written. */
export interface LetterDraft {
  /** What is stored of the message, whole. */
  readonly message: StoredMessage
  /** A stable word for the cause, such as `MESSAGE_REFUSED`. Letters are grouped by it. */
  readonly code: string
  /** One sentence for people, up to 1,000 characters. */
  readonly reason: string
  /** The attempts, as JSON of up to 16 KiB. */
  readonly history: string
}

/** A dead letter, as it is read. One for a reader and a message, however often it came back. */
export interface DeadLetter extends LetterDraft {
  readonly reader: string
  readonly kind: Reader['kind']
  /**
   * `open`: a person has to decide. `redriving`, `discarding`: decided, and under way. `closed`: over. A letter that
   * fails again is open again.
   */
  readonly state: 'open' | 'redriving' | 'discarding' | 'closed'
  /** Whether its key waits for it. */
  readonly parks: boolean
  readonly firstAtMs: number
  readonly lastAtMs: number
  /** Who decided last, what, and why. */
  readonly note: string | undefined
}

/** A message from a broker, on its way to its consumer. */
export interface Arrival {
  readonly reader: Reader
  readonly order: 'key' | 'gapless' | 'none'
  readonly message: Message<never>
  /** The message without its place and times, and its data as text. */
  readonly stored: Pick<StoredMessage, 'codec' | 'data'>
  /** Of all that a repeat has to share with it: type, subject, key, data. */
  readonly fingerprint: string
}

/**
 * What a message that arrived is. `new`: its processed row is written by this transaction, and its effect belongs into
 * it. `duplicate`: a processed row is there. `mismatch`: one is there, of other content. `stored`: its lane is not
 * idle, and it was put behind what waits there, or is there already. `late`: a lower number than what is done, without
 * a processed row. `gap`: numbers before it are missing; it was stored, and its lane rests. `outdated`: of an epoch
 * that is over.
 */
export type Arrived =
  | { readonly is: 'new' | 'duplicate' | 'mismatch' | 'stored' | 'late' }
  | { readonly is: 'gap'; readonly expected: number }
  | { readonly is: 'outdated'; readonly epoch: number }

/** What a store does for relays and consumers. `Handle` is what bodies of its transactions get. */
export interface LaneStore<Handle> {
  /**
   * Makes the reader known: from now on each emit tells it of its key. What was emitted before is found too, a page of
   * keys with each call; true: there is none left that it was not told of. Called at the start, and now and then after
   * it, since a transaction that began before the reader was known may commit later.
   */
  register(reader: Reader, limits: RecordLimits): Promise<boolean>
  /**
   * Claims lanes that are due, those that have waited longest first. Never two owners have the same lane at the same
   * time, unless a lease has ended. A lane that somebody else is about to claim or to write is passed over; messages of
   * a lane never are.
   */
  claim(query: LaneQuery, limits: RecordLimits): Promise<ClaimedLanes>
  /**
   * Ends claims, all in one commit. Each in its place: true, it was written; false, the lane has another owner or
   * attempt by now, and nothing was written for it.
   */
  end(ends: readonly LaneEnd[], limits: RecordLimits): Promise<readonly boolean[]>
  /** Makes a claim longer; false: it is not ours any more. */
  extend(
    claim: Pick<LaneEnd, 'reader' | 'key' | 'owner' | 'attempt'>,
    leaseMs: number,
    limits: RecordLimits,
  ): Promise<boolean>
  /** The same as `end` for one lane, inside the transaction that has the effect of its messages. */
  endIn(tx: Handle, end: LaneEnd): Promise<boolean>
  /** Says what a message from a broker is, and writes what follows from that. */
  arrive(tx: Handle, arrival: Arrival, gapMs: number): Promise<Arrived>
  /**
   * Puts a message from a broker that could not be handled into the inbox, as the next one of its lane, which rests or
   * is parked. Where it was processed meanwhile, or is in the inbox already, nothing is written.
   */
  keep(tx: Handle, arrival: Arrival, then: Extract<LaneEnd['then'], { readonly is: 'rest' | 'park' }>): Promise<void>
  /** Writes a dead letter that no key waits for: of a message that is not to be handled as it came. */
  bury(tx: Handle, reader: Reader, letter: LetterDraft): Promise<void>
}
