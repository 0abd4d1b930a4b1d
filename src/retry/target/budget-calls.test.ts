// What the runner tells a budget: each call counts once, whatever becomes of its attempts.

import { describe, expect, it } from 'vitest'
import { manualClock } from '../../testing/index.js'
import { constantDelay } from '../backoff.js'
import { readOnly } from '../guard.js'
import type { RetryPolicyOptions } from '../options.js'
import { retryPolicy } from '../policy.js'
import { hedging } from '../run/hedge.js'
import { transient } from '../verdict.js'
import { ratioBudget } from './budget.js'

// The level is then half the calls, less the repeats.
function setup(options: RetryPolicyOptions = {}) {
  const clock = manualClock()
  const budget = ratioBudget({ ratio: 0.5, initial: 0, refillPerSecond: 0, window: '1h' })
  for (let call = 0; call < 20; call += 1) budget.succeeded(clock.monotonicMs())
  const classify = () => transient('slow', 'maybe')
  const backoff = constantDelay(100)
  const policy = retryPolicy({ attempts: 3, budget, classify, clock, backoff, layer: 'own', ...options })
  return { clock, policy, level: () => budget.level(clock.monotonicMs()) }
}

describe('a call counts once', () => {
  it('with its only attempt', async () => {
    const { policy, level } = setup()
    await policy.run(readOnly(), () => 'done')
    expect(level()).toBe(10.5)
  })

  it.each([
    ['a success after two repeats', 3],
    ['failures only', 4],
  ])('with %s', async (_name, succeedsAt) => {
    const { clock, policy, level } = setup()
    const call = policy
      .run(readOnly(), ({ number }) => {
        if (number < succeedsAt) throw new Error('slow')
        return number
      })
      .catch(() => 'failed')
    await clock.advance('1s')
    expect(await call).toBe(succeedsAt === 3 ? 3 : 'failed')
    expect(level()).toBe(10.5 - 2)
  })

  it('with a wait that the caller left: the repeat is paid for, and no call is missing', async () => {
    const { clock, policy, level } = setup()
    const controller = new AbortController()
    let calls = 0
    const call = policy.run(
      readOnly(),
      () => {
        calls += 1
        throw new Error('slow')
      },
      { signal: controller.signal },
    )
    await clock.advance(50)
    controller.abort('left')
    await expect(call).rejects.toBe('left')
    expect(calls).toBe(1)
    expect(level()).toBe(10.5 - 1)
  })

  it.each([1, 2, 3])('with hedges of which number %d wins', async (winner) => {
    const { clock, policy, level } = setup({ hedge: hedging({ after: 10 }) })
    const finish: ((value: number) => void)[] = []
    const call = policy.run(
      readOnly(),
      ({ number }) =>
        new Promise<number>((resolve) => {
          finish[number] = resolve
        }),
    )
    await clock.advance(50)
    expect(finish).toHaveLength(4)
    finish[winner]?.(winner)
    expect(await call).toBe(winner)
    expect(level()).toBe(10.5 - 2)
    // Those that lost may end as they like.
    for (const late of finish) late?.(0)
    await clock.advance('1s')
    expect(level()).toBe(10.5 - 2)
  })

  it('with a hedge that wins after the first attempt failed', async () => {
    const { clock, policy, level } = setup({ hedge: hedging({ after: 10 }) })
    const call = policy.run(readOnly(), async ({ number }) => {
      if (number === 1) throw new Error('slow')
      return number
    })
    await clock.advance(50)
    expect(await call).toBe(2)
    expect(level()).toBe(10.5 - 1)
  })
})
