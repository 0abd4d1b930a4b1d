import { AsyncLocalStorage } from 'node:async_hooks'
import diagnostics from 'node:diagnostics_channel'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { eventLoopTurn } from '../../kernel/index.js'
import { manualClock, seededRandom } from '../../testing/index.js'
import type * as Retry from '../index.js'
import type { Attempt, RetryPolicyOptions } from '../options.js'

// While nobody repeats, layers need not see each other: the module is loaded anew for each test, as in a new process.
describe('a first attempt', () => {
  let retry: typeof Retry
  let enteredContext: ReturnType<typeof vi.spyOn>
  beforeEach(async () => {
    vi.resetModules()
    retry = await import('../index.js')
    enteredContext = vi.spyOn(AsyncLocalStorage.prototype, 'run')
  })
  afterEach(() => {
    vi.restoreAllMocks()
  })

  function setup(options: RetryPolicyOptions = {}) {
    const clock = manualClock()
    const classify = (error: unknown) =>
      (error as Error)?.message === 'flaky' ? retry.transient('flaky', 'maybe') : undefined
    const backoff = retry.constantDelay(100)
    const policy = retry.retryPolicy({ classify, clock, backoff, random: seededRandom(1), ...options })
    const settle = async <Result>(promise: Promise<Result>): Promise<Result> => {
      let done = false
      const watched = promise.finally(() => {
        done = true
      })
      watched.catch(() => undefined)
      for (let turns = 0; turns < 50 && !done; turns++) await clock.runToNext()
      return watched
    }
    return { clock, policy, settle, guard: retry.readOnly() }
  }

  it('gives back what the first attempt gives, plain or promised', async () => {
    const { policy, guard } = setup()
    expect(await policy.run(guard, () => 7)).toBe(7)
    expect(await policy.run(guard, async ({ number }) => number)).toBe(1)
    expect(enteredContext).not.toHaveBeenCalled()
    // Without a guard it has to be seen what leaves.
    expect(await policy.once(() => undefined)).toBeUndefined()
    expect(enteredContext).toHaveBeenCalledTimes(1)
  })

  it.each(['thrown', 'rejected', 'returned'])(
    'goes on after a failure that was %s, counting from the first',
    async (how) => {
      const { policy, settle, guard, clock } = setup()
      const numbers: number[] = []
      const body = ({ number }: Attempt): string | Promise<string> | Retry.ReturnedVerdict<string> => {
        numbers.push(number)
        if (number === 3) return 'third'
        if (how === 'returned') return retry.failedBecause(retry.transient('busy', 'no'), 'value')
        if (how === 'rejected') return Promise.reject(new Error('flaky'))
        throw new Error('flaky')
      }
      expect(await settle(policy.run(guard, body))).toBe('third')
      expect(numbers).toEqual([1, 2, 3])
      expect(clock.monotonicMs()).toBe(200)
      expect(enteredContext).toHaveBeenCalledTimes(2) // by the repeats, which are rare
    },
  )

  it('ends in the error of the function, with the history of all attempts', async () => {
    const { policy, settle, guard } = setup()
    const error = await settle(policy.run(guard, () => Promise.reject(new Error('flaky')))).catch((e: unknown) => e)
    expect(retry.historyOf(error)).toMatchObject({
      stop: 'attempts',
      attempts: [{ number: 1 }, { number: 2 }, { number: 3 }],
    })
    await expect(policy.run(guard, () => Promise.reject(undefined))).rejects.toBeUndefined()
  })

  it('repeats nothing unguarded that may have happened', async () => {
    const { policy, settle } = setup()
    const body = vi.fn(() => Promise.reject(new Error('flaky')))
    await expect(settle(policy.once(body))).rejects.toMatchObject({ code: 'UNKNOWN_OUTCOME' })
    expect(body).toHaveBeenCalledTimes(1)
  })

  it('ends an attempt at its time-out, hears nothing of it afterwards, and leaves no timer', async () => {
    const { policy, settle, guard, clock } = setup({ attemptTimeout: 50 })
    let late: (value: string) => void = () => undefined
    const reasons: unknown[] = []
    const body = ({ number, signal }: Attempt) => {
      if (number > 1) return 'second'
      signal.addEventListener('abort', () => reasons.push(signal.reason))
      return new Promise<string>((resolve) => {
        late = resolve
      })
    }
    expect(await settle(policy.run(guard, body))).toBe('second')
    late('first')
    await null
    expect(reasons).toMatchObject([{ code: 'ATTEMPT_TIMEOUT' }])
    expect(clock.monotonicMs()).toBe(150)
    await expect(settle(policy.once(() => new Promise(() => {})))).rejects.toMatchObject({
      code: 'UNKNOWN_OUTCOME',
      cause: { code: 'ATTEMPT_TIMEOUT' },
    })
    await policy.run(guard, async () => 'quick')
    await eventLoopTurn()
    expect(clock.pendingTimers).toBe(0)
  })

  it('calls nothing while the breaker is open, and tells breaker and budget of successes', async () => {
    const breaker = retry.consecutiveBreaker({ failures: 1 })
    const budget = retry.tokenBudget({ maxTokens: 10, tokenRatio: 0.5 })
    budget.failed(0)
    const { policy, guard } = setup({ breaker, budget })
    await policy.run(guard, () => 1)
    expect(budget.level(0)).toBe(9.5)
    breaker.open(0)
    const body = vi.fn(() => 1)
    await expect(policy.run(guard, body)).rejects.toMatchObject({ code: 'BREAKER_OPEN' })
    expect(body).not.toHaveBeenCalled()
    expect(enteredContext).not.toHaveBeenCalled()
  })

  it('enters no context while nobody repeats, however many policies there are', async () => {
    const policies = Array.from({ length: 100 }, () => setup())
    for (const { policy, guard } of policies) {
      const nested = policy.run(guard, async () => {
        await null
        return (policies.at(-1) ?? policies[0])?.policy.run(guard, async () => 'inner')
      })
      expect(await nested).toBe('inner')
      await expect(policy.run(guard, () => Promise.reject(new Error('permanent')))).rejects.toThrow('permanent')
    }
    expect(enteredContext).not.toHaveBeenCalled()
  })

  it.each<[string, (again: boolean) => RetryPolicyOptions]>([
    ['a repeat', () => ({})],
    ['a hedge', () => ({ hedge: retry.hedging({ after: 10 }) })],
  ])('enters context for ten seconds after %s anywhere in the process', async (_what, options) => {
    vi.useFakeTimers({ toFake: ['performance'] })
    try {
      const failing = setup(options(true))
      const others = Array.from({ length: 20 }, (_, index) => setup({ innermost: index === 0 }))
      const entered = async () => {
        enteredContext.mockClear()
        for (const { policy, guard } of others) await policy.run(guard, async () => 1)
        return enteredContext.mock.calls.length
      }
      expect(await entered()).toBe(0)
      const body = ({ number }: Attempt) => (number === 1 ? Promise.reject(new Error('flaky')) : 'second')
      expect(await failing.settle(failing.policy.run(failing.guard, body))).toBe('second')
      // One of them is declared to be innermost.
      expect(await entered()).toBe(19)
      vi.advanceTimersByTime(9_999)
      expect(await entered()).toBe(19)
      vi.advanceTimersByTime(1)
      expect(await entered()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  it('enters context where somebody listens to meetings of layers', async () => {
    const { policy, guard } = setup()
    const listen = () => undefined
    diagnostics.subscribe('reprise.retry.layers', listen)
    await policy.run(guard, async () => 1)
    diagnostics.unsubscribe('reprise.retry.layers', listen)
    await policy.run(guard, async () => 2)
    expect(enteredContext).toHaveBeenCalledTimes(1)
  })

  it('enters context where a client compares the keys of attempts', async () => {
    const { policy, guard } = setup()
    retry.watchKeys()
    await policy.run(guard, async () => 1)
    expect(enteredContext).toHaveBeenCalledTimes(1)
  })

  it.each<RetryPolicyOptions>([{}, { attemptTimeout: 50 }])(
    'leaves context once for each attempt that entered it, so that it can rest: %o',
    async (options) => {
      const { policy, guard } = setup({ ...options, attempts: 2, backoff: retry.constantDelay(0) })
      retry.watchKeys()
      const rested = vi.spyOn(AsyncLocalStorage.prototype, 'disable')
      for (let turn = 1; turn <= 3; turn++) {
        const failed = policy.run(guard, () => Promise.reject(new Error('mine')))
        expect(await policy.run(guard, async () => 1)).toBe(1)
        await expect(failed).rejects.toThrow('mine')
        rested.mockClear()
        expect(await policy.run(guard, async () => turn)).toBe(turn)
        await eventLoopTurn()
        expect(rested).toHaveBeenCalled()
      }
    },
  )
})
