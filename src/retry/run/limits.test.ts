import diagnostics from 'node:diagnostics_channel'
import { describe, expect, it, vi } from 'vitest'
import { classify, Flaky, failing, settle, setup } from '../../../test/retry/virtual-policy.js'
import { currentDeadline, withIntent } from '../../identity/index.js'
import { deadlineAfter, eventLoopTurn } from '../../kernel/index.js'
import { constantDelay } from '../backoff.js'
import { readOnly } from '../guard.js'
import { type AttemptRecord, historyOf } from '../history.js'
import type { Attempt } from '../options.js'
import { retryPolicy } from '../policy.js'
import { permanent } from '../verdict.js'
import { conditional } from './conditional.js'
import { hedging } from './hedge.js'

describe('cancellation', () => {
  it('aborted before: no call at all', async () => {
    const { policy } = setup()
    const body = vi.fn(() => 1)
    await expect(policy.run(readOnly(), body, { signal: AbortSignal.abort('gone') })).rejects.toBe('gone')
    expect(body).not.toHaveBeenCalled()
  })

  // cockatiel 4.0.0: rejects at the end of the wait, after calling the function again.
  it('cockatiel: aborted during the wait: settles at once, and no attempt follows', async () => {
    const { policy, clock } = setup({ backoff: constantDelay(500) })
    const { body, calls } = failing(9, () => new Flaky())
    const abort = new AbortController()
    const promise = policy.run(readOnly(), body, { signal: abort.signal })
    const watched = promise.catch((reason: unknown) => reason)
    await clock.advance(100)
    abort.abort('gone')
    expect(await watched).toBe('gone')
    expect(clock.monotonicMs()).toBe(100)
    await clock.advance(5_000)
    expect(calls).toHaveLength(1)
    expect(clock.pendingTimers).toBe(0)
  })

  it('aborted during an attempt: settles at once, tells the body, and calls no more', async () => {
    const { policy, clock } = setup()
    const abort = new AbortController()
    let told: unknown
    const body = vi.fn(({ signal }: Attempt) => {
      signal.addEventListener('abort', () => {
        told = signal.reason
      })
      return new Promise(() => {})
    })
    const history: AttemptRecord[] = []
    const options = { signal: abort.signal, history }
    const watched = policy.run(readOnly(), body, options).catch((reason: unknown) => reason)
    await clock.advance(10)
    abort.abort('gone')
    expect(await watched).toBe('gone')
    expect(told).toBe('gone')
    expect(history).toMatchObject([{ number: 1, verdict: { why: 'aborted', happened: 'maybe' } }])
    await clock.advance(5_000)
    expect(body).toHaveBeenCalledTimes(1)
  })
})

describe('time', () => {
  it('ends an attempt that takes too long, tells the body, and tries again', async () => {
    const { policy, clock } = setup({ attemptTimeout: 50 })
    const aborted: unknown[] = []
    let calls = 0
    const body = ({ signal }: Attempt) => {
      if (++calls > 1) return 'second'
      signal.addEventListener('abort', () => aborted.push(signal.reason))
      return new Promise<string>(() => {})
    }
    expect(await settle(clock, policy.run(readOnly(), body))).toBe('second')
    expect(aborted).toMatchObject([{ code: 'ATTEMPT_TIMEOUT' }])
    expect(clock.monotonicMs()).toBe(150)
  })

  it('knows of an attempt that timed out that it may have happened', async () => {
    const { policy, clock } = setup({ attemptTimeout: 50 })
    const error = await settle(
      clock,
      policy.once(() => new Promise(() => {})),
    ).catch((e: unknown) => e)
    expect(error).toMatchObject({ code: 'UNKNOWN_OUTCOME', cause: { code: 'ATTEMPT_TIMEOUT' } })
  })

  it('ends at the deadline, in the middle of an attempt', async () => {
    const { policy, clock } = setup({ deadline: 250 })
    const promise = policy.run(readOnly(), ({ number }) =>
      number === 1 ? Promise.reject(new Flaky()) : new Promise(() => {}),
    )
    await expect(settle(clock, promise)).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(clock.monotonicMs()).toBe(250)
    expect(clock.pendingTimers).toBe(0)
  })

  it('does not wait for an attempt that could not be useful any more', async () => {
    const { policy, clock } = setup({ deadline: 250, minimumRemainder: 100, attempts: 9 })
    const { body, calls } = failing(9, () => new Flaky())
    const error = await settle(clock, policy.run(readOnly(), body)).catch((e: unknown) => e)
    expect(historyOf(error)?.stop).toBe('deadline')
    expect(calls).toHaveLength(2) // at 0 and 100; at 200 only 50 ms would be left
    expect(clock.monotonicMs()).toBe(100)
  })

  it('refuses a call whose deadline has passed, before it is made', async () => {
    const { policy, clock } = setup()
    const body = vi.fn(() => 1)
    const deadline = deadlineAfter(10, clock)
    await clock.advance(10)
    await expect(policy.run(readOnly(), body, { deadline })).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(body).not.toHaveBeenCalled()
  })

  it('is bound by the deadline of the intent in flight, and hands it on', async () => {
    const { policy, clock } = setup({ deadline: '10s' })
    const deadline = deadlineAfter(150, clock)
    const { body, calls } = failing(9, () => new Flaky())
    const promise = withIntent({ deadline }, () => policy.run(readOnly(), body))
    const error = await settle(clock, promise).catch((e: unknown) => e)
    expect(historyOf(error)?.stop).toBe('deadline')
    expect(calls[0]?.deadline).toBe(deadline)
  })

  it('leaves no timer behind after a success', async () => {
    const { policy, clock } = setup({ deadline: '10s', attemptTimeout: '1s' })
    await policy.run(readOnly(), async () => 1, { signal: new AbortController().signal })
    await eventLoopTurn()
    expect(clock.pendingTimers).toBe(0)
  })
})

describe('looking at the world', () => {
  const never = () => new Promise<never>(() => {})

  it('ends with the call: an abort is the end of it, a deadline leaves the outcome unknown', async () => {
    const { policy, clock } = setup()
    const abort = new AbortController()
    const lost = () => Promise.reject(new Flaky())
    const aborted = policy.once(lost, { resolve: never, signal: abort.signal }).catch((reason: unknown) => reason)
    await clock.advance(50)
    abort.abort('gone')
    expect(await aborted).toBe('gone')
    const late = policy.once(lost, { resolve: never, deadline: 100 })
    await expect(settle(clock, late)).rejects.toMatchObject({
      code: 'UNKNOWN_OUTCOME',
      suppressed: [{ code: 'DEADLINE_EXCEEDED' }],
    })
    expect(clock.pendingTimers).toBe(0)
  })

  it.each(['resolve', 'compare'])(
    'keeps the attempt in the history when the caller leaves during %s',
    async (looks) => {
      const events: unknown[] = []
      const listen = (event: unknown) => void events.push(event)
      diagnostics.subscribe('reprise.retry.attempt', listen)
      const conflict = (error: unknown) =>
        error === 'conflict' ? { ...permanent('http-412', 'no'), conflict: true } : classify(error)
      const { policy, clock } = setup({ classify: conflict })
      const abort = new AbortController()
      const history: AttemptRecord[] = []
      const options = { signal: abort.signal, history }
      const reason = new Error('gone')
      const body = ({ number }: Attempt) => Promise.reject(number === 1 ? new Flaky() : 'conflict')
      const running = (
        looks === 'resolve'
          ? policy.once(body, { ...options, resolve: never })
          : policy.run(conditional({ compare: never }), body, options)
      ).catch((error: unknown) => error)
      await clock.advance(150)
      abort.abort(reason)
      expect(await running).toBe(reason)
      diagnostics.unsubscribe('reprise.retry.attempt', listen)
      const number = looks === 'resolve' ? 1 : 2
      expect(history.at(-1)).toMatchObject({ number, verdict: { why: looks === 'resolve' ? 'flaky' : 'http-412' } })
      expect(historyOf(reason)).toMatchObject({ stop: 'aborted', attempts: history })
      expect(history).toHaveLength(number)
      expect(events.at(-1)).toMatchObject({ attempt: number, stop: 'aborted' })
    },
  )

  it('takes time: no attempt follows when too little is left', async () => {
    const { policy, clock } = setup({ deadline: 200 })
    const { body, calls } = failing(9, () => new Flaky())
    const resolve = () =>
      new Promise<{ happened: false }>((answer) => void clock.setTimer(150, () => answer({ happened: false })))
    const error = await settle(clock, policy.once(body, { resolve })).catch((e: unknown) => e)
    expect(historyOf(error)?.stop).toBe('deadline')
    expect(calls).toHaveLength(1)
  })

  it('leaves a record of an attempt that turned out to have happened', async () => {
    const { policy } = setup()
    const history: AttemptRecord[] = []
    const resolve = () => ({ happened: true, value: 'found' }) as const
    expect(await policy.once(failing(1, () => new Flaky()).body, { resolve, history })).toBe('found')
    expect(history).toMatchObject([{ number: 1, verdict: { happened: 'maybe' } }])
  })
})

describe('Retry-After', () => {
  it('as a date is compared with the clock of the policy', async () => {
    const { policy, clock } = setup()
    const atMs = clock.wallMs() + 5_000
    const busy = () =>
      Object.assign(new Error('429'), { status: 429, headers: { 'retry-after': new Date(atMs).toUTCString() } })
    await settle(clock, policy.run(readOnly(), failing(1, busy).body))
    expect(clock.monotonicMs()).toBe(5_000)
  })

  it('is a lower bound for the wait', async () => {
    const { policy, clock } = setup()
    await settle(clock, policy.run(readOnly(), failing(1, () => new Flaky('no', { retryAfterMs: 700 })).body))
    expect(clock.monotonicMs()).toBe(700)
  })

  it('that is too long ends the call at once, with the wait in the history', async () => {
    const { policy, clock } = setup({ maxRetryAfter: '1s' })
    const { body, calls } = failing(9, () => new Flaky('no', { retryAfterMs: 1_001 }))
    const error = await settle(clock, policy.run(readOnly(), body)).catch((e: unknown) => e)
    expect(historyOf(error)).toMatchObject({ stop: 'retry-after', attempts: [{ verdict: { retryAfterMs: 1_001 } }] })
    expect(calls).toHaveLength(1)
  })
})

describe('a deadline on the way inwards', () => {
  const nested = async (outer: Parameters<typeof setup>[0], call: { deadline?: number } | undefined) => {
    const { policy, clock } = setup(outer)
    const inner = retryPolicy({
      attempts: 10,
      backoff: constantDelay(30),
      layer: 'own',
      budget: false,
      classify,
      clock,
    })
    const { body, calls } = failing(99, () => new Flaky())
    const seen: unknown[] = []
    let innerEnd: unknown
    const work = async (attempt: Attempt) => {
      await null
      seen.push(attempt.deadline, currentDeadline())
      return inner.run(readOnly(), body).catch((error: unknown) => {
        innerEnd = historyOf(error)?.stop
        throw error
      })
    }
    const running = policy.run(readOnly(), work, call).catch((error: unknown) => error)
    await clock.advance(100)
    const callsUntil = calls.length
    await clock.advance('10s')
    await running
    return { seen, innerEnd, callsUntil, calls: calls.length, pending: clock.pendingTimers }
  }

  it.each([
    ['of the policy', { deadline: 100, attempts: 1 }, undefined],
    ['of the call', { attempts: 1 }, { deadline: 100 }],
    ['under a hedge', { deadline: 100, attempts: 1, hedge: hedging({ after: 1_000 }) }, undefined],
  ])('is seen by what the body calls, and ends it: %s', async (_whose, outer, call) => {
    const { seen, innerEnd, callsUntil, calls, pending } = await nested(outer, call)
    expect(seen.slice(0, 2)).toEqual([{ expiresAtMs: 100 }, { expiresAtMs: 100 }])
    expect(innerEnd).toBe('deadline')
    expect([callsUntil, calls, pending]).toEqual([4, 4, 0])
  })

  it('is only the one around where that is earlier, and none where there is none', async () => {
    const { policy, clock } = setup({ deadline: '1s' })
    const deadline = deadlineAfter(150, clock)
    expect(await withIntent({ deadline }, () => policy.run(readOnly(), () => currentDeadline()))).toBe(deadline)
    expect(await setup().policy.run(readOnly(), () => currentDeadline(), {})).toBeUndefined()
  })

  it('that never comes is none', async () => {
    const { policy, clock } = setup()
    const never = { expiresAtMs: Number.POSITIVE_INFINITY }
    const seen = ({ deadline }: Attempt) => [deadline, currentDeadline()]
    expect(await policy.run(readOnly(), seen, { deadline: never })).toEqual([undefined, undefined])
    const { body } = failing(1, () => new Flaky())
    expect(await settle(clock, policy.run(readOnly(), body, { deadline: never }))).toBe('done')
    const passed = policy.run(readOnly(), seen, { deadline: { expiresAtMs: Number.NEGATIVE_INFINITY } })
    await expect(passed).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
  })
})
