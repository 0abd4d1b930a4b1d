// Options of a store in SQLite.

import type { MessageOptions } from '../../atomicity/index.js'
import type { PepperSecret } from '../../identity/index.js'
import type { TransactionDefaults } from '../../transaction/index.js'
import type { SqliteClient } from './client/client.js'
import type { SqliteHandle } from './connection/driver.js'
import type { Bind } from './handle.js'

/** The options of {@link sqlite}: `open` or `file`, and `bind` where the body is to get a query builder. */
export interface SqliteOptions<Bound = SqliteClient> extends TransactionDefaults {
  /** The domain's name, in events and errors. */
  readonly name: string
  /**
   * Opens a connection: `() => new Database('file.db')` of better-sqlite3 or libsql, or `new DatabaseSync('file.db')`.
   * Called once for each connection, and the connections belong to Reprise: it sets WAL, synchronous = FULL and
   * busy_timeout = 0 on them, and leaves foreign keys as they are. What else you set on them stays.
   */
  readonly open?: () => SqliteHandle
  /**
   * In place of `open`: the path of the file, opened with `node:sqlite` where the runtime has it, else with the package
   * `libsql`.
   */
  readonly file?: string
  /** Makes what the body finds as `tx.db` out of the client of a transaction. Default: the client itself. */
  readonly bind?: Bind<Bound>
  /** What the names of Reprise's tables begin with. Default `'reprise_'`. */
  readonly prefix?: string
  /**
   * A secret under which names, scopes and fingerprints are stored, so that whoever reads the table cannot confirm a
   * key that he guesses: 16 bytes or more of text or bytes, or all secrets that there were, the oldest first. All who
   * work on the store have the same. Default: none.
   */
  readonly pepper?: PepperSecret | readonly PepperSecret[]
  /** How its messages are: who makes them, how large they may be, what checks and what hides their data. */
  readonly messages?: MessageOptions
  /** How many transactions read at once, each on a connection of its own, from 1 to 64. Default 4. */
  readonly readers?: number
  /**
   * How many writers may wait for their turn, and as many readers; one more is refused with QUEUE_FULL. Default 1,000.
   */
  readonly queue?: number
  /**
   * Whether writers that wait for one another share a COMMIT. Without it, or where nobody waits, each transaction has
   * its own. Default true.
   */
  readonly sharedCommit?: boolean
}
