// A concurrency limit in the storm: its scene with and without, and slots that are neither lost nor made.

import { describe, expect, it } from 'vitest'
import { concurrency, consecutiveBreaker, type RetryPolicyOptions, retryPolicy } from '../retry/index.js'
import { Storm, simulateStorm } from './storm.js'
import { hiddenCapacity, type StormOptions, stormSettings } from './storm-settings.js'

const scene = (policy: RetryPolicyOptions, options: Partial<StormOptions> = {}): StormOptions => ({
  policy: retryPolicy({ attempts: 3, budget: false, ...policy }).toJSON(),
  seconds: 60,
  ...options,
})

/** Intents per second that were answered in time while the service was slow. */
function answeredInTrigger(options: StormOptions): number {
  const { series } = simulateStorm(options)
  return series.slice(20, 30).reduce((sum, { goodput }) => sum + goodput, 0) / 10
}

describe('a limit for each client', () => {
  it.each([1, 2, 3])('keeps the brown-out from becoming a storm, without any budget (seed %d)', (seed) => {
    const without = simulateStorm(scene({}, { seed }))
    const limited = simulateStorm(scene({ limit: concurrency({ most: 20 }) }, { seed }))
    expect(without.findings).toMatchObject({ outcome: 'metastable', recoveredAfterSeconds: undefined })
    expect(limited.findings).toMatchObject({ outcome: 'recovered', recoveredAfterSeconds: 0, storm: false })
    // What is out is answered in time, so that nothing times out and nothing is repeated.
    expect(Object.keys(limited.totals.stops)).toEqual(['limit'])
    expect(limited.totals.attempts).toBeLessThanOrEqual(limited.totals.offered)
    expect(limited.totals.repeatedCompletions).toBe(0)
    // Ten clients with twenty slots each, of which ten requests are in the workers.
    expect(Math.max(...limited.series.map(({ queue }) => queue))).toBeLessThanOrEqual(190)
  })

  it('lets the slow service answer as much as it can: 300 a second are left of its 1,000', () => {
    expect(answeredInTrigger(scene({}))).toBeLessThan(100)
    expect(answeredInTrigger(scene({ limit: concurrency({ most: 20 }) }))).toBeGreaterThan(280)
  })

  it('that lets more out than is answered within a time-out does not help', () => {
    expect(simulateStorm(scene({ limit: concurrency({ most: 200 }) })).findings.outcome).toBe('metastable')
    const healing = (most: number) => hiddenCapacity(stormSettings(scene({ limit: concurrency({ most }) })))
    expect([healing(20), healing(99), healing(101)]).toEqual([1000, 1000, 1000 / 3])
  })
})

describe('the queue of a limit', () => {
  it('is first come, first served, and is left at the deadline', () => {
    const waits = concurrency({ most: 1, queue: 3 })
    const { totals } = simulateStorm(
      scene({ limit: waits, deadline: 40, attempts: 1 }, { load: 300, clients: 1, triggerSeconds: 0 }),
    )
    const { succeeded, stops, offered } = totals
    expect(stops.limit).toBeGreaterThan(offered / 2)
    expect(succeeded).toBeGreaterThan(5_000)
    const refused = simulateStorm(
      scene(
        { limit: concurrency({ most: 1 }), deadline: 40, attempts: 1 },
        { load: 300, clients: 1, triggerSeconds: 0 },
      ),
    )
    expect(succeeded).toBeGreaterThan(refused.totals.succeeded)
  })

  it.each([
    ['a deadline', { deadline: '300ms' }],
    ['a breaker', { breaker: consecutiveBreaker({ failures: 5, openFor: '2s' }) }],
    ['repeats', { attempts: 4 }],
  ] as const)('with %s every intent comes to an end, and every slot is free at the end', (_name, policy) => {
    const options = scene(
      { limit: concurrency({ most: 3, queue: 5 }), ...policy },
      { load: 600, triggerCapacity: 0.05 },
    )
    const storm = new Storm({ ...options, seconds: 120 })
    while (storm.next() !== undefined);
    const { totals, series } = storm.report()
    const given = Object.values(totals.stops).reduce((sum, count) => sum + count, 0)
    // What arrived in the last moments is still under way: in slots, queues and backoffs.
    const underWay = totals.offered - totals.succeeded - given
    expect(underWay).toBeGreaterThanOrEqual(0)
    expect(underWay).toBeLessThan(10 * (3 + 5) + 200)
    // A slot that was lost would never come back: the last seconds are as good as the first ones.
    const share = (from: number) => {
      const part = series.slice(from, from + 10)
      return part.reduce((sum, { goodput }) => sum + goodput, 0) / part.reduce((sum, { offered }) => sum + offered, 0)
    }
    expect(share(110)).toBeGreaterThan(0.98 * share(5))
  })
})
