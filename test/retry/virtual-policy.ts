// Policies in virtual time, and bodies that fail as often as they are told to.

import type { Attempt, RetryPolicyOptions } from '../../src/retry/index.js'
import { constantDelay, retryPolicy, transient } from '../../src/retry/index.js'
import { type ManualClock, manualClock, seededRandom } from '../../src/testing/index.js'

export class Flaky extends Error {
  readonly happened: 'no' | 'maybe'
  readonly extra: object

  constructor(happened: 'no' | 'maybe' = 'maybe', extra: object = {}) {
    super('flaky')
    this.happened = happened
    this.extra = extra
  }
}

export const classify = (error: unknown) =>
  error instanceof Flaky ? transient('flaky', error.happened, error.extra) : undefined

export function setup(options: RetryPolicyOptions = {}) {
  const clock = manualClock()
  const policy = retryPolicy({
    classify,
    clock,
    backoff: constantDelay(100),
    layer: 'own',
    random: seededRandom(1),
    ...options,
  })
  return { clock, policy }
}

/** Settles a promise while virtual time runs; answers what it came to. */
export async function settle<Result>(clock: ManualClock, promise: Promise<Result>): Promise<Result> {
  let done = false
  const watched = promise.finally(() => {
    done = true
  })
  watched.catch(() => undefined)
  for (let turns = 0; turns < 200 && !done; turns++) if (!(await clock.runToNext())) await null
  return watched
}

export const failing = (times: number, error: () => unknown, value = 'done') => {
  const calls: Attempt[] = []
  const body = async (attempt: Attempt): Promise<string> => {
    calls.push(attempt)
    if (calls.length <= times) throw error()
    return value
  }
  return { body, calls }
}
