// Rolling back and giving the connection back: within a limit of its own, and behind the back of a caller whose deadline has passed.

import type { Session } from '../../atomicity/index.js'
import { type Clock, type Deadline, isPromiseLike } from '../../kernel/index.js'
import { bounded, deadlinePassed } from './bounded.js'

/** How long a roll-back may take before the connection is thrown away, in ms. */
const rollbackLimitMs = 1_000
/** How long a caller is kept waiting for it after the deadline, in ms: most roll-backs are answered by then, and their errors still seen. */
const graceMs = 25

/**
 * Rolls back, and gives the connection back where that worked; else it is destroyed. Answers with the errors. Whoever waits is not kept much longer than the
 * deadline: the rest goes on without them. Never throws.
 */
export function rollBack<Handle>(
  session: Session<Handle>,
  { clock, deadline }: { readonly clock: Clock; readonly deadline: Deadline },
): Promise<readonly unknown[]> | readonly unknown[] {
  const cleaned = clean(session, clock)
  if (!isPromiseLike(cleaned)) return cleaned
  const limitMs = Math.max(deadline.expiresAtMs - clock.monotonicMs(), graceMs)
  if (limitMs >= rollbackLimitMs) return cleaned
  const expired = (): unknown => deadlinePassed('rolling back')
  return bounded({ clock, limitMs, expired }, () => cleaned).catch((error: unknown) => [error])
}

function clean<Handle>(session: Session<Handle>, clock: Clock): Promise<readonly unknown[]> | readonly unknown[] {
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
    const expired = (): unknown => deadlinePassed('rolling back')
    return bounded({ clock, limitMs: rollbackLimitMs, expired }, () => answer).then(done, failed)
  } catch (error) {
    return failed(error)
  }
}
