// Looking at the world for a call: did the attempt whose answer was lost happen, is the changed state our own?

import { inTime } from '../../kernel/index.js'
import type { CallState } from './call-state.js'
import { deadlineExceeded, timedOut } from './timeouts.js'

// How long somebody may look where the call has no deadline.
const maxLookMs = 60_000

/**
 * What a look finds. It has until the deadline of the call, or a minute where there is none. It can fail as well: then
 * it cannot tell, which is undefined, and its error is kept beside the one that matters.
 */
export async function lookFor<Found>(
  call: CallState<unknown>,
  look: (signal: AbortSignal) => PromiseLike<Found> | Found,
): Promise<Found | undefined> {
  const { settings, deadline, signal, failures } = call
  const { clock } = settings
  if (signal?.aborted) return undefined
  const controller = new AbortController()
  const looking = async (): Promise<Found> => look(controller.signal)
  const limits =
    deadline === undefined
      ? { limitMs: maxLookMs, expired: () => timedOut('Looking whether it happened', maxLookMs) }
      : { limitMs: Math.max(0, deadline.expiresAtMs - clock.monotonicMs()), expired: deadlineExceeded }
  try {
    return await inTime({ clock, signal, ...limits }, looking())
  } catch (error) {
    controller.abort(error)
    failures.suppressed = [...failures.suppressed, error]
    return undefined
  }
}
