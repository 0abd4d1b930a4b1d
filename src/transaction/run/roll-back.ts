// Rolling back and giving the connection back, within a limit of its own.

import type { Session } from '../../atomicity/index.js'
import { type Clock, type Deadline, inTime, isPromiseLike } from '../../kernel/index.js'
import { deadlinePassed } from './limits.js'

/** How long a roll-back may take before the connection is thrown away, in ms. */
const rollbackLimitMs = 1_000
/**
 * How long a caller waits for it after the deadline, in ms: most roll-backs are answered by then, and their errors
 * seen.
 */
const graceMs = 25

/**
 * Rolls back, and gives the connection back where that worked; else destroys it. Returns the errors. The caller does
 * not wait much longer than the deadline: the rest goes on without it. Never throws.
 */
export function rollBack<Handle>(
  session: Session<Handle>,
  { clock, deadline }: { readonly clock: Clock; readonly deadline: Deadline },
): Promise<readonly unknown[]> | readonly unknown[] {
  const expired = (): unknown => deadlinePassed('rolling back')
  const done = (): readonly unknown[] => {
    session.release('keep')
    return []
  }
  const failed = (error: unknown): readonly unknown[] => {
    session.release('discard')
    return [error]
  }
  try {
    const answer = session.rollback()
    if (!isPromiseLike(answer)) return done()
    const rolledBack = inTime({ clock, limitMs: rollbackLimitMs, expired }, answer).then(done, failed)
    const limitMs = Math.max(deadline.expiresAtMs - clock.monotonicMs(), graceMs)
    if (limitMs >= rollbackLimitMs) return rolledBack
    return inTime({ clock, limitMs, expired }, rolledBack).catch((error: unknown) => [error])
  } catch (error) {
    return failed(error)
  }
}
