// A lock that was not granted in time, and who held it.

import type { Blocker } from '../../atomicity/index.js'
import { RepriseError } from '../../kernel/index.js'

/** A statement waited for a lock as long as it may. The engine's own error is its cause. */
export class LockTimeoutError extends RepriseError {
  override readonly name: string = 'LockTimeoutError'
  /**
   * Who held the lock or waited for it before us, as far as the engine told while we waited, in this attempt or in an
   * earlier one of the same call. Empty: it could not be found out, since the wait was too short, the pool had no other
   * connection to ask on, or the engine has no way to ask.
   */
  readonly blockers: readonly Blocker[]

  constructor(cause: unknown, blockers: readonly Blocker[]) {
    const who = blockers.length === 0 ? '' : ` ${blockers.length} other session(s) stood before it.`
    super('LOCK_TIMEOUT', `A statement waited too long for a lock.${who}`, {
      cause,
      details: { blockers: blockers.length },
    })
    this.blockers = blockers
  }
}
