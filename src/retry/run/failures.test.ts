import { describe, expect, it, vi } from 'vitest'
import { classify, Flaky, failing, settle, setup } from '../../../test/retry/virtual-policy.js'
import { conditional, readOnly } from '../guard.js'
import { historyOf } from '../history.js'
import type { RetryPolicyOptions } from '../options.js'
import { consecutiveBreaker } from '../target/breaker.js'
import { tokenBudget } from '../target/budget.js'
import { UnknownOutcomeError } from '../unknown-outcome.js'
import { permanent } from '../verdict.js'

describe('budget and breaker', () => {
  it('share one budget over all calls, and stop repeating when it is spent', async () => {
    const budget = tokenBudget({ maxTokens: 4, tokenRatio: 0.1 })
    const { policy, clock } = setup({ budget })
    const { body, calls } = failing(99, () => new Flaky())
    const first = await settle(clock, policy.run(readOnly(), body)).catch((e: unknown) => e)
    expect(historyOf(first)?.stop).toBe('budget')
    expect(calls).toHaveLength(2) // 4 → 3: again; 3 → 2: not more than half
    const second = await settle(clock, policy.run(readOnly(), body)).catch((e: unknown) => e)
    expect(historyOf(second)).toMatchObject({ stop: 'budget', attempts: [{ number: 1 }] })
  })

  it('never repeats an overload without a budget', async () => {
    const { policy, clock } = setup({ budget: false })
    const { body, calls } = failing(9, () => new Flaky('no', { overload: true }))
    const error = await settle(clock, policy.run(readOnly(), body)).catch((e: unknown) => e)
    expect(historyOf(error)?.stop).toBe('budget-required')
    expect(calls).toHaveLength(1)
  })

  it('leaves a target alone that keeps failing, and lets a probe find it well again', async () => {
    const breaker = consecutiveBreaker({ failures: 2, openFor: '1s' })
    const { policy, clock } = setup({ breaker, attempts: 5 })
    const { body, calls } = failing(2, () => new Flaky())
    const error = await settle(clock, policy.run(readOnly(), body)).catch((e: unknown) => e)
    expect(historyOf(error)?.stop).toBe('breaker')
    expect(calls).toHaveLength(2)
    await expect(policy.run(readOnly(), body)).rejects.toMatchObject({ code: 'BREAKER_OPEN' })
    expect(calls).toHaveLength(2)
    await clock.advance('1s')
    expect(await policy.run(readOnly(), body)).toBe('done')
    expect(breaker.state(clock.monotonicMs())).toBe('closed')
  })

  it('does not blame the target for what the caller did wrong', async () => {
    const breaker = consecutiveBreaker({ failures: 1 })
    const { policy, clock } = setup({ breaker })
    await expect(policy.run(readOnly(), () => Promise.reject(new Error('mine')))).rejects.toThrow('mine')
    expect(breaker.state(clock.monotonicMs())).toBe('closed')
  })
})

describe('a conditional write', () => {
  const conflict = () => Object.assign(new Error('version moved on'), { status: 412 })
  const classifyConflict = (error: unknown) =>
    (error as { status?: number }).status === 412 ? { ...permanent('http-412', 'no'), conflict: true } : classify(error)
  const bodyOf = (...errors: unknown[]) => {
    let call = 0
    return () => Promise.reject(errors[call++])
  }

  it('is a mismatch when nothing before it may have succeeded', async () => {
    const { policy, clock } = setup({ classify: classifyConflict })
    const compare = vi.fn(() => ({ ours: true, value: 'ours' }) as const)
    const error = conflict()
    await expect(settle(clock, policy.run(conditional({ compare }), bodyOf(new Flaky('no'), error)))).rejects.toBe(
      error,
    )
    expect(compare).not.toHaveBeenCalled()
  })

  it('may be our own success after a maybe: compares before anything is re-decided', async () => {
    const { policy, clock } = setup({ classify: classifyConflict, budget: false })
    const ours = policy.run<string>(
      conditional({ compare: () => ({ ours: true, value: 'written' }) }),
      bodyOf(new Flaky(), conflict()),
    )
    expect(await settle(clock, ours)).toBe('written')
    const error = conflict()
    const theirs = policy.run(conditional({ compare: async () => ({ ours: false }) }), bodyOf(new Flaky(), error))
    await expect(settle(clock, theirs)).rejects.toBe(error)
    const failing = () => Promise.reject(new Error('cannot look'))
    for (const guard of [conditional(), conditional({ compare: () => undefined }), conditional({ compare: failing })]) {
      await expect(settle(clock, policy.run(guard, bodyOf(new Flaky(), conflict())))).rejects.toBeInstanceOf(
        UnknownOutcomeError,
      )
    }
  })
})

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

describe('an error that nobody classified', () => {
  it('comes back as it is under a guard, and its history says how to classify it', async () => {
    const { policy } = setup()
    const thrown = new Error('E1234')
    await expect(policy.run(readOnly(), () => Promise.reject(thrown))).rejects.toBe(thrown)
    expect(historyOf(thrown)).toMatchObject({ stop: 'permanent', hint: expect.stringContaining('`classify`') })
    const known = Object.assign(new Error('no'), { status: 404 })
    await expect(policy.run(readOnly(), () => Promise.reject(known))).rejects.toBe(known)
    expect(historyOf(known)).not.toHaveProperty('hint')
  })

  it('has the same history where it is the cause of an unknown outcome, and the message says it too', async () => {
    const { policy } = setup()
    const thrown = new Error('E1234')
    const unknown = await policy.once(() => Promise.reject(thrown)).catch((error: unknown) => error as Error)
    expect(unknown).toMatchObject({ code: 'UNKNOWN_OUTCOME', cause: thrown })
    expect(historyOf(thrown)).toEqual(historyOf(unknown))
    expect((unknown as Error).message).toContain(historyOf(unknown)?.hint)
  })
})

describe('the error of attempts that disagree', () => {
  const run = async (guarded: boolean, ...errors: Error[]) => {
    const { policy, clock } = setup({ attempts: errors.length })
    let call = 0
    const body = () => Promise.reject(errors[call++])
    const thrown = await settle(clock, guarded ? policy.run(readOnly(), body) : policy.once(body)).catch(
      (e: unknown) => e,
    )
    expect(call).toBe(errors.length)
    return errors.indexOf(thrown as Error)
  }

  it('is the latest that may have had an effect', async () => {
    expect(await run(true, new Flaky('maybe'), new Flaky('maybe'), new Flaky('no'))).toBe(1)
    expect(await run(true, new Flaky('maybe'), new Flaky('no'), new Flaky('no'))).toBe(0)
    expect(await run(true, new Flaky('no'), new Flaky('maybe'))).toBe(1)
  })

  it.each([true, false])('is the last one where none may have had an effect; guarded: %s', async (guarded) => {
    expect(await run(guarded, new Flaky('no'), new Flaky('no'), new Flaky('no'))).toBe(2)
    const definite = Object.assign(new Error('not found'), { status: 404 })
    expect(await run(guarded, new Flaky('no'), definite)).toBe(1)
  })
})

describe('what is no proof', () => {
  const refused = Object.assign(new Error('connect'), { code: 'ECONNREFUSED', syscall: 'connect' })

  it.each([
    ['the cause of an unknown outcome', new UnknownOutcomeError(refused, [])],
    ['a cause under an error that says more', new Error('order saved, mail failed', { cause: refused })],
  ])('%s', async (_what, thrown) => {
    const { policy } = setup()
    const body = vi.fn(() => Promise.reject(thrown))
    await expect(policy.once(body)).rejects.toMatchObject({ code: 'UNKNOWN_OUTCOME' })
    expect(body).toHaveBeenCalledTimes(1)
  })

  it.each([
    { help: 'transient', happened: 'yes', why: 'x' },
    { help: 'soon', happened: 'no', why: 'x' },
    Promise.resolve(),
  ])('a verdict of the wrong shape: %j', async (verdict) => {
    const { policy } = setup({ classify: () => verdict as never })
    const body = vi.fn(() => Promise.reject(new Error('lost')))
    await expect(policy.once(body)).rejects.toMatchObject({ code: 'UNKNOWN_OUTCOME' })
    expect(body).toHaveBeenCalledTimes(1)
  })

  it.each([
    undefined,
    'busy',
    { help: 'transient', happened: 'yes', why: 'x' },
    { help: 'soon', happened: 'no', why: 'x' },
  ])('a returned verdict of the wrong shape, from another copy: %j', async (verdict) => {
    const { policy } = setup()
    const body = vi.fn(() => ({ [Symbol.for('reprise.verdict')]: true, verdict, value: undefined }))
    await expect(policy.once(body)).rejects.toMatchObject({ code: 'UNKNOWN_OUTCOME' })
    expect(body).toHaveBeenCalledTimes(1)
  })

  it('an unknown outcome is not repeated by a layer around it either: looking is what helps', async () => {
    const { policy } = setup()
    const body = vi.fn(() => Promise.reject(new UnknownOutcomeError(refused, [])))
    const error = await policy.run(readOnly(), body).catch((reason: unknown) => reason)
    expect(historyOf(error)).toMatchObject({ stop: 'permanent', attempts: [{ verdict: { why: 'UNKNOWN_OUTCOME' } }] })
    expect(body).toHaveBeenCalledTimes(1)
  })

  it('an error that throws when it is looked at: it comes back as it is', async () => {
    const trap = () => {
      throw new Error('trap')
    }
    const hostile = new Proxy(new Error('hostile'), { get: trap, has: trap })
    const { policy } = setup()
    let thrown: unknown
    try {
      await policy.run(readOnly(), () => Promise.reject(hostile))
    } catch (error) {
      thrown = error
    }
    expect(thrown === hostile).toBe(true)
  })
})
