import { describe, expect, it, vi } from 'vitest'
import { Flaky, failing, settle, setup } from '../../../test/retry/virtual-policy.js'
import { mintKey } from '../../identity/index.js'
import { seededRandom } from '../../testing/index.js'
import { keyed, readOnly } from '../guard.js'
import { type AttemptRecord, historyOf } from '../history.js'
import { retryPolicy } from '../policy.js'
import { UnknownOutcomeError } from '../unknown-outcome.js'
import { discard, failedBecause, permanent, transient, when } from '../verdict.js'

it('a call that succeeds at once reads no clock, sets no timer, draws nothing and makes no signal', async () => {
  const { clock } = setup()
  const used: string[] = []
  const watch = <Part extends object>(part: Part): Part =>
    new Proxy(part, {
      get: (target, name) => {
        used.push(String(name))
        return Reflect.get(target, name)
      },
    })
  const controllers = vi.spyOn(globalThis, 'AbortController')
  try {
    const policy = retryPolicy({ clock: watch(clock), random: watch(seededRandom(1)) })
    used.splice(0)
    expect(await policy.run(readOnly(), () => 'run')).toBe('run')
    expect(await policy.once(async () => 'once')).toBe('once')
    expect(used).toEqual([])
    expect(controllers).not.toHaveBeenCalled()
    // The same eyes see a call that fails.
    await expect(policy.run(readOnly(), () => Promise.reject(new Error('x')))).rejects.toThrow('x')
    expect(used).toContain('monotonicMs')
  } finally {
    controllers.mockRestore()
  }
})

describe('run', () => {
  it('calls once when the first attempt succeeds, with number and key', async () => {
    const key = mintKey()
    const { policy } = setup()
    const seen = await policy.run(keyed(key), (attempt) => ({ number: attempt.number, key: attempt.key }))
    expect(seen).toEqual({ number: 1, key })
  })

  it('counts attempts as calls: three are three, the first included', async () => {
    const { policy, clock } = setup()
    const { body, calls } = failing(99, () => new Flaky())
    await expect(settle(clock, policy.run(readOnly(), body))).rejects.toThrow('flaky')
    expect(calls.map(({ number }) => number)).toEqual([1, 2, 3])
    expect(clock.monotonicMs()).toBe(200)
  })

  it('gives the same key to every attempt', async () => {
    const key = mintKey()
    const { policy, clock } = setup()
    const { body, calls } = failing(2, () => new Flaky())
    await settle(clock, policy.run(keyed(key), body))
    expect(calls.map((attempt) => attempt.key)).toEqual([key, key, key])
  })

  it('throws what the function threw, with its history beside it', async () => {
    const { policy, clock } = setup()
    const errors = [new Flaky('no'), new Flaky('maybe'), new Flaky('no')]
    let call = 0
    const promise = policy.run(readOnly(), () => Promise.reject(errors[call++]))
    const thrown = await settle(clock, promise).catch((error: unknown) => error)
    // The latest that may have had an effect, not the harmless one after it.
    expect(thrown).toBe(errors[1])
    expect(historyOf(thrown)).toMatchObject({
      stop: 'attempts',
      attempts: [
        { number: 1, error: errors[0], delayMs: 100, verdict: { happened: 'no' } },
        { number: 2, error: errors[1], delayMs: 100 },
        { number: 3, error: errors[2] },
      ],
    })
    expect(historyOf(new Error('another'))).toBeUndefined()
  })

  it('tells exhausted from permanent', async () => {
    const { policy } = setup()
    const error = await policy.run(readOnly(), () => Promise.reject(new Error('who knows'))).catch((e: unknown) => e)
    expect(historyOf(error)).toMatchObject({ stop: 'permanent', attempts: [{ verdict: { why: 'unclassified' } }] })
  })

  // async-retry 1.3.3: `throw undefined` becomes a TypeError of its own.
  it.each([undefined, null, 0, '', 'text'])('async-retry: behaves when the function throws %j', async (thrown) => {
    const { policy, clock } = setup({ classify: when((error) => error === thrown, transient('odd', 'no')) })
    const body = vi.fn(() => Promise.reject(thrown))
    await expect(settle(clock, policy.run(readOnly(), body))).rejects.toBe(thrown)
    expect(body).toHaveBeenCalledTimes(3)
  })

  it('takes a synchronous throw and a synchronous value like any other', async () => {
    const { policy, clock } = setup()
    let calls = 0
    const body = () => {
      if (calls++ === 0) throw new Flaky()
      return 7
    }
    expect(await settle(clock, policy.run(readOnly(), body))).toBe(7)
  })

  it('fills a history on request, also when the call succeeds in the end', async () => {
    const { policy, clock } = setup()
    const history: AttemptRecord[] = []
    await settle(clock, policy.run(readOnly(), failing(1, () => new Flaky()).body, { history }))
    expect(history).toMatchObject([{ number: 1, delayMs: 100 }])
  })

  it('refuses what is no guard', async () => {
    const { policy } = setup()
    for (const bad of [undefined, {}, { rung: 'key' }, 'keyed']) {
      await expect(policy.run(bad as never, () => 1)).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    }
  })
})

describe('once', () => {
  it('repeats only what provably did not happen', async () => {
    const { policy, clock } = setup()
    const { body, calls } = failing(2, () => new Flaky('no'))
    expect(await settle(clock, policy.once(body))).toBe('done')
    expect(calls).toHaveLength(3)
  })

  it('ends in an unknown outcome when it may have happened, with the cause and the attempts', async () => {
    const { policy, clock } = setup()
    let call = 0
    const errors = [new Flaky('no'), new Flaky('maybe')]
    const error = await settle(
      clock,
      policy.once(() => Promise.reject(errors[call++])),
    ).catch((e: unknown) => e)
    expect(error).toBeInstanceOf(UnknownOutcomeError)
    expect(error).toMatchObject({ code: 'UNKNOWN_OUTCOME', cause: errors[1], attempts: [{ number: 1 }, { number: 2 }] })
    expect(call).toBe(2)
    expect(historyOf(error)?.stop).toBe('unguarded')
  })

  it('says how to classify what nobody classified', async () => {
    const { policy } = setup()
    await expect(policy.once(() => Promise.reject(new Error('?')))).rejects.toThrow(/classify/)
  })

  it('looks at the world when it is told how: found, not found, cannot tell', async () => {
    const { policy, clock } = setup()
    const found = policy.once(failing(1, () => new Flaky()).body, {
      resolve: () => ({ happened: true, value: 'found' }),
    })
    expect(await settle(clock, found)).toBe('found')
    const { body, calls } = failing(1, () => new Flaky())
    expect(await settle(clock, policy.once(body, { resolve: async () => ({ happened: false }) }))).toBe('done')
    expect(calls).toHaveLength(2)
    const blind = policy.once(failing(1, () => new Flaky()).body, { resolve: () => undefined })
    await expect(settle(clock, blind)).rejects.toBeInstanceOf(UnknownOutcomeError)
  })

  it('cannot tell either when looking fails: the outcome stays unknown, and the failure to look is kept', async () => {
    const { policy, clock } = setup()
    const lost = new Flaky()
    const resolve = () => Promise.reject(new Error('cannot look'))
    const error = await settle(
      clock,
      policy.once(() => Promise.reject(lost), { resolve }),
    ).catch((e: unknown) => e)
    expect(error).toMatchObject({ code: 'UNKNOWN_OUTCOME', cause: lost, suppressed: [{ message: 'cannot look' }] })
    expect(historyOf(error)?.stop).toBe('unguarded')
  })

  it('throws what was refused and did not happen as it is', async () => {
    const { policy } = setup({ classify: () => permanent('refused', 'no') })
    const refused = new Error('bad request')
    await expect(policy.once(() => Promise.reject(refused))).rejects.toBe(refused)
  })
})

describe('verdicts as values', () => {
  it('are repeated, and the last value comes back', async () => {
    const { policy, clock } = setup()
    let calls = 0
    const result = policy.run(readOnly(), () => failedBecause(transient('busy', 'no'), `answer ${++calls}`))
    expect(await settle(clock, result)).toBe('answer 3')
  })

  it('that may have happened are not hidden by a harmless failure after them', async () => {
    const { policy, clock } = setup()
    let calls = 0
    const result = policy.run(readOnly(), () => {
      if (++calls > 1) throw new Flaky('no')
      return failedBecause(transient('http-500', 'maybe'), 'answer 500')
    })
    expect(await settle(clock, result)).toBe('answer 500')
    expect(calls).toBe(3)
  })

  it('without a value are errors, so that nobody takes them for a success', async () => {
    const { policy, clock } = setup()
    const guarded = policy.run(readOnly(), () => failedBecause<string>(transient('busy', 'no')))
    const error = await settle(clock, guarded).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'ATTEMPT_FAILED' })
    expect(historyOf(error)).toMatchObject({ stop: 'attempts', attempts: [{}, {}, { verdict: { why: 'busy' } }] })
    const unguarded = policy.once(() => failedBecause<string>(transient('lost', 'maybe')))
    await expect(settle(clock, unguarded)).rejects.toBeInstanceOf(UnknownOutcomeError)
  })

  it('discard with a counter and no error', async () => {
    const { policy } = setup({ classify: () => discard('stale') })
    expect(await policy.run(readOnly(), () => failedBecause(discard('stale'), 'dropped'))).toBe('dropped')
    const onDiscard = (_verdict: unknown, error: unknown) => (error as Error).message
    expect(await policy.run(readOnly(), () => Promise.reject(new Error('old')), { onDiscard })).toBe('old')
    await expect(policy.run(readOnly(), () => Promise.reject(new Error('thrown')))).rejects.toThrow('thrown')
    expect(policy.discards).toBe(3)
  })
})
