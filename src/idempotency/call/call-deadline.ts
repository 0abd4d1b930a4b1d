// When a call ends.

import { currentDeadline } from '../../identity/index.js'
import { type Clock, type Deadline, type Duration, durationMs, earlier } from '../../kernel/index.js'

const leastMs = 1_000

/**
 * As it was told, and never later than the intent in flight. Nor later than the operation's window: a call that outlives the memory of its key could find it forgotten, and carry
 * out again what somebody else carried out meanwhile. A second is left in any case, since no call could be made under a window of a few milliseconds.
 */
export function callDeadline(given: Duration, windowMs: number, clock: Clock): Deadline {
  const own = { expiresAtMs: clock.monotonicMs() + Math.min(durationMs(given), Math.max(windowMs, leastMs)) }
  return earlier(own, currentDeadline())
}
