// The runner: calls the body, and acts on what was decided. A call that succeeds at once passes through one loop and
// touches no clock, no context and no signal; everything about failures is in failures.ts.

import { currentDeadline } from '../../identity/index.js'
import { type Deadline, type Duration, durationMs, earlier } from '../../kernel/index.js'
import { retryRefused } from '../../telemetry/index.js'
import type { Guard } from '../guard.js'
import type { RunOptions } from '../options.js'
import { isReturnedVerdict } from '../verdict.js'
import { type Body, RunningAttempt } from './attempt.js'
import { breakerOpen, isUseful, type Machinery, succeeded } from './call.js'
import { type Failure, Failures, returnedFailure } from './failures.js'
import { firstAttempt } from './first-attempt.js'
import { hedged } from './hedge.js'
import { asLayer, layersMatter, ownedAbove } from './layers.js'
import { CallLimits, deadlineExceeded } from './limits.js'

/** Makes a call under a policy. */
export function execute<Result>(
  machinery: Machinery,
  guard: Guard | undefined,
  body: Body<Result>,
  options: RunOptions<Result> | undefined,
): Promise<Result> {
  const ambient = currentDeadline()
  if (options === undefined && ambient === undefined && machinery.plain && !layersMatter()) {
    return firstAttempt(machinery, guard, body, (failure, pass) =>
      furtherAttempts(machinery, guard, body, failure, pass),
    )
  }
  return executeLimited(machinery, guard, body, options, ambient)
}

async function furtherAttempts<Result>(
  machinery: Machinery,
  guard: Guard | undefined,
  body: Body<Result>,
  failure: Failure<Result>,
  pass: number,
): Promise<Result> {
  const failures = new Failures({
    machinery,
    guard,
    body,
    options: undefined,
    deadline: undefined,
    limits: undefined,
    owned: false,
  })
  const ending = await failures.add(1, failure, pass)
  if (ending !== undefined) return ending.value
  const limits =
    machinery.attemptTimeoutMs === undefined ? undefined : new CallLimits(machinery.clock, undefined, undefined)
  return attempts(machinery, guard, body, undefined, undefined, limits, false, failures)
}

async function executeLimited<Result>(
  machinery: Machinery,
  guard: Guard | undefined,
  body: Body<Result>,
  options: RunOptions<Result> | undefined,
  ambient: Deadline | undefined,
): Promise<Result> {
  const { name, rules, clock } = machinery
  const signal = options?.signal
  if (signal?.aborted) throw signal.reason
  const deadline = deadlineOf(machinery, options?.deadline, ambient)
  if (!isUseful(machinery, deadline)) {
    if (retryRefused.hasSubscribers) retryRefused.publish({ policy: name, by: 'deadline' })
    throw deadlineExceeded()
  }
  const owned = ownedAbove(name, rules.attempts, machinery.layer)
  // What repeats nothing that may have happened multiplies nothing, and leaves the repeats to those inside.
  const repeats = guard !== undefined && rules.attempts > 1 && layersMatter()
  const layered: Body<Result> = repeats ? (attempt) => asLayer(rules.attempts, () => body(attempt)) : body
  const endless = signal === undefined && deadline === undefined && machinery.attemptTimeoutMs === undefined
  // A precondition that fails under a hedge may be the other hedge's success, which nobody can tell while that one is out.
  const hedges = machinery.hedgeAfterMs !== undefined && guard !== undefined && guard.rung !== 'conditional' && !owned
  const limits = endless && !hedges ? undefined : new CallLimits(clock, signal, deadline)
  try {
    if (hedges && limits !== undefined)
      return await hedged({ machinery, guard, body: layered, options, deadline, limits, owned }, limits)
    return await attempts(machinery, guard, layered, options, deadline, limits, owned)
  } finally {
    limits?.release()
  }
}

// Its arguments one by one: an object for them would cost as much as the rest of a call that succeeds at once.
async function attempts<Result>(
  machinery: Machinery,
  guard: Guard | undefined,
  body: Body<Result>,
  options: RunOptions<Result> | undefined,
  deadline: Deadline | undefined,
  limits: CallLimits | undefined,
  owned: boolean,
  before?: Failures<Result>,
): Promise<Result> {
  const { breaker } = machinery
  let failures = before
  for (let number = before === undefined ? 1 : 2; ; number++) {
    const pass = breaker === undefined ? -1 : breaker.tryEnter(machinery.clock.monotonicMs())
    if (pass === 0) {
      const refusal = breakerOpen(machinery.name)
      if (failures !== undefined) return failures.end('breaker')
      throw refusal
    }
    // A wait may take longer than it should, where the event loop is blocked.
    if (failures !== undefined && !isUseful(machinery, deadline)) {
      breaker?.ignored(pass)
      return failures.end('deadline')
    }
    const attempt = new RunningAttempt(number, guard?.key, deadline)
    let failure: Failure<Result>
    try {
      const result = await (limits === undefined
        ? body(attempt)
        : limits.race(body, attempt, machinery.attemptTimeoutMs))
      if (!isReturnedVerdict(result)) {
        succeeded(machinery, pass)
        return result
      }
      failure = returnedFailure(result)
    } catch (error) {
      failure = { returned: false, error }
    }
    failures ??= new Failures({ machinery, guard, body, options, deadline, limits, owned })
    const ending = await failures.add(number, failure, pass)
    if (ending !== undefined) return ending.value
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
  return earlier(earlier(own, called), ambient)
}
