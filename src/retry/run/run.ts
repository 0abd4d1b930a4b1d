// The runner: the short way for a call on which nothing bears from outside, and the long way for all others. A call that
// succeeds at once touches no clock and no signal; everything about failures is in failures.ts.

import { currentDeadline, withIntent } from '../../identity/index.js'
import { type Deadline, type Duration, durationMs, earlier, RepriseError } from '../../kernel/index.js'
import { retryRefused } from '../../telemetry/index.js'
import type { Guard } from '../guard.js'
import { demandRunOptions, type RunOptions } from '../options.js'
import type { Body } from './attempt.js'
import { attempts, layered } from './attempts.js'
import { isUseful, type Machinery } from './call.js'
import { firstAttempt } from './first-attempt.js'
import { hedged } from './hedge.js'
import { ownedAbove } from './layers.js'
import { CallLimits, deadlineExceeded } from './limits.js'

/** Makes a call under a policy. */
export function execute<Result>(
  machinery: Machinery,
  guard: Guard | undefined,
  body: Body<Result>,
  options: RunOptions<Result> | undefined,
): Promise<Result> {
  if (typeof body !== 'function')
    return Promise.reject(new RepriseError('ARGUMENT_INVALID', 'The body is no function.'))
  const ambient = currentDeadline()
  if (options === undefined && ambient === undefined && machinery.plain) {
    return firstAttempt(machinery, guard, body, ownedAbove(machinery))
  }
  return executeLimited(machinery, guard, body, options, ambient)
}

async function executeLimited<Result>(
  machinery: Machinery,
  guard: Guard | undefined,
  body: Body<Result>,
  options: RunOptions<Result> | undefined,
  ambient: Deadline | undefined,
): Promise<Result> {
  const { name, clock } = machinery
  if (options !== undefined) demandRunOptions(options)
  const signal = options?.signal
  if (signal?.aborted) {
    if (retryRefused.hasSubscribers) retryRefused.publish({ policy: name, by: 'signal' })
    throw signal.reason
  }
  const deadline = deadlineOf(machinery, options?.deadline, ambient)
  if (!isUseful(machinery, deadline)) {
    if (retryRefused.hasSubscribers) retryRefused.publish({ policy: name, by: 'deadline' })
    throw deadlineExceeded()
  }
  const owned = ownedAbove(machinery)
  const inward = deadline === undefined || deadline === ambient ? body : under(deadline, body)
  const layer = layered(machinery, guard, inward)
  const endless = signal === undefined && deadline === undefined && machinery.attemptTimeoutMs === undefined
  // A precondition that fails under a hedge may be the other hedge's success, which nobody can tell while that one is out.
  const hedges = machinery.hedgeAfterMs !== undefined && guard !== undefined && guard.rung !== 'conditional' && !owned
  const limits = endless && !hedges ? undefined : new CallLimits(clock, signal, deadline)
  try {
    if (hedges && limits !== undefined)
      return await hedged({ machinery, guard, body: layer, options, deadline, limits, owned }, limits)
    return await attempts(machinery, guard, layer, options, deadline, limits, owned)
  } finally {
    limits?.release()
  }
}

function deadlineOf(
  { deadlineMs, clock }: Machinery,
  given: Duration | Deadline | undefined,
  ambient: Deadline | undefined,
): Deadline | undefined {
  const own = deadlineMs === undefined ? undefined : { expiresAtMs: clock.monotonicMs() + deadlineMs }
  const called =
    given === undefined || typeof given === 'object' ? given : { expiresAtMs: clock.monotonicMs() + durationMs(given) }
  const earliest = earlier(earlier(own, called), ambient)
  // A point that never comes is no deadline, and no timer can be set for it.
  return earliest?.expiresAtMs === Number.POSITIVE_INFINITY ? undefined : earliest
}

// On the way inwards a deadline only shrinks: what the body calls is to see one that this call brought.
function under<Result>(deadline: Deadline, body: Body<Result>): Body<Result> {
  // Async, since some work (a query, a lazy promise) starts only when it is awaited.
  return (attempt) => withIntent({ deadline }, async () => body(attempt))
}
