// Attempts one after another: each called, judged if it failed, and followed by the next as was decided.

import type { Deadline } from '../../kernel/index.js'
import { retryRefused } from '../../telemetry/index.js'
import type { Guard } from '../guard.js'
import type { RunOptions } from '../options.js'
import { isReturnedVerdict, type ReturnedVerdict } from '../verdict.js'
import { type Body, RunningAttempt } from './attempt.js'
import { breakerOpen, isLayer, isUseful, type Machinery, succeeded } from './call.js'
import { type Failure, Failures, returnedFailure } from './failures.js'
import { asLayer } from './layers.js'
import { CallLimits } from './limits.js'

/** Goes on after the first attempt failed. */
export async function furtherAttempts<Result>(
  machinery: Machinery,
  guard: Guard | undefined,
  body: Body<Result>,
  owned: boolean,
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
    owned,
  })
  const ending = await failures.add(1, failure, pass)
  if (ending !== undefined) return ending.value
  const limits =
    machinery.attemptTimeoutMs === undefined ? undefined : new CallLimits(machinery.clock, undefined, undefined)
  return attempts(machinery, guard, layered(machinery, guard, body), undefined, undefined, limits, owned, failures)
}

/** The body as a layer, where it is one. */
export function layered<Result>(machinery: Machinery, guard: Guard | undefined, body: Body<Result>): Body<Result> {
  return isLayer(machinery, guard) ? (attempt) => asLayer(machinery, body, attempt) : body
}

/**
 * Makes attempts until one succeeds or no other may follow. Its arguments one by one: an object for them would cost as much
 * as the rest of a call that succeeds at once.
 */
export async function attempts<Result>(
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
      if (retryRefused.hasSubscribers) retryRefused.publish({ policy: machinery.name, by: 'deadline' })
      return failures.end('deadline')
    }
    const attempt = new RunningAttempt(number, guard?.key, deadline)
    let failure: Failure<Result> | undefined
    let result: Result | ReturnedVerdict<Result> | undefined
    try {
      result = await (limits === undefined ? body(attempt) : limits.race(body, attempt, machinery.attemptTimeoutMs))
    } catch (error) {
      failure = { returned: false, error }
    }
    // Outside: a breaker or budget that throws on hearing of a success does not make it a failure to be repeated.
    if (failure === undefined) {
      if (!isReturnedVerdict(result)) {
        succeeded(machinery, pass, failures !== undefined)
        return result as Result
      }
      failure = returnedFailure(result)
    }
    failures ??= new Failures({ machinery, guard, body, options, deadline, limits, owned })
    const ending = await failures.add(number, failure, pass)
    if (ending !== undefined) return ending.value
  }
}
