// How calls of other libraries end, or do not end, when they are called off or run out of time.

import { describe, expect, it, vi } from 'vitest'
import { eventLoopTurn } from '../../../src/kernel/index.js'
import {
  type Attempt,
  constantDelay,
  failedBecause,
  hedging,
  permanent,
  readOnly,
  retryPolicy,
} from '../../../src/retry/index.js'
import { Flaky, failing, settle, setup } from '../virtual-policy.js'

const never = () => new Promise<never>(() => {})

describe('called off', () => {
  it('cockatiel 4.0.0: a signal that is aborted already runs nothing', async () => {
    const reason = new Error('gone')
    const signal = AbortSignal.abort(reason)
    const body = vi.fn(() => 1)
    for (const options of [{}, { attemptTimeout: 50 }, { hedge: hedging({ after: 10 }) }]) {
      const { policy } = setup(options)
      await expect(policy.run(readOnly(), body, { signal })).rejects.toBe(reason)
      await expect(policy.once(body, { signal })).rejects.toBe(reason)
    }
    expect(body).not.toHaveBeenCalled()
  })

  it.each([
    ['a classifier', () => setup({ classify: () => permanent('bailed') }), () => Promise.reject(new Error('bailed'))],
    ['a returned verdict', () => setup(), async () => failedBecause(permanent('bailed'))],
  ])('async-retry 1.3.3: after bailing by %s nothing runs in the background', async (_how, make, bail) => {
    const { policy, clock } = make()
    const body = vi.fn(bail)
    await expect(policy.run(readOnly(), body)).rejects.toBeInstanceOf(Error)
    expect(clock.pendingTimers).toBe(0)
    await clock.advance('1h')
    expect(body).toHaveBeenCalledTimes(1)
  })

  it('async-retry 1.3.3: a body that calls everything off and then throws is not called again', async () => {
    const { policy, clock } = setup()
    const abort = new AbortController()
    const reason = new Error('bailed')
    const body = vi.fn(async () => {
      abort.abort(reason)
      throw new Flaky('no')
    })
    await expect(policy.run(readOnly(), body, { signal: abort.signal })).rejects.toBe(reason)
    await clock.advance('1h')
    expect(body).toHaveBeenCalledTimes(1)
  })

  it('p-retry: waits of 0 ms leave a turn to others, so that an abort is heard', async () => {
    const policy = retryPolicy({
      attempts: 20,
      backoff: constantDelay(0),
      classify: () => ({ help: 'transient', happened: 'no', why: 'flaky' }),
      budget: false,
      layer: 'own',
    })
    const { body, calls } = failing(99, () => new Error('flaky'))
    let turns = 0
    const turn = () => {
      turns += 1
      next = setImmediate(turn)
    }
    let next = setImmediate(turn)
    await expect(policy.run(readOnly(), body)).rejects.toThrow('flaky')
    clearImmediate(next)
    expect(calls).toHaveLength(20)
    expect(turns).toBeGreaterThanOrEqual(19)

    const abort = new AbortController()
    setImmediate(() => abort.abort('heard'))
    const again = failing(99, () => new Error('flaky'))
    await expect(policy.run(readOnly(), again.body, { signal: abort.signal })).rejects.toBe('heard')
    expect(again.calls.length).toBeLessThan(20)
  })
})

describe('out of time', () => {
  it('opossum 10: an attempt that runs out of time is told so', async () => {
    const { policy, clock } = setup({ attempts: 1, attemptTimeout: 50 })
    let attempt: Attempt | undefined
    const body = (given: Attempt) => {
      attempt = given
      void given.signal
      return never()
    }
    const watched = policy.run(readOnly(), body).catch((reason: unknown) => reason)
    await clock.advance(50)
    expect(await watched).toMatchObject({ code: 'ATTEMPT_TIMEOUT' })
    expect(attempt?.signal.reason).toMatchObject({ code: 'ATTEMPT_TIMEOUT' })
  })

  it('opossum #780: one attempt that runs out of time aborts no other', async () => {
    const { policy, clock } = setup({ attempts: 1, attemptTimeout: 50 })
    const signals: AbortSignal[] = []
    const body = ({ signal }: Attempt) => {
      signals.push(signal)
      return never()
    }
    const first = policy.run(readOnly(), body).catch(() => 'timed out')
    await clock.advance(30)
    const second = policy.run(readOnly(), body).catch(() => 'timed out')
    await clock.advance(20)
    expect(await first).toBe('timed out')
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false])
    await clock.advance(30)
    expect(await second).toBe('timed out')
  })

  it('cockatiel #69: an attempt that ends in time leaves no timer behind', async () => {
    const { policy, clock } = setup({ attemptTimeout: '1h', deadline: '2h' })
    const abort = new AbortController()
    expect(await policy.run(readOnly(), async () => 'done', { signal: abort.signal })).toBe('done')
    // The timer of a policy is shared by its calls, and taken down once nobody is left who needs it.
    await eventLoopTurn()
    expect(clock.pendingTimers).toBe(0)
  })

  it('p-retry 9: a limit of 500 ms ends the call after 500 ms, also within an attempt', async () => {
    const { policy, clock } = setup({ deadline: 500 })
    const body = vi.fn(
      () => new Promise((_resolve, reject) => clock.setTimer(300, () => reject(new Flaky('no')))) as Promise<never>,
    )
    const error = await settle(clock, policy.run(readOnly(), body)).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(clock.monotonicMs()).toBe(500)
    expect(body).toHaveBeenCalledTimes(2)
  })

  it('linkerd #2369: no wait is begun that would outlast the total time', async () => {
    const { policy, clock } = setup({ attempts: 20, deadline: '5s', backoff: constantDelay(2_000), budget: false })
    const { body, calls } = failing(99, () => new Flaky('no'))
    await expect(settle(clock, policy.run(readOnly(), body))).rejects.toBeInstanceOf(Flaky)
    expect(calls).toHaveLength(3)
    expect(clock.monotonicMs()).toBe(4_000)
  })
})
