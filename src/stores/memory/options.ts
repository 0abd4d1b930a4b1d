// Options of a store in memory.

import type { TransactionDefaults } from '../../transaction/index.js'

/** The options of {@link memory}. */
export interface MemoryOptions extends TransactionDefaults {
  /** The domain's name, in events and errors. */
  readonly name: string
  /** How many writers may wait for their turn; one more is refused with QUEUE_FULL. Default 1,000. */
  readonly queue?: number
}
