import { describe, expect, it } from 'vitest'
import { mintKey } from '../../identity/index.js'
import { manualClock } from '../../testing/index.js'
import { keyed, readOnly } from '../guard.js'
import { historyOf } from '../history.js'
import type { Attempt, RetryPolicyOptions } from '../options.js'
import { retryPolicy } from '../policy.js'
import { consecutiveBreaker } from '../target/breaker.js'
import { ratioBudget, tokenBudget } from '../target/budget.js'
import { failedBecause, permanent, transient } from '../verdict.js'
import { conditional } from './conditional.js'
import { hedging } from './hedge.js'

function setup(options: RetryPolicyOptions = {}) {
  const clock = manualClock()
  const classify = (error: unknown) =>
    (error as Error).message === 'fatal' ? permanent('fatal', 'no') : transient('slow', 'maybe')
  const policy = retryPolicy({ classify, clock, hedge: hedging({ after: 100 }), attempts: 3, layer: 'own', ...options })
  const started: { attempt: Attempt; atMs: number; succeed: (value: string) => void; fail: (error: Error) => void }[] =
    []
  const body = (attempt: Attempt) =>
    new Promise<string>((resolve, reject) => {
      void attempt.signal
      started.push({ attempt, atMs: clock.monotonicMs(), succeed: resolve, fail: reject })
    })
  return { clock, policy, started, body }
}

describe('hedging', () => {
  it('sends another attempt while the first is out; the first success wins and the losers are cancelled', async () => {
    const { clock, policy, started, body } = setup()
    const key = mintKey()
    const result = policy.run(keyed(key), body)
    await clock.advance(250)
    expect(started.map(({ atMs, attempt }) => [atMs, attempt.number, attempt.key])).toEqual([
      [0, 1, key],
      [100, 2, key],
      [200, 3, key],
    ])
    started[1]?.succeed('second')
    expect(await result).toBe('second')
    expect(started.map(({ attempt }) => attempt.signal.aborted)).toEqual([true, false, true])
    await clock.advance('1m')
    expect(started).toHaveLength(3)
    expect(clock.pendingTimers).toBe(0)
  })

  it('never hedges without a guard', async () => {
    const { clock, policy, started, body } = setup()
    const result = policy.once(body)
    await clock.advance(500)
    expect(started).toHaveLength(1)
    started[0]?.succeed('only')
    expect(await result).toBe('only')
  })

  it('sends the next one at once when an attempt fails', async () => {
    const { clock, policy, started, body } = setup()
    const result = policy.run(readOnly(), body)
    await clock.advance(10)
    started[0]?.fail(new Error('slow'))
    await clock.advance(1)
    expect(started.map(({ atMs }) => atMs)).toEqual([0, 10])
    started[1]?.succeed('second')
    expect(await result).toBe('second')
  })

  it('ends when all have failed, with the history of all', async () => {
    const { clock, policy, started, body } = setup({ budget: false })
    const watched = policy.run(readOnly(), body).catch((error: unknown) => error)
    for (let number = 0; number < 3; number++) {
      await clock.advance(10)
      started[number]?.fail(new Error('slow'))
    }
    await clock.advance(10)
    expect(historyOf(await watched)).toMatchObject({
      stop: 'attempts',
      attempts: [{ number: 1 }, { number: 2 }, { number: 3 }],
    })
    expect(started).toHaveLength(3)
  })

  it('after a fatal failure sends no more, and waits for what is out: that may have succeeded', async () => {
    const { clock, policy, started, body } = setup()
    const result = policy.run(readOnly(), body)
    await clock.advance(150)
    started[1]?.fail(new Error('fatal'))
    await clock.advance('1m')
    expect(started).toHaveLength(2)
    started[0]?.succeed('first')
    expect(await result).toBe('first')
    const failing = setup()
    const watched = failing.policy.run(readOnly(), failing.body).catch((error: unknown) => error)
    await failing.clock.advance(150)
    failing.started[1]?.fail(new Error('fatal'))
    failing.started[0]?.fail(new Error('fatal'))
    expect(await watched).toMatchObject({ message: 'fatal' })
  })

  it('never hedges under a precondition: a double that fails it may speak of our own success', async () => {
    const { clock, policy, started, body } = setup()
    const result = policy.run(conditional(), body)
    await clock.advance(500)
    expect(started).toHaveLength(1)
    started[0]?.succeed('written')
    expect(await result).toBe('written')
  })

  it('cockatiel: aborted while it waits for the next hedge, settles at once and sends no more', async () => {
    const { clock, policy } = setup({ classify: () => transient('busy', 'no', { retryAfterMs: 500 }), budget: false })
    let calls = 0
    const abort = new AbortController()
    const body = () => {
      calls += 1
      throw new Error('busy')
    }
    const watched = policy.run(readOnly(), body, { signal: abort.signal }).catch((reason: unknown) => reason)
    await clock.advance(50)
    abort.abort('gone')
    expect(await watched).toBe('gone')
    await clock.advance('1m')
    expect(calls).toBe(1)
    expect(clock.pendingTimers).toBe(0)
  })

  it('ends at the deadline also while it waits for the next hedge', async () => {
    const { clock, policy } = setup({
      classify: () => transient('busy', 'no', { retryAfterMs: 200 }),
      deadline: 300,
      budget: false,
    })
    // The event loop is blocked past the deadline: both timers fire late.
    const monotonicMs = clock.monotonicMs
    let blockedMs = 0
    Object.assign(clock, { monotonicMs: () => monotonicMs() + blockedMs })
    const watched = policy
      .run(readOnly(), () => {
        throw new Error('busy')
      })
      .catch((error: unknown) => error)
    await clock.advance(10)
    blockedMs = 400
    await clock.advance('1m')
    expect(historyOf(await watched)?.stop).toBe('deadline')
  })

  it('ends with its own failure also where the deadline passes while it waits for the next one', async () => {
    const { clock, policy } = setup({
      classify: () => transient('busy', 'no', { retryAfterMs: 200 }),
      deadline: 300,
      budget: false,
    })
    const { monotonicMs } = clock
    let blockedMs = 0
    Object.assign(clock, { monotonicMs: () => monotonicMs() + blockedMs })
    const busy = new Error('busy')
    const watched = policy.run(readOnly(), () => Promise.reject(busy)).catch((error: unknown) => error)
    await clock.advance(10)
    blockedMs = 291
    await clock.advance(190)
    expect(await watched).toBe(busy)
    expect(historyOf(busy)?.stop).toBe('deadline')
    expect(clock.pendingTimers).toBe(0)
  })

  it('never shortens a wait that was asked for, whatever becomes of others', async () => {
    const { clock, policy } = setup({
      classify: (error) => transient('busy', 'no', (error as Error).message === 'wait' ? { retryAfterMs: 1_000 } : {}),
      budget: false,
      attempts: 4,
    })
    const startedAtMs: number[] = []
    const result = policy.run(readOnly(), ({ number }) => {
      startedAtMs.push(clock.monotonicMs())
      const late = (_: unknown, reject: (error: Error) => void) => clock.setTimer(150, () => reject(new Error('late')))
      if (number === 1) return new Promise<string>(late)
      if (number === 2) throw new Error('wait')
      return 'third'
    })
    await clock.advance(3_000)
    expect(await result).toBe('third')
    expect(startedAtMs).toEqual([0, 100, 1_100])
  })

  it('lets go of the time-outs of losers that do not listen', async () => {
    const { clock, policy } = setup({ attemptTimeout: '30s' })
    const result = policy.run(readOnly(), ({ number }) => (number === 1 ? new Promise<string>(() => {}) : 'second'))
    await clock.advance(150)
    expect(await result).toBe('second')
    await null
    expect(clock.pendingTimers).toBe(0)
  })

  // grpc-js: hedged attempts are not subject to throttling there.
  it('grpc-js: hedges ask the budget like any repeat', async () => {
    const budget = tokenBudget({ maxTokens: 4, tokenRatio: 0.1 })
    budget.failed(0)
    budget.failed(0)
    const { clock, policy, started, body } = setup({ budget })
    const result = policy.run(readOnly(), body)
    await clock.advance(500)
    expect(started).toHaveLength(1)
    started[0]?.succeed('first')
    expect(await result).toBe('first')
  })

  it('a server that forbids repeats stops further hedges, and those in flight go on', async () => {
    const { clock, policy } = setup()
    let calls = 0
    let finish: (value: string) => void = () => undefined
    const result = policy.run(readOnly(), () => {
      calls += 1
      if (calls === 2) return failedBecause({ ...transient('pushback', 'no'), doNotRepeat: true }, 'refused')
      return new Promise<string>((resolve) => {
        finish = resolve
      })
    })
    await clock.advance(500)
    expect(calls).toBe(2)
    finish('first')
    expect(await result).toBe('first')
  })

  it('a failure that asks for a wait gets it, thrown or returned', async () => {
    const { clock, policy } = setup({ classify: () => transient('busy', 'no', { retryAfterMs: 70 }) })
    const startedAtMs: number[] = []
    const result = policy.run(readOnly(), () => {
      startedAtMs.push(clock.monotonicMs())
      if (startedAtMs.length === 1) throw new Error('busy')
      return 'second'
    })
    await clock.advance(100)
    expect(await result).toBe('second')
    expect(startedAtMs).toEqual([0, 70])
  })

  it('sends no hedge that could not be useful any more, and pays for none that is not sent', async () => {
    const { clock, policy, started, body } = setup({ deadline: 250, minimumRemainder: 100 })
    policy.run(readOnly(), body).catch(() => undefined)
    await clock.advance(240)
    expect(started.map(({ atMs }) => atMs)).toEqual([0, 100])
    const budget = ratioBudget({ initial: 5, refillPerSecond: 0, ratio: 0 })
    const paying = setup({ budget, attempts: 2 })
    paying.policy.run(readOnly(), paying.body).catch(() => undefined)
    await paying.clock.advance(150)
    const before = budget.level(150)
    paying.started[0]?.fail(new Error('slow'))
    await paying.clock.advance(1)
    expect(budget.level(150)).toBe(before)
  })

  it('takes from the budget what it sends: failures in one turn share the repeat that follows', async () => {
    const budget = ratioBudget({ initial: 10, refillPerSecond: 0, ratio: 0 })
    const { clock, policy, started, body } = setup({ budget, attempts: 4 })
    const result = policy.run(readOnly(), body)
    await clock.advance(150)
    expect(started).toHaveLength(2)
    expect(budget.level(150)).toBe(9)
    started[0]?.fail(new Error('slow'))
    started[1]?.fail(new Error('slow'))
    await clock.advance(10)
    expect(started).toHaveLength(3)
    expect(budget.level(160)).toBe(8)
    await clock.advance(100)
    expect(started).toHaveLength(4)
    expect(budget.level(260)).toBe(7)
    started[3]?.succeed('fourth')
    expect(await result).toBe('fourth')
  })

  it('takes nothing for a failure after which no more are sent', async () => {
    const budget = ratioBudget({ initial: 10, refillPerSecond: 0, ratio: 0 })
    const { clock, policy, started, body } = setup({ budget, attempts: 4 })
    const watched = policy.run(readOnly(), body).catch((error: unknown) => error)
    await clock.advance(150)
    started[1]?.fail(new Error('fatal'))
    await clock.advance(1)
    started[0]?.fail(new Error('slow'))
    expect(await watched).toMatchObject({ message: 'slow' })
    expect(budget.level(151)).toBe(9)
  })

  it('fails once at its deadline, however many are out, and says that it was the deadline', async () => {
    const budget = tokenBudget()
    const breaker = consecutiveBreaker({ failures: 3 })
    // All three have been sent by then, so that no attempt is left either.
    const { clock, policy, started, body } = setup({ budget, breaker, deadline: 250 })
    const watched = policy.run(readOnly(), body).catch((error: unknown) => error)
    await clock.advance(120)
    started[0]?.fail(new Error('slow'))
    await clock.advance(1)
    expect(started).toHaveLength(3)
    expect(budget.level(0)).toBe(9)
    await clock.advance(200)
    const error = await watched
    expect(error).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(historyOf(error)).toMatchObject({
      stop: 'deadline',
      attempts: [{ number: 1 }, { number: 2 }, { number: 3 }],
    })
    // One for the attempt that failed, and one for the call that ran out of time.
    expect(budget.level(0)).toBe(8)
    expect(breaker.state(clock.monotonicMs())).toBe('closed')
    expect(clock.pendingTimers).toBe(0)
  })

  it('counts every attempt that failed by itself, also with one and the same error', async () => {
    const budget = tokenBudget()
    const { clock, policy, started, body } = setup({ budget, attempts: 2 })
    const watched = policy.run(readOnly(), body).catch((error: unknown) => error)
    await clock.advance(150)
    const same = new Error('slow')
    for (const { fail } of started) fail(same)
    expect(historyOf(await watched)).toMatchObject({ stop: 'attempts', attempts: [{ number: 1 }, { number: 2 }] })
    expect(budget.level(0)).toBe(8)
  })

  it('is refused when the breaker is open, and settles at the deadline', async () => {
    const breaker = consecutiveBreaker({ failures: 1 })
    breaker.open(0)
    const refused = setup({ breaker })
    await expect(refused.policy.run(readOnly(), refused.body)).rejects.toMatchObject({ code: 'BREAKER_OPEN' })
    const { clock, policy, body } = setup({ deadline: 250 })
    const watched = policy.run(readOnly(), body).catch((error: unknown) => error)
    await clock.advance(300)
    expect(await watched).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(clock.pendingTimers).toBe(0)
  })
})

describe('hedging', () => {
  it('refuses what is no time of at least 1 ms, when it is made', () => {
    for (const after of [0, '0ms', null, undefined]) {
      expect(() => hedging({ after: after as never })).toThrow(expect.objectContaining({ code: 'DURATION_INVALID' }))
    }
    expect(() => hedging(null as never)).toThrow(expect.objectContaining({ code: 'POLICY_INVALID' }))
    expect(hedging({ after: '1.5s' })).toMatchObject({ afterMs: 1_500 })
  })
})
