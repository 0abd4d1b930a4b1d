import { describe, expect, it, vi } from 'vitest'
import { readOnly } from './guard.js'
import { demandPolicyOptions, demandRunOptions } from './options.js'
import { policyFrom, retry, retryPolicy } from './policy.js'

describe('options', () => {
  it.each([
    null,
    7,
    { name: 5 },
    { name: null },
    { attempts: null },
    { attempts: '3' },
    { layer: null },
    { backoff: 100 },
    { backoff: {} },
    { budget: true },
    { budget: null },
    { breaker: 'closed' },
    { classify: {} },
    { innermost: 'yes' },
    { clock: {} },
    { random: Math.random },
    { hedge: '1s' },
    { hedge: null },
    { hedge: { after: '1s' } },
  ])('refuses options of the wrong kind, and names the option: %j', (options) => {
    const path = options === null || typeof options === 'number' ? 'options' : Object.keys(options)[0]
    expect(() => retryPolicy(options as never)).toThrow(
      expect.objectContaining({ code: 'POLICY_INVALID', details: { path } }),
    )
  })

  it.each([{ deadline: null }, { attemptTimeout: null }, { maxRetryAfter: null }, { minimumRemainder: {} }])(
    'refuses what is no duration: %j',
    (options) => {
      expect(() => retryPolicy(options as never)).toThrow(expect.objectContaining({ code: 'DURATION_INVALID' }))
    },
  )

  it.each([null, { name: 5 }, { breaker: null }, { budget: null }, { backoff: null }, { layer: 'other' }])(
    'is not made from data of the wrong kind: %j',
    (changes) => {
      const data = changes && { ...retryPolicy().toJSON(), ...changes }
      expect(() => policyFrom(data as never)).toThrow(expect.objectContaining({ code: 'POLICY_INVALID' }))
    },
  )

  it.each([
    { deadline: null },
    { deadline: {} },
    { deadline: { expiresAtMs: Number.NaN } },
    { signal: null },
    { signal: {} },
    { history: {} },
    { history: Object.freeze([]) },
    { resolve: 'yes' },
    { onDiscard: null },
  ])('refuses a call with an option of the wrong kind before anything is called: %j', async (options) => {
    const body = vi.fn()
    const path = Object.keys(options)[0]
    const refusal = { code: 'ARGUMENT_INVALID', details: { path } }
    await expect(retryPolicy().run(readOnly(), body, options as never)).rejects.toMatchObject(refusal)
    await expect(retryPolicy().once(body, options as never)).rejects.toMatchObject(refusal)
    await expect(retry(readOnly(), body, options as never)).rejects.toMatchObject(refusal)
    expect(body).not.toHaveBeenCalled()
  })

  it('refuses a deadline of a call that is no duration, and a body that is no function', async () => {
    const wrong = { deadline: 'soon' } as never
    for (const options of [null, 7]) {
      const refused = retryPolicy().run(readOnly(), vi.fn(), options as never)
      await expect(refused).rejects.toMatchObject({ code: 'ARGUMENT_INVALID', details: { path: 'options' } })
    }
    await expect(retryPolicy().run(readOnly(), vi.fn(), wrong)).rejects.toMatchObject({ code: 'DURATION_INVALID' })
    for (const body of [undefined, null, 'text', {}]) {
      await expect(retryPolicy().run(readOnly(), body as never)).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
      await expect(retryPolicy().once(body as never)).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    }
  })

  it('may be left out, or be undefined', () => {
    expect(() => demandPolicyOptions({})).not.toThrow()
    expect(() => demandPolicyOptions({ name: undefined, budget: undefined, hedge: undefined } as never)).not.toThrow()
    expect(() => demandPolicyOptions({ budget: false })).not.toThrow()
    expect(() =>
      demandRunOptions({ signal: undefined, history: undefined, deadline: undefined } as never),
    ).not.toThrow()
  })
})
