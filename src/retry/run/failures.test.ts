import { describe, expect, it, vi } from 'vitest'
import { classify, Flaky, failing, settle, setup } from '../../../test/retry/virtual-policy.js'
import { readOnly } from '../guard.js'
import { historyOf } from '../history.js'
import { consecutiveBreaker } from '../target/breaker.js'
import { tokenBudget } from '../target/budget.js'
import { UnknownOutcomeError } from '../unknown-outcome.js'
import { permanent } from '../verdict.js'
import { conditional } from './conditional.js'

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
