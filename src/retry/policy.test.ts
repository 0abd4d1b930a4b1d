import { describe, expect, it, vi } from 'vitest'
import { classify, Flaky, failing, settle, setup } from '../../test/retry/virtual-policy.js'
import { RepriseError } from './../kernel/index.js'
import { manualClock } from './../testing/index.js'
import { fullJitter } from './backoff.js'
import { repeatable } from './guard.js'
import { policyFrom, retry, retryPolicy } from './policy.js'
import { hedging } from './run/hedge.js'
import { consecutiveBreaker, windowBreaker } from './target/breaker.js'
import { ratioBudget } from './target/budget.js'

describe('a policy', () => {
  it.each([{ attempts: 0 }, { attempts: 21 }, { attempts: 1.5 }])('refuses %j', (options) => {
    expect(() => retryPolicy(options)).toThrow(expect.objectContaining({ code: 'POLICY_INVALID' }))
  })

  it('refuses a layer of another name', () => {
    expect(() => retryPolicy({ layer: 'bogus' as never })).toThrow(expect.objectContaining({ code: 'POLICY_INVALID' }))
  })

  it('refuses bad durations when it is made', () => {
    const wrong = [
      ['deadline', { deadline: -1 }],
      ['attemptTimeout', { attemptTimeout: Number.NaN }],
      ['maxRetryAfter', { maxRetryAfter: 'soon' as never }],
      ['minimumRemainder', { minimumRemainder: 0 }],
    ] as const
    for (const [option, options] of wrong) {
      const named = { code: 'DURATION_INVALID', message: expect.stringContaining(`The option ${option} is not valid.`) }
      expect(() => retryPolicy(options)).toThrow(expect.objectContaining(named))
    }
    for (const breaker of [() => windowBreaker({ window: 'long' as never }), () => ratioBudget({ window: -1 })]) {
      expect(breaker).toThrow('The option window is not valid.')
    }
    expect(() => hedging({ after: '20 ms' as never })).toThrow('The option after is not valid.')
  })

  it('is plain data, and can be made from it', () => {
    const { policy } = setup({
      name: 'gateway',
      backoff: fullJitter(),
      breaker: consecutiveBreaker(),
      deadline: '2s',
      hedge: hedging({ after: 50 }),
      innermost: true,
    })
    const data = JSON.parse(JSON.stringify(policy))
    expect(data).toMatchObject({
      name: 'gateway',
      attempts: 3,
      deadlineMs: 2_000,
      budget: { kind: 'token' },
      hedgeAfterMs: 50,
      innermost: true,
    })
    expect(policyFrom(data).toJSON()).toEqual(data)
  })

  it('can be used in one line', async () => {
    const clock = manualClock()
    const { body, calls } = failing(1, () => new Flaky())
    expect(await settle(clock, retry(repeatable('sets a flag'), body, { classify, clock, layer: 'own' }))).toBe('done')
    expect(calls).toHaveLength(2)
  })

  it.each([{ attempts: 0 }, { deadline: 'soon' }, null])(
    'in one line rejects %j, and does not throw',
    async (options) => {
      const body = vi.fn(() => 1)
      let call: Promise<unknown> | undefined
      expect(() => {
        call = retry(repeatable('sets a flag'), body, options as never)
      }).not.toThrow()
      await expect(call).rejects.toMatchObject({ code: expect.stringMatching(/_INVALID$/) })
      expect(body).not.toHaveBeenCalled()
    },
  )

  it('treats refusals of an inner policy as what they are', async () => {
    const { policy, clock } = setup()
    let calls = 0
    const body = () => {
      calls += 1
      return Promise.reject(new RepriseError('BREAKER_OPEN', 'inner'))
    }
    await expect(settle(clock, policy.once(body))).rejects.toMatchObject({ code: 'BREAKER_OPEN' })
    expect(calls).toBe(3) // it provably did not happen
  })
})

// With the module loaded anew: the first use of the one-line form in a process is one inside another.
it('one-line retries inside one another make as many calls as the outer one says', async () => {
  vi.resetModules()
  const retrying = await import('./index.js')
  const { constantDelay } = retrying
  const options = {
    classify: () => retrying.transient('flaky', 'maybe'),
    backoff: constantDelay(0),
    budget: false,
  } as const
  const body = vi.fn(() => Promise.reject(new Error('flaky')))
  const nested = retrying.retry(retrying.readOnly(), () => retrying.retry(retrying.readOnly(), body, options), options)
  await expect(nested).rejects.toThrow('flaky')
  expect(body).toHaveBeenCalledTimes(3)
})
