import diagnostics from 'node:diagnostics_channel'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { eventLoopTurn } from '../../kernel/index.js'
import type { RetryLayersEvent } from '../../telemetry/index.js'
import type * as Retry from '../index.js'
import type { RetryPolicyOptions } from '../options.js'

// A process in which one policy was alone when a call began: what it calls is seen as far as that costs nothing.
describe('a policy that was alone when its call began', () => {
  let retry: typeof Retry
  const events: RetryLayersEvent[] = []
  const listen = (event: unknown) => void events.push(event as RetryLayersEvent)
  beforeEach(async () => {
    vi.resetModules()
    retry = await import('../index.js')
    events.length = 0
    diagnostics.subscribe('reprise.retry.layers', listen)
  })
  afterEach(() => void diagnostics.unsubscribe('reprise.retry.layers', listen))

  const policyOf = (name: string, options: RetryPolicyOptions = {}) =>
    retry.retryPolicy({
      name,
      classify: () => retry.transient('flaky', 'maybe'),
      backoff: retry.constantDelay(0.01),
      budget: false,
      ...options,
    })

  async function callsOf(
    outer: Retry.RetryPolicy,
    inner: () => Retry.RetryPolicy,
    how: 'at once' | 'behind an await',
  ): Promise<number> {
    let calls = 0
    const sink = () => {
      calls += 1
      return Promise.reject(new Error('flaky'))
    }
    const atOnce = () => inner().run(retry.readOnly(), sink)
    const later = async () => {
      await eventLoopTurn()
      return atOnce()
    }
    await expect(outer.run(retry.readOnly(), how === 'at once' ? atOnce : later)).rejects.toThrow('flaky')
    return calls
  }

  it.each<RetryPolicyOptions>([{}, { attemptTimeout: '1m' }, { deadline: '1m' }])(
    'sees itself in what its body calls at once: %o',
    async (options) => {
      const policy = policyOf('alone', options)
      expect(await callsOf(policy, () => policy, 'at once')).toBe(3)
      expect(events).toMatchObject(Array(3).fill({ policy: 'alone', depth: 2, declared: 9, allowed: 1, allowance: 3 }))
    },
  )

  it('sees itself through a call in between that is no layer', async () => {
    const policy = policyOf('alone')
    const between = policyOf('between', { attempts: 1 })
    let calls = 0
    const sink = () => {
      calls += 1
      return Promise.reject(new Error('flaky'))
    }
    const body = () => between.run(retry.readOnly(), () => policy.run(retry.readOnly(), sink))
    await expect(policy.run(retry.readOnly(), body)).rejects.toThrow('flaky')
    expect(calls).toBe(3)
  })

  it('hears of itself behind an await by the error that came of it, and then sees itself always', async () => {
    const policy = policyOf('alone')
    // The first attempt is not seen, so the inner call repeats; nothing is left to the outer one.
    expect(await callsOf(policy, () => policy, 'behind an await')).toBe(3)
    const meeting = { policy: 'alone', kind: 'policy', depth: 2, declared: 9, allowed: 3, allowance: 3, spent: 2 }
    expect(events).toEqual([meeting])
    expect(await callsOf(policy, () => policy, 'behind an await')).toBe(3)
    expect(events.slice(1)).toMatchObject(Array(3).fill({ policy: 'alone', allowed: 1 }))
  })

  it.each<[string, (error: unknown) => unknown]>([
    ['as it is', (error) => error],
    ['as a cause', (error) => new Error('flaky', { cause: error })],
    ['as a cause of a cause', (error) => new Error('flaky', { cause: new Error('', { cause: error }) })],
    ['among others', (error) => new AggregateError([new Error('other'), error], 'flaky')],
    ['as a value', (error) => error],
  ])('hears of what was repeated out of its sight: %s', async (how, wrapped) => {
    const policy = policyOf('alone')
    let calls = 0
    const sink = () => {
      calls += 1
      const failed = new Error('flaky')
      return how === 'as a value'
        ? retry.failedBecause(retry.transient('flaky', 'maybe'), failed)
        : Promise.reject(failed)
    }
    const body = async () => {
      await eventLoopTurn()
      const ended = await policy.run(retry.readOnly(), sink).catch((error: unknown) => Promise.reject(wrapped(error)))
      return how === 'as a value' ? retry.failedBecause(retry.transient('flaky', 'maybe'), ended) : ended
    }
    await policy.run(retry.readOnly(), body as () => Promise<unknown>).catch(() => undefined)
    expect(calls).toBe(3)
    expect(events).toMatchObject([{ declared: 9, spent: 2 }])
  })

  it('takes nothing from a call that merely ends with the same error', async () => {
    const policy = policyOf('alone')
    const same = new Error('flaky')
    const calls = { first: 0, second: 0 }
    const call = (name: keyof typeof calls) =>
      policy.run(retry.readOnly(), () => {
        calls[name] += 1
        return Promise.reject(same)
      })
    await expect(call('first')).rejects.toBe(same)
    await expect(call('second')).rejects.toBe(same)
    expect(calls).toEqual({ first: 3, second: 3 })
    expect(events).toEqual([])
  })

  it('sees a policy that is made inside it, at once', async () => {
    let inner: Retry.RetryPolicy | undefined
    const lazily = () => (inner ??= policyOf('inner'))
    expect(await callsOf(policyOf('outer'), lazily, 'at once')).toBe(3)
    expect(events).toMatchObject(Array(3).fill({ policy: 'inner', depth: 2, declared: 9, allowed: 1 }))
  })

  it('hears of a policy that is made inside it behind an await, and then sees it always', async () => {
    let inner: Retry.RetryPolicy | undefined
    const lazily = () => (inner ??= policyOf('inner'))
    const outer = policyOf('outer')
    expect(await callsOf(outer, lazily, 'behind an await')).toBe(3)
    expect(await callsOf(outer, lazily, 'behind an await')).toBe(3)
  })

  it('sees what is inside of one that is declared to be innermost: at once, and by the error that came of it', async () => {
    const inner = policyOf('inner')
    const outer = policyOf('outer', { innermost: true })
    expect(await callsOf(outer, () => inner, 'at once')).toBe(3)
    expect(await callsOf(outer, () => inner, 'behind an await')).toBe(3)
    // It is owned by what is around it like any other.
    expect(await callsOf(inner, () => outer, 'behind an await')).toBe(3)
  })

  it('is no layer to what runs beside it, nor after it', async () => {
    const policy = policyOf('alone')
    const other = () => callsOf(policy, () => policyOf('once', { attempts: 1 }), 'at once')
    await policy.run(retry.readOnly(), () => 'done')
    const running = policy.run(retry.readOnly(), eventLoopTurn)
    const beside = other()
    await running
    expect([await beside, await other()]).toEqual([3, 3])
  })

  it('is not remembered where its body threw at once', async () => {
    const policy = policyOf('alone', { attempts: 2 })
    const thrown = policy.run(retry.readOnly(), () => {
      throw new Error('flaky')
    })
    let calls = 0
    const after = policy.run(retry.readOnly(), () => {
      calls += 1
      return Promise.reject(new Error('flaky'))
    })
    await expect(thrown).rejects.toThrow('flaky')
    await expect(after).rejects.toThrow('flaky')
    expect(calls).toBe(2)
    expect(events).toEqual([])
  })
})
