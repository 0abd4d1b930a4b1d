// When a call ends.

import { currentDeadline } from '../../identity/index.js'
import { type Clock, type Deadline, type Duration, earlier } from '../../kernel/index.js'
import { optionMs } from '../define/settings.js'

const leastMs = 1_000

/**
 * As it was told, and never later than the intent in flight. Nor later than the operation's window: a call that outlives the memory of its key could find it forgotten, and carry
 * out again what somebody else carried out meanwhile. A second is left in any case, since no call could be made under a window of a few milliseconds.
 */
export function callDeadline(given: Duration, windowMs: number, clock: Clock): Deadline {
  return earlier(runDeadline(given, clock), { expiresAtMs: clock.monotonicMs() + Math.max(windowMs, leastMs) })
}

/** As it was told, and never later than the intent in flight. For work under a claim that is held: its window begins with its outcome, and whoever comes between is told apart by token and fence. */
export function runDeadline(given: Duration, clock: Clock): Deadline {
  return earlier({ expiresAtMs: clock.monotonicMs() + optionMs('deadline', given, 0) }, currentDeadline())
}
