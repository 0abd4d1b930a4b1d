import { describe, expect, it } from 'vitest'
import type { Backoff } from '../retry/index.js'
import { type PublishedBackoff, publishedBackoffs, simulateContention } from './contention.js'

const kinds = publishedBackoffs()

// Calls and times of the published simulator for 100 clients, means of 100 trials.
const published: Record<PublishedBackoff, readonly [calls: number, timeMs: number]> = {
  none: [2420, 2030],
  exponential: [1855, 63_500],
  equal: [812, 6600],
  full: [796, 4900],
  decorrelated: [1001, 4600],
}

// The published form, which waits exactly the cap two times out of three once it is there.
const publishedDecorrelated: Backoff = {
  data: kinds.decorrelated.data,
  delayMs: (_failures, previousMs, random) => Math.min(2000, 5 + random.next() * (3 * Math.max(5, previousMs) - 5)),
}

const off = (measured: number, expected: number): number => Math.abs(measured / expected - 1)

describe('100 clients, 100 trials', () => {
  it.each(Object.entries(published))(
    '%s: calls within two percent of what was published, time within eight',
    (name, expected) => {
      for (const seed of [1, 2, 3]) {
        const { calls, timeMs } = simulateContention({ backoff: kinds[name as PublishedBackoff], seed })
        expect(off(calls, expected[0]), `calls ${calls}`).toBeLessThan(0.02)
        expect(off(timeMs, expected[1]), `time ${timeMs}`).toBeLessThan(0.08)
      }
    },
  )

  it('decorrelated: the published form is in the same band, and ours, which keeps its jitter at the cap, close by', () => {
    for (const seed of [1, 2, 3]) {
      const theirs = simulateContention({ backoff: publishedDecorrelated, seed })
      const ours = simulateContention({ backoff: kinds.decorrelated, seed })
      expect(off(theirs.calls, 1001)).toBeLessThan(0.02)
      expect(off(theirs.timeMs, 4600)).toBeLessThan(0.08)
      expect(off(ours.timeMs, theirs.timeMs)).toBeLessThan(0.08)
    }
  })
})

describe('orderings', () => {
  const run = (backoff: Backoff, clients: number) => simulateContention({ backoff, clients })

  it('of 100 clients', () => {
    const none = run(kinds.none, 100)
    const exponential = run(kinds.exponential, 100)
    const equal = run(kinds.equal, 100)
    const full = run(kinds.full, 100)
    const decorrelated = run(kinds.decorrelated, 100)
    expect(full.calls).toBeLessThan(equal.calls)
    expect(equal.calls).toBeLessThan(decorrelated.calls)
    expect(decorrelated.calls).toBeLessThan(exponential.calls)
    expect(exponential.calls).toBeLessThan(none.calls)
    expect(full.calls / exponential.calls).toBeLessThan(0.5)
    expect(off(none.calls, 100 ** 2 / 4)).toBeLessThan(0.05)
    expect(none.timeMs).toBeLessThan(decorrelated.timeMs)
    expect(decorrelated.timeMs).toBeLessThan(full.timeMs)
    expect(full.timeMs).toBeLessThan(equal.timeMs)
    expect(exponential.timeMs / full.timeMs).toBeGreaterThan(10)
  })

  it('of 190 clients: equal needs no more calls than full, and full is faster than published decorrelated jitter', () => {
    const full = run(kinds.full, 190)
    const equal = run(kinds.equal, 190)
    expect(off(equal.calls, full.calls)).toBeLessThan(0.015)
    expect(full.timeMs).toBeLessThan(run(publishedDecorrelated, 190).timeMs)
    expect(full.calls).toBeLessThan(run(kinds.decorrelated, 190).calls)
  })
})

describe('simulateContention', () => {
  it('repeats itself by its seed', () => {
    const options = { backoff: kinds.full, clients: 30, trials: 5 }
    expect(simulateContention({ ...options, seed: 7 })).toEqual(simulateContention({ ...options, seed: 7 }))
    expect(simulateContention({ ...options, seed: 7 })).not.toEqual(simulateContention({ ...options, seed: 8 }))
  })

  it('lets a lone client through at the first call, in four hops', () => {
    expect(simulateContention({ backoff: kinds.full, clients: 1, hopDeviationMs: 0 })).toEqual({
      clients: 1,
      calls: 1,
      timeMs: 40,
    })
  })

  it.each([
    [{ clients: 0 }, 'clients'],
    [{ clients: 2.5 }, 'clients'],
    [{ trials: 10_001 }, 'trials'],
    [{ hopMs: Number.NaN }, 'hopMs'],
  ])('refuses %o', (wrong, name) => {
    expect(() => simulateContention({ backoff: kinds.full, ...wrong })).toThrowError(
      expect.objectContaining({ code: 'ARGUMENT_INVALID', message: expect.stringContaining(name) }),
    )
  })
})

it.each([undefined, {}, { backoff: {} }, { backoff: null }])('refuses %j, which has no backoff', (options) => {
  expect(() => simulateContention(options as never)).toThrowError(
    expect.objectContaining({ code: 'ARGUMENT_INVALID', message: 'backoff is a Backoff, such as fullJitter().' }),
  )
})
