import { describe, expect, it } from 'vitest'
import { seededRandom } from '../kernel/index.js'
import {
  concurrency,
  consecutiveBreaker,
  constantDelay,
  type RetryPolicyOptions,
  retryPolicy,
  tokenBudget,
  transient,
} from '../retry/index.js'
import { StormFleet } from './storm-fleet.js'
import { stormSettings } from './storm-settings.js'

const fleet = (options: RetryPolicyOptions, clients = 2) =>
  new StormFleet(
    stormSettings({ policy: retryPolicy({ backoff: constantDelay(5), ...options }).toJSON(), clients }),
    seededRandom(1),
  )

const facts = (failures: number) => ({
  failures,
  verdict: transient('timeout', 'maybe'),
  guarded: true,
  anyMaybe: true,
  previousDelayMs: 0,
  remainingMs: Number.POSITIVE_INFINITY,
  nowMs: 0,
})

describe('StormFleet', () => {
  it('decides as a policy does', () => {
    const clients = fleet({ attempts: 2, budget: false })
    expect(clients.failed(0, 1, facts(1))).toEqual({ again: true, delayMs: 5 })
    expect(clients.failed(0, 1, facts(2))).toEqual({ again: false, reason: 'attempts' })
  })

  it('gives each client a budget of its own', () => {
    const clients = fleet({ attempts: 3, budget: tokenBudget() })
    expect(clients.meanLevel(0)).toBe(10)
    for (let failure = 1; failure < 5; failure += 1) expect(clients.failed(0, 1, facts(1)).again).toBe(true)
    expect(clients.failed(0, 1, facts(1))).toEqual({ again: false, reason: 'budget' })
    expect(clients.failed(1, 1, facts(1)).again).toBe(true)
    expect(clients.meanLevel(0)).toBe((5 + 9) / 2)
    clients.succeeded(0, 1, 0, false)
    expect(clients.failed(1, 1, facts(1)).again).toBe(true)
    expect(clients.meanLevel(0)).toBeCloseTo((5.1 + 8) / 2, 9)
  })

  it('has no level without budgets', () => {
    expect(fleet({ budget: false }).meanLevel(0)).toBeUndefined()
  })

  it('gives each client slots of its own, if there is a limit', () => {
    expect(fleet({}).slots(0)).toBeUndefined()
    const clients = fleet({ limit: concurrency({ most: 1 }) })
    expect([clients.slots(0)?.tryEnter(), clients.slots(0)?.tryEnter()]).toEqual([true, false])
    expect(clients.slots(1)?.tryEnter()).toBe(true)
  })

  it('says whether a breaker is open, so that nobody waits for nothing', () => {
    const clients = fleet({ budget: false, breaker: consecutiveBreaker({ failures: 1, openFor: '1s' }) })
    expect([fleet({}).isOpen(0, 0), clients.isOpen(0, 0)]).toEqual([false, false])
    clients.failed(0, clients.enter(0, 0), facts(1))
    expect([clients.isOpen(0, 10), clients.isOpen(0, 1000)]).toEqual([true, false])
  })

  it('gives each client a breaker of its own', () => {
    const clients = fleet({ budget: false, breaker: consecutiveBreaker({ failures: 1, openFor: '1s' }) })
    const pass = clients.enter(0, 0)
    expect(pass).toBeGreaterThan(0)
    clients.failed(0, pass, facts(1))
    expect(clients.enter(0, 10)).toBe(0)
    expect(clients.enter(1, 10)).toBeGreaterThan(0)
    const probe = clients.enter(0, 1000)
    expect(probe).toBeGreaterThan(0)
    clients.succeeded(0, probe, 1001, false)
    expect(clients.enter(0, 1002)).toBeGreaterThan(0)
  })
})
