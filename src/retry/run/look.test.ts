import { describe, expect, it } from 'vitest'
import { Flaky, setup } from '../../../test/retry/virtual-policy.js'
import type { RetryPolicyOptions } from '../options.js'
import { conditional } from './conditional.js'

describe('somebody who looks at the world and never comes back', () => {
  const lookers = (seen: AbortSignal[]) => {
    const look = (signal: AbortSignal) => {
      seen.push(signal)
      return new Promise<undefined>(() => {})
    }
    const conflict = Object.assign(new Error('version moved on'), { status: 412 })
    const errors = [new Flaky(), conflict]
    return {
      resolve: (options: RetryPolicyOptions) => {
        const { policy, clock } = setup(options)
        const once = policy.once(() => Promise.reject(new Flaky()), { resolve: (_error, signal) => look(signal) })
        return { clock, ended: once.catch((error: unknown) => error) }
      },
      compare: (options: RetryPolicyOptions) => {
        const { policy, clock } = setup({ ...options, budget: false })
        const run = policy.run(conditional({ compare: look }), () => Promise.reject(errors.shift() ?? conflict))
        return { clock, ended: run.catch((error: unknown) => error) }
      },
    }
  }

  it.each(['resolve', 'compare'] as const)('%s has a minute, or until the deadline', async (way) => {
    for (const [options, limitMs, code] of [
      [{}, 60_000, 'ATTEMPT_TIMEOUT'],
      [{ deadline: '5m' }, 300_000, 'DEADLINE_EXCEEDED'],
      [{ deadline: '5s' }, 5_000, 'DEADLINE_EXCEEDED'],
    ] as const) {
      const seen: AbortSignal[] = []
      const { clock, ended } = lookers(seen)[way](options)
      let error: unknown
      void ended.then((reason) => {
        error = reason
      })
      await clock.advance(limitMs - 1)
      expect(seen.map(({ aborted }) => aborted)).toEqual([false])
      expect(error).toBeUndefined()
      await clock.advance(101)
      expect(error).toMatchObject({ code: 'UNKNOWN_OUTCOME', suppressed: [{ code }] })
      expect(seen[0]?.aborted).toBe(true)
      expect(clock.pendingTimers).toBe(0)
    }
  })
})
