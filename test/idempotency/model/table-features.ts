// What the rows of the table are told apart by.

import type { RecordState } from '../../../src/atomicity/index.js'

/** What a record is, as far as any decision can hang on it. */
export interface Features {
  readonly state: 'absent' | RecordState
  readonly mode: 'leased' | 'atomic'
  readonly token: 'mine' | 'other' | 'none'
  readonly fence: 'mine' | 'other'
  /** Whether somebody claimed it before, in this life of the key. */
  readonly claims: 1 | 2
  /** How its due time lies to now: the lease of a claim, the next look at an unknown one. */
  readonly due: 'later' | 'now' | 'in the margin' | 'past the margin' | 'never'
  readonly window: 'open' | 'over' | 'never ends'
  /** Whether the receiver knows the key for one more lease, and the margin. */
  readonly receiver: 'long enough' | 'too short'
  readonly input: boolean
  readonly because: 'maybe' | 'earlier-claim' | 'settled'
  readonly format: 2 | 3
}

/** What is in an event beside its column. */
export interface Facets {
  readonly sameMode: boolean
  readonly sameContent: boolean
}
