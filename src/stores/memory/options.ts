// Options of a store in memory.

import type { MessageOptions } from '../../atomicity/index.js'
import type { PepperSecret } from '../../identity/index.js'
import type { TransactionDefaults } from '../../transaction/index.js'

/** The options of {@link memory}. */
export interface MemoryOptions extends TransactionDefaults {
  /** The domain's name, in events and errors. */
  readonly name: string
  /** How many writers may wait for their turn; one more is refused with QUEUE_FULL. Default 1,000. */
  readonly queue?: number
  /**
   * A secret under which names, scopes and fingerprints are stored, so that whoever reads the table cannot confirm a
   * key that he guesses: 16 bytes or more of text or bytes, or all secrets that there were, the oldest first. All who
   * work on the store have the same. Default: none.
   */
  readonly pepper?: PepperSecret | readonly PepperSecret[]
  /** How its messages are: who makes them, how large they may be, what checks and what hides their data. */
  readonly messages?: MessageOptions
}
