import { describe, expect, it } from 'vitest'
import {
  type Budget,
  consecutiveBreaker,
  constantDelay,
  fullJitter,
  type PolicyData,
  type RetryPolicyOptions,
  ratioBudget,
  retryPolicy,
  tokenBudget,
} from '../retry/index.js'
import { simulateStorm } from './storm.js'
import type { StormOptions } from './storm-settings.js'

const spread = fullJitter({ baseMs: 100, capMs: 5000 })
const policy = (options: RetryPolicyOptions = {}): PolicyData =>
  retryPolicy({ attempts: 4, backoff: spread, budget: false, ...options }).toJSON()
const once = policy({ attempts: 1 })
const atOnce = policy({ backoff: constantDelay(0) })
const budgeted = (budget: Budget, options?: RetryPolicyOptions): PolicyData => policy({ budget, ...options })

// 500 tokens and 14 for a repeat: the default.
const quota = { kind: 'quota' } as const

const seeds = [1, 2, 3]

type Expected = readonly [recoveredAfterSeconds: number | 'never', triggerAmplification: number, lost: number]

// What a reference implementation of the model gave, with budgets of its own making.
const cases: Record<string, readonly [StormOptions, Expected]> = {
  'A one attempt': [{ policy: once }, [11, 1, 0.15]],
  'B four attempts at once': [{ policy: atOnce }, ['never', 3.59, 0.99]],
  'C four attempts with full jitter': [{ policy: policy() }, ['never', 3.55, 0.99]],
  'D C with the budget of gRPC': [{ policy: budgeted(tokenBudget()) }, [12, 1, 0.16]],
  'E C with a ratio of 10 %': [{ policy: budgeted(ratioBudget()) }, [20, 1.12, 0.22]],
  'G C with the quota of the AWS SDK': [{ policy: policy(), peerBudget: quota }, [13, 1.02, 0.16]],
  'L B with a bounded queue': [{ policy: atOnce, queueLimit: 500, refusal: 'unsent' }, [1, 2.35, 0.07]],
  'M D with 1000 clients': [{ policy: budgeted(tokenBudget()), clients: 1000 }, [24, 1.28, 0.25]],
  'N G with 1000 clients': [{ policy: policy(), peerBudget: quota, clients: 1000 }, ['never', 3.24, 0.99]],
  'O C at a load of 200': [{ policy: policy(), load: 200, triggerCapacity: 0.1 }, [23, 3.55, 0.23]],
  'P C at a load of 280': [{ policy: policy(), load: 280, triggerCapacity: 0.1 }, ['never', 3.62, 1]],
}

describe.each(Object.entries(cases))('%s', (_name, [options, [recovery, amplification, lost]]) => {
  it.each(seeds)('seed %d', (seed) => {
    const { findings } = simulateStorm({ ...options, seed })
    expect(Math.abs(findings.triggerAmplification / amplification - 1)).toBeLessThan(0.04)
    expect(Math.abs(findings.lost - lost)).toBeLessThan(0.025)
    if (recovery === 'never') {
      expect(findings).toMatchObject({ recoveredAfterSeconds: undefined, outcome: 'metastable' })
      expect(findings.finalGoodput).toBeLessThan(0.01)
    } else {
      expect(Math.abs((findings.recoveredAfterSeconds ?? 999) - recovery)).toBeLessThanOrEqual(3)
      expect(findings.finalGoodput).toBeGreaterThan(0.98)
      expect(findings.metastableAtSecond).toBeUndefined()
    }
  })
})

describe('six attempts', () => {
  it.each(seeds)('without a budget the storm outlives its trigger, with one it does not begin (seed %d)', (seed) => {
    const { findings: bare } = simulateStorm({ policy: policy({ attempts: 6 }), seed })
    expect(bare).toMatchObject({ storm: true, outcome: 'metastable', recoveredAfterSeconds: undefined })
    expect(bare.finalAmplification).toBeGreaterThan(4)
    expect(bare.finalGoodput).toBeLessThan(0.01)

    const { findings: alone } = simulateStorm({ policy: once, seed })
    const { findings: limited } = simulateStorm({ policy: budgeted(tokenBudget(), { attempts: 6 }), seed })
    expect(limited.outcome).toBe('recovered')
    expect(limited.peakAmplification).toBeLessThanOrEqual(1.1)
    expect(limited.finalAmplification).toBeLessThanOrEqual(1.1)
    expect((limited.recoveredAfterSeconds ?? 99) - (alone.recoveredAfterSeconds ?? 0)).toBeLessThanOrEqual(2)
  })
})

describe('boundaries', () => {
  it.each(seeds)('four attempts heal at loads up to 225 and not from 240 (theory 250; seed %d)', (seed) => {
    const recovery = (load: number) =>
      simulateStorm({ policy: policy(), load, triggerCapacity: 0.1, seed }).findings.recoveredAfterSeconds
    expect(recovery(210)).toBeLessThan(40)
    expect(recovery(225)).toBeLessThan(70)
    expect(recovery(240)).toBeUndefined()
    expect(recovery(255)).toBeUndefined()
  })

  const withRatio = (ratio: number, load: number, seed: number, seconds = 400) =>
    simulateStorm({ policy: budgeted(ratioBudget({ ratio })), load, seed, seconds }).findings

  it.each(seeds)(
    'a ratio of a tenth heals within 370 s at loads up to 890 and not at 900 (theory 909; seed %d)',
    (seed) => {
      expect(withRatio(0.1, 850, seed).recoveredAfterSeconds).toBeLessThan(110)
      expect(withRatio(0.1, 890, seed).recoveredAfterSeconds).toBeLessThan(340)
      expect(withRatio(0.1, 900, seed).recoveredAfterSeconds).toBeUndefined()
    },
  )

  // The budget of the reference let a load of 1.12 through with its 10 %. Ours takes 12 % for that, and has the same
  // boundary then: 850 and 880.
  it.each(seeds)('a load of 1.12 heals at 850 and not within 330 s at 880 (theory 893; seed %d)', (seed) => {
    const healing = withRatio(0.12, 850, seed)
    expect(healing.triggerAmplification).toBeCloseTo(1.12, 2)
    expect(healing.recoveredAfterSeconds).toBeLessThan(160)
    expect(withRatio(0.12, 880, seed, 360).recoveredAfterSeconds).toBeUndefined()
  })

  it('a quota that a fleet has spent leaves a backlog: 35 repeats of 1000 clients, at 300 a second', () => {
    const { findings } = simulateStorm({ policy: policy(), peerBudget: quota, clients: 1000, seconds: 300 })
    expect(findings.recoveredAfterSeconds).toBeGreaterThan(35_000 / 300)
    expect(findings.recoveredAfterSeconds).toBeLessThan(150)
    expect(findings.finalAmplification).toBe(1)
  })

  it.each(seeds)('a trigger of one second passes, one of two seconds stays (seed %d)', (seed) => {
    const outcome = (triggerSeconds: number) =>
      simulateStorm({ policy: policy(), triggerSeconds, seed }).findings.outcome
    expect(outcome(1)).toBe('recovered')
    expect(outcome(2)).toBe('metastable')
  })
})

describe('effects', () => {
  const short = { seconds: 60, load: 700 }

  it('are double-billed by repeats where the service does not recognise them', () => {
    const naive = simulateStorm({ ...short, policy: policy(), idempotent: false }).totals
    expect(naive.doubleBilled).toBeGreaterThan(10_000)
    expect(naive.doubleBilled).toBe(naive.repeatedCompletions)
    expect(simulateStorm({ ...short, policy: policy(), idempotent: true }).totals).toEqual({
      ...naive,
      doubleBilled: 0,
    })
  })

  it('are never double-billed without a guard: a time-out is not repeated', () => {
    const { totals } = simulateStorm({ ...short, policy: policy(), idempotent: false, guarded: false })
    expect(totals.doubleBilled).toBe(0)
    expect(totals.attempts).toBe(totals.offered)
    expect(totals.stops.unguarded).toBeGreaterThan(1000)
  })

  it('never happen at a refused request, which even an unguarded client repeats', () => {
    const full = { ...short, policy: policy(), guarded: false, queueLimit: 100, refusal: 'unsent' as const }
    const { totals } = simulateStorm(full)
    expect(totals.attempts).toBeGreaterThan(totals.offered)
    expect(totals.repeatedCompletions).toBe(0)
  })

  it('of an overloaded service are not asked for again without a budget', () => {
    const full = { ...short, queueLimit: 100 }
    const { totals } = simulateStorm({ ...full, policy: policy() })
    expect(totals.stops['budget-required']).toBeGreaterThan(1000)
    expect(simulateStorm({ ...full, policy: budgeted(tokenBudget()) }).totals.stops['budget-required']).toBeUndefined()
  })
})

describe('the rest of the policy', () => {
  it.each(seeds)('a floor for each client multiplies with the fleet: more than a minute longer (seed %d)', (seed) => {
    const floor = budgeted(ratioBudget({ ratio: 0.2, floorPerSecond: 10 }))
    const { findings } = simulateStorm({ policy: floor, seed })
    expect(Math.abs(findings.triggerAmplification / 1.35 - 1)).toBeLessThan(0.04)
    expect(findings.recoveredAfterSeconds).toBeGreaterThan(72)
    expect(findings.recoveredAfterSeconds).toBeLessThan(120)
  })

  it('a breaker keeps requests away, so that the service heals sooner than without repeats', () => {
    const { findings, totals } = simulateStorm({ policy: policy({ breaker: consecutiveBreaker() }) })
    expect(findings.outcome).toBe('recovered')
    expect(findings.recoveredAfterSeconds).toBeLessThan(8)
    expect(findings.triggerAmplification).toBeLessThan(0.8)
    expect(totals.stops.breaker).toBeGreaterThan(1000)
  })

  it('a deadline ends calls, and cuts the last attempt short', () => {
    const { totals } = simulateStorm({ seconds: 60, policy: policy({ deadline: '1500ms' }) })
    expect(totals.stops.deadline).toBeGreaterThan(1000)
    expect(totals.stops.attempts ?? 0).toBeLessThan(totals.stops.deadline ?? 0)
  })
})

describe('a run', () => {
  it('repeats itself by its seed', () => {
    const options = { policy: policy(), seconds: 40 }
    expect(simulateStorm({ ...options, seed: 5 })).toEqual(simulateStorm({ ...options, seed: 5 }))
    expect(simulateStorm({ ...options, seed: 5 }).series).not.toEqual(simulateStorm({ ...options, seed: 6 }).series)
  })

  it('meets the same arrivals under another policy', () => {
    const offered = (data: PolicyData) =>
      simulateStorm({ policy: data, seconds: 40 }).series.map((second) => second.offered)
    expect(offered(policy())).toEqual(offered(once))
  })

  it('loses no intent: each succeeds, is given up, or is still out there', () => {
    const { totals, settings } = simulateStorm({ policy: policy(), triggerSeconds: 1, load: 300 })
    const stopped = Object.values(totals.stops).reduce((sum, count) => sum + count, 0)
    expect(totals.offered).toBeGreaterThan(settings.load * settings.seconds * 0.98)
    expect(totals.offered - totals.succeeded - stopped).toBeLessThan(30)
    expect(totals.completions - totals.repeatedCompletions).toBeGreaterThanOrEqual(totals.succeeded)
  })

  it('shows the level of the budgets', () => {
    const tokens = simulateStorm({ policy: budgeted(tokenBudget()), seconds: 60 }).series.map((second) => second.tokens)
    expect(tokens[0]).toBe(10)
    expect(tokens[25]).toBeLessThan(1)
    expect(tokens[59]).toBe(10)
    expect(simulateStorm({ policy: policy(), seconds: 2 }).series[0]?.tokens).toBeUndefined()
  })
})
