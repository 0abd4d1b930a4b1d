import diagnostics from 'node:diagnostics_channel'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { mintKey } from '../../identity/index.js'
import { eventLoopTurn } from '../../kernel/index.js'
import type { RetryLayersEvent } from '../../telemetry/index.js'
import type * as Retry from '../index.js'
import type { RetryPolicyOptions } from '../options.js'

// A process in which nobody has repeated anything yet: what a first attempt calls is seen as far as that costs nothing.
describe.each([0, 20])('the first failure of a process with %i policies beside', (beside) => {
  let retry: typeof Retry
  const events: RetryLayersEvent[] = []
  const hear = (event: unknown) => void events.push(event as RetryLayersEvent)
  // Whoever listens has every attempt enter context, so that listening begins when the first attempt has begun.
  const listen = () => {
    diagnostics.unsubscribe('reprise.retry.layers', hear)
    diagnostics.subscribe('reprise.retry.layers', hear)
  }
  beforeEach(async () => {
    vi.resetModules()
    retry = await import('../index.js')
    for (let count = 0; count < beside; count += 1) retry.retryPolicy()
    events.length = 0
  })
  afterEach(() => void diagnostics.unsubscribe('reprise.retry.layers', hear))

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
    const atOnce = () => {
      if (calls === 0) listen()
      return inner().run(retry.readOnly(), sink)
    }
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

  it('hears of itself behind an await by the error that came of it, and then sees itself', async () => {
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
      listen()
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
    listen()
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

  it('hears of a policy that is made inside it behind an await, and then sees it', async () => {
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

  it('makes five calls of three by three where the error was replaced, and three from then on', async () => {
    const inner = policyOf('inner')
    const outer = policyOf('outer')
    let calls = 0
    const sink = () => {
      calls += 1
      return Promise.reject(new Error('flaky'))
    }
    const body = async () => {
      await eventLoopTurn()
      await inner.run(retry.readOnly(), sink).catch(() => {
        throw new Error('flaky, and nobody says why')
      })
    }
    await expect(outer.run(retry.readOnly(), body)).rejects.toThrow('nobody says why')
    expect(calls).toBe(3 + 1 + 1)
    calls = 0
    await expect(outer.run(retry.readOnly(), body)).rejects.toThrow('nobody says why')
    expect(calls).toBe(3)
  })

  it('keeps every call that is in flight to its allowance, also three layers deep', async () => {
    const [one, two, three] = [policyOf('one'), policyOf('two'), policyOf('three')] as const
    let calls = 0
    const sink = () => {
      calls += 1
      return Promise.reject(new Error('flaky'))
    }
    const later = (inner: () => Promise<unknown>) => () => eventLoopTurn().then(inner)
    const nested = () =>
      one.run(
        retry.readOnly(),
        later(() =>
          two.run(
            retry.readOnly(),
            later(() => three.run(retry.readOnly(), sink)),
          ),
        ),
      )
    const ended = await Promise.allSettled(Array.from({ length: 16 }, nested))
    expect(ended.every(({ status }) => status === 'rejected')).toBe(true)
    expect(calls).toBe(16 * 3)
  })

  it('hears of the key of a call that it did not see, and refuses another one in its repeat', async () => {
    const inner = policyOf('inner', { attempts: 1 })
    const outer = policyOf('outer')
    let calls = 0
    const body = async () => {
      await eventLoopTurn()
      return inner.run(retry.keyed(mintKey()), () => {
        calls += 1
        return Promise.reject(new Error('flaky'))
      })
    }
    await expect(outer.run(retry.readOnly(), body)).rejects.toMatchObject({ code: 'KEY_PER_ATTEMPT' })
    expect(calls).toBe(1)
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
