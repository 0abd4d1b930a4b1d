import { describe, expect, it } from 'vitest'
import { isRepriseError } from '../kernel/index.js'
import { hedging, ratioBudget, retryPolicy, tokenBudget } from '../retry/index.js'
import { capacityShareAt, hiddenCapacity, stormSettings, triggerEndSeconds } from './storm-settings.js'

const policy = retryPolicy({ attempts: 4, budget: false }).toJSON()

describe('stormSettings', () => {
  it('takes the time-out of the policy before any other', () => {
    const timed = retryPolicy({ attemptTimeout: 250 }).toJSON()
    expect(stormSettings({ policy }).timeoutMs).toBe(1000)
    expect(stormSettings({ policy, timeoutMs: 500 }).timeoutMs).toBe(500)
    expect(stormSettings({ policy: timed, timeoutMs: 500 }).timeoutMs).toBe(250)
  })

  it.each([
    ['load', 0],
    ['load', Number.NaN],
    ['clients', 1.5],
    ['clients', 10_001],
    ['triggerCapacity', 0],
    ['triggerSeconds', -1],
    ['seconds', 3601],
    ['queueLimit', -1],
  ])('refuses %s = %d', (name, value) => {
    expect(() => stormSettings({ policy, [name]: value })).toThrowError(
      expect.objectContaining({ code: 'ARGUMENT_INVALID', details: expect.objectContaining({ name }) }),
    )
  })

  it.each([
    [undefined, 'ARGUMENT_INVALID'],
    [null, 'ARGUMENT_INVALID'],
    [{}, 'POLICY_INVALID'],
    [{ policy: null }, 'POLICY_INVALID'],
    [{ policy: {} }, 'POLICY_INVALID'],
    [{ policy: { attempts: 3 } }, 'POLICY_INVALID'],
    [{ policy: { ...policy, attempts: 0 } }, 'POLICY_INVALID'],
    [{ policy: { ...policy, attempts: '3' } }, 'POLICY_INVALID'],
    [{ policy: { ...policy, backoff: undefined } }, 'POLICY_INVALID'],
    [{ policy: { ...policy, budget: {} } }, 'POLICY_INVALID'],
    [{ policy: { ...policy, maxRetryAfterMs: undefined } }, 'POLICY_INVALID'],
    [{ policy: { ...policy, attemptTimeoutMs: -1 } }, 'ARGUMENT_INVALID'],
    [{ policy, load: '700' }, 'ARGUMENT_INVALID'],
    [{ policy, refusal: 'rude' }, 'ARGUMENT_INVALID'],
    [{ policy, peerBudget: null }, 'ARGUMENT_INVALID'],
  ])('refuses %j with %s', (options, code) => {
    let error: unknown
    try {
      stormSettings(options as never)
    } catch (reason) {
      error = reason
    }
    expect(isRepriseError(error)).toBe(true)
    expect(error).toMatchObject({ code })
  })

  it('refuses to leave hedging out unasked', () => {
    const hedged = retryPolicy({ hedge: hedging({ after: 100 }) }).toJSON()
    expect(() => stormSettings({ policy: hedged })).toThrowError(
      expect.objectContaining({ code: 'SIMULATION_UNSUPPORTED', details: { path: 'hedgeAfterMs' } }),
    )
  })

  it('takes a policy that would never hedge: nothing makes a second attempt harmless, or there is none', () => {
    const hedged = retryPolicy({ hedge: hedging({ after: 100 }) }).toJSON()
    expect(stormSettings({ policy: hedged, guarded: false }).policy).toBe(hedged)
    expect(stormSettings({ policy: { ...hedged, attempts: 1 } }).policy.attempts).toBe(1)
  })

  it('fills in the quota of a peer', () => {
    expect(stormSettings({ policy }).peerBudget).toBe('none')
    const filled = { kind: 'quota', capacity: 500, cost: 5, gain: 1 }
    expect(stormSettings({ policy, peerBudget: { kind: 'quota', cost: 5 } }).peerBudget).toEqual(filled)
    expect(() => stormSettings({ policy, peerBudget: { kind: 'quota', cost: 0 } })).toThrowError(/peerBudget\.cost/)
  })

  it('refuses more intents than memory holds', () => {
    expect(() => stormSettings({ policy, load: 100_000, seconds: 51 })).toThrowError(/5000000 intents/)
    expect(stormSettings({ policy, load: 100_000, seconds: 50 }).load).toBe(100_000)
  })
})

describe('the trigger', () => {
  it('takes capacity from its begin up to its end', () => {
    const settings = stormSettings({ policy, triggerAtSeconds: 2, triggerSeconds: 3, triggerCapacity: 0.25 })
    expect(triggerEndSeconds(settings)).toBe(5)
    expect([1999, 2000, 4999, 5000].map((nowMs) => capacityShareAt(settings, nowMs))).toEqual([1, 0.25, 0.25, 1])
  })
})

describe('hiddenCapacity', () => {
  it.each([
    ['one attempt', { attempts: 1, budget: false as const }, 1000],
    ['four attempts without a budget', { attempts: 4, budget: false as const }, 250],
    ['a token budget', { attempts: 4, budget: tokenBudget() }, 1000],
    ['a ratio of 10 %', { attempts: 4, budget: ratioBudget({ refillPerSecond: 0 }) }, 1000 / 1.1],
    ['a floor', { attempts: 4, budget: ratioBudget({ ratio: 0.2, refillPerSecond: 0, floorPerSecond: 10 }) }, 750],
  ])('%s', (_name, options, expected) => {
    expect(hiddenCapacity(stormSettings({ policy: retryPolicy(options).toJSON() }))).toBeCloseTo(expected, 9)
  })

  it('is whole with the quota of a peer, which is empty then', () => {
    expect(hiddenCapacity(stormSettings({ policy, peerBudget: { kind: 'quota' } }))).toBe(1000)
  })

  it('is whole where nothing is repeated after a time-out', () => {
    expect(hiddenCapacity(stormSettings({ policy, guarded: false }))).toBe(1000)
  })
})
