// What a message that came from a broker is, decided by what is known of it and of its lane. Stores write what follows
// from it in the transaction of the handler.

import { isBehind, type MessagePlace } from '../atomicity/index.js'
import type { Arrival } from './lanes.js'

/** What a store knows of the lane of a message that arrived. */
export interface ArrivalLane {
  /** The last message that is done; undefined: none yet, or those so far were not numbered. */
  readonly done: MessagePlace | undefined
  /** The highest place that a message of the lane had so far. */
  readonly known: MessagePlace | undefined
  /** The place of the first message that waits in the lane; undefined: none does, and the lane is idle. */
  readonly first: MessagePlace | undefined
}

/** What a store knows of the message itself. */
export interface ArrivalFacts {
  /** The fingerprint of its processed row. */
  readonly processed: string | undefined
  /** The fingerprint of its row in the inbox. */
  readonly stored: string | undefined
  /** Whether a message of another identity waits at its place. */
  readonly isTaken: boolean
  /** Whether a message waits at the place right before its own. */
  readonly follows: boolean
}

/** What a message that arrived is, and what is to be written. */
export type ArrivalStep =
  /** A processed row. `done`: its lane has come this far, and whoever has claimed it has lost it. */
  | { readonly is: 'new'; readonly done: MessagePlace | undefined }
  | { readonly is: 'duplicate' | 'mismatch' | 'late' }
  /** A row of the inbox at this place; undefined: it is there already. */
  | { readonly is: 'stored'; readonly place: MessagePlace | undefined }
  /** A row of the inbox at this place. A lane that was idle rests until the gap has to be closed. */
  | { readonly is: 'gap'; readonly place: MessagePlace; readonly expected: number }
  | { readonly is: 'outdated'; readonly epoch: number }

/**
 * What a message that arrived is.
 *
 * By arrival, places are of epoch 0. A lane that changes to numbers that are checked begins with the first one it sees.
 */
export function arrivalOf(
  arrival: Pick<Arrival, 'order' | 'fingerprint' | 'message'>,
  lane: ArrivalLane,
  facts: ArrivalFacts,
): ArrivalStep {
  const { order, fingerprint, message } = arrival
  const { processed, stored } = facts
  // The row of what a person discarded unread has no fingerprint: whatever comes under its name is over.
  const isOver = processed === fingerprint || processed === ''
  if (processed !== undefined) return { is: isOver ? 'duplicate' : 'mismatch' }
  if (stored !== undefined) return stored === fingerprint ? { is: 'stored', place: undefined } : { is: 'mismatch' }
  if (order === 'none') return { is: 'new', done: undefined }
  if (order === 'gapless' && message.place !== undefined) return numberedArrival(message.place, lane, facts)
  if (lane.first === undefined) return { is: 'new', done: undefined }
  return { is: 'stored', place: placeBehind(lane.known) }
}

/** The place behind all that a lane knows, for messages that stay in the order of their arrival. */
export function placeBehind(known: MessagePlace | undefined): MessagePlace {
  return { epoch: known?.epoch ?? 0, number: (known?.number ?? 0) + 1 }
}

function numberedArrival(place: MessagePlace, lane: ArrivalLane, { isTaken, follows }: ArrivalFacts): ArrivalStep {
  const { done, first } = lane
  if (isTaken) return { is: 'late' }
  // The first number that is seen starts the key.
  if (done === undefined || done.epoch === 0) {
    return first === undefined ? { is: 'new', done: place } : { is: 'stored', place }
  }
  if (place.epoch < done.epoch) return { is: 'outdated', epoch: done.epoch }
  if (!isBehind(done, place)) return { is: 'late' }
  const expected = place.epoch === done.epoch ? done.number + 1 : 1
  // What waits in front of it, if anything does, waits for something else.
  const isNext = place.number === expected && (first === undefined || isBehind(place, first))
  if (isNext) return { is: 'new', done: place }
  if (place.number === expected || follows) return { is: 'stored', place }
  return { is: 'gap', place, expected }
}
