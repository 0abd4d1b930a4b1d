import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../test/property.js'
import { maxDurationMs, type Random, seededRandom } from '../kernel/index.js'
import {
  type Backoff,
  type BackoffData,
  backoffFrom,
  constantDelay,
  decorrelatedJitter,
  equalJitter,
  fullJitter,
  grpcBackoff,
  noJitter,
} from './backoff.js'

const always = (value: number): Random => ({ next: () => value, fill: () => {} })
const almostOne = 1 - 2 ** -53

const limits = fc
  .tuple(
    fc.double({ min: 1e-9, max: maxDurationMs, noNaN: true }),
    fc.double({ min: 1e-9, max: maxDurationMs, noNaN: true }),
  )
  .map(([a, b]) => ({ baseMs: Math.min(a, b), capMs: Math.max(a, b) }))
const failures = fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 1_000_000 }))
const chance = fc.oneof(fc.constantFrom(0, almostOne), fc.double({ min: 0, max: almostOne, noNaN: true }))
const previous = fc.double({ min: 0, max: 2 * maxDurationMs, noNaN: true })

describe('bounds, for up to a million failures', () => {
  property(
    'none, full and equal keep to their share of the ceiling',
    [limits, failures, chance],
    (options, count, next) => {
      const { baseMs, capMs } = options
      // The ceiling by repeated doubling rather than by a power.
      let ceiling = baseMs
      for (let index = 1; index < count && ceiling < capMs; index += 1) ceiling *= 2
      ceiling = Math.min(ceiling, capMs)
      const random = always(next)
      const delay = (backoff: Backoff): number => backoff.delayMs(count, 0, random)
      expect(delay(noJitter(options))).toBe(ceiling)
      expect(delay(fullJitter(options))).toBe(ceiling * next)
      expect(delay(equalJitter(options))).toBeGreaterThanOrEqual(ceiling / 2)
      expect(delay(equalJitter(options))).toBeLessThanOrEqual(ceiling)
    },
  )

  property(
    'decorrelated lies between base and the lesser of cap and three times the last wait',
    [limits, failures, previous, chance],
    (options, count, last, next) => {
      const delay = decorrelatedJitter(options).delayMs(count, last, always(next))
      expect(delay).toBeGreaterThanOrEqual(options.baseMs)
      expect(delay).toBeLessThanOrEqual(Math.min(options.capMs, 3 * Math.max(options.baseMs, last)) * (1 + 1e-12))
    },
  )

  const multiplier = fc.double({ min: 1e-6, max: 1e6, noNaN: true })
  property(
    'grpc stays within a fifth of its delay and is never NaN',
    [limits, multiplier, failures, chance],
    ({ baseMs, capMs }, factor, count, next) => {
      const delay = grpcBackoff({ initialMs: baseMs, maxMs: capMs, multiplier: factor }).delayMs(count, 0, always(next))
      const expected = Math.min(capMs, baseMs * factor ** (count - 1))
      expect(delay).toBeGreaterThanOrEqual(expected * 0.8)
      expect(delay).toBeLessThanOrEqual(expected * 1.2 * (1 + 1e-12))
    },
  )

  property(
    'constant is constant',
    [fc.double({ min: 0, max: maxDurationMs, noNaN: true }), failures, chance],
    (ms, count, next) => {
      expect(constantDelay(ms).delayMs(count, 7, always(next))).toBe(ms)
    },
    { cases: 1000 },
  )

  it('cockatiel #86, Polly #2163: no NaN however many failures there were', () => {
    for (const make of [noJitter, fullJitter, equalJitter, decorrelatedJitter]) {
      for (const count of [1023, 1024, 1025, 1e6, Number.MAX_SAFE_INTEGER]) {
        expect(make().delayMs(count, 2000, always(0.5))).toBeGreaterThan(0)
        expect(make().delayMs(count, 2000, always(0.5))).toBeLessThanOrEqual(2000)
      }
    }
    expect(constantDelay(0).delayMs(1e6, 0, always(0.5))).toBe(0)
  })

  it('cockatiel noJitterGenerator: the multiplier given is the multiplier used', () => {
    const delays = (data: BackoffData): number[] => [1, 2, 3, 4].map((n) => backoffFrom(data).delayMs(n, 0, always(0)))
    expect(delays({ kind: 'none', baseMs: 100, capMs: 1e6 })).toEqual([100, 200, 400, 800])
    expect(delays({ kind: 'none', baseMs: 100, capMs: 1e6, multiplier: 3 })).toEqual([100, 300, 900, 2700])
  })

  it('a wait never starts above base for decorrelated, whatever came before the first failure', () => {
    expect(decorrelatedJitter({ baseMs: 5, capMs: 2000 }).delayMs(1, 0, always(almostOne))).toBeCloseTo(15, 9)
    expect(decorrelatedJitter({ baseMs: 5, capMs: 2000 }).delayMs(1, 0, always(0))).toBe(5)
  })
})

describe('distribution', () => {
  const draws = 40_000

  function sample(backoff: Backoff, count: number): number[] {
    const random = seededRandom(`jitter ${backoff.data.kind} ${count}`)
    let last = 0
    return Array.from({ length: draws }, () => {
      last = backoff.delayMs(count, last, random)
      return last
    })
  }

  function expectUniform(delays: readonly number[], from: number, to: number): void {
    // The mean of n uniform draws deviates by span / sqrt(12 n); five times that is far beyond chance. A quantile q
    // deviates by span · sqrt(q (1 − q) / n).
    const span = to - from
    const mean = delays.reduce((sum, delay) => sum + delay, 0) / delays.length
    expect(Math.abs(mean - (from + to) / 2)).toBeLessThan((5 * span) / Math.sqrt(12 * delays.length))
    const sorted = [...delays].sort((a, b) => a - b)
    for (const quantile of [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99]) {
      const tolerance = 5 * span * Math.sqrt((quantile * (1 - quantile)) / delays.length)
      const found = sorted[Math.floor(quantile * delays.length)] ?? Number.NaN
      expect(Math.abs(found - (from + quantile * span))).toBeLessThan(tolerance)
    }
  }

  // Failures 3: below the cap. 12 and 1,000,000: at the cap.
  const cases: readonly [string, Backoff, number, number, number][] = [
    ['full below the cap', fullJitter({ baseMs: 50, capMs: 2000 }), 3, 0, 200],
    ['full at the cap', fullJitter({ baseMs: 50, capMs: 2000 }), 12, 0, 2000],
    ['full far beyond the cap', fullJitter({ baseMs: 50, capMs: 2000 }), 1_000_000, 0, 2000],
    ['equal below the cap', equalJitter({ baseMs: 50, capMs: 2000 }), 3, 100, 200],
    ['equal at the cap', equalJitter({ baseMs: 50, capMs: 2000 }), 12, 1000, 2000],
    ['grpc below the cap', grpcBackoff({ initialMs: 50, maxMs: 2000, multiplier: 2 }), 3, 160, 240],
    ['grpc at the cap', grpcBackoff({ initialMs: 50, maxMs: 2000, multiplier: 2 }), 12, 1600, 2400],
  ]
  for (const [title, backoff, count, from, to] of cases) {
    it(`${title} is uniform from ${from} to ${to}`, () => {
      expectUniform(sample(backoff, count), from, to)
    })
  }

  it('decorrelated is uniform up to the cap, and what would be past it is uniform in the upper half', () => {
    const random = seededRandom('decorrelated at the cap')
    const backoff = decorrelatedJitter({ baseMs: 50, capMs: 2000 })
    const waits = Array.from({ length: draws }, () => backoff.delayMs(12, 2000, random))
    expectUniform(
      waits.filter((wait) => wait < 1000),
      50,
      1000,
    )
    expectUniform(
      waits.filter((wait) => wait >= 1000),
      1000,
      2000,
    )
    // U(50, 6000) lies below 1000 in 16 % of all cases; all others end up in the upper half.
    expect(waits.filter((wait) => wait < 1000).length / draws).toBeCloseTo(950 / 5950, 2)
  })

  it('p-retry, cockatiel, ky: jitter survives the cap, so next to no wait is exactly the cap', () => {
    const jittered = [
      fullJitter(),
      equalJitter(),
      decorrelatedJitter(),
      grpcBackoff({ initialMs: 50, maxMs: 2000, multiplier: 2 }),
    ]
    for (const backoff of jittered) {
      const delays = sample(backoff, 12)
      expect(delays.filter((delay) => delay === 2000).length / draws).toBeLessThan(0.0001)
      expect(new Set(delays).size).toBeGreaterThan(draws * 0.999)
    }
  })
})

describe('options', () => {
  it('have defaults', () => {
    expect(fullJitter().data).toEqual({ kind: 'full', baseMs: 50, capMs: 2000 })
    expect(constantDelay(7).data).toEqual({ kind: 'constant', baseMs: 7, capMs: 7 })
    expect(grpcBackoff({ initialMs: 1, maxMs: 2, multiplier: 3 }).data).toEqual({
      kind: 'grpc',
      baseMs: 1,
      capMs: 2,
      multiplier: 3,
    })
  })

  it('are read back from data', () => {
    for (const backoff of [noJitter(), fullJitter(), equalJitter(), decorrelatedJitter(), constantDelay(0)]) {
      expect(backoffFrom(JSON.parse(JSON.stringify(backoff.data))).data).toEqual(backoff.data)
      expect(Object.isFrozen(backoff.data)).toBe(true)
    }
  })

  const wrong: readonly [string, () => unknown][] = [
    ['backoff.baseMs', () => fullJitter({ baseMs: 0 })],
    ['backoff.baseMs', () => noJitter({ baseMs: -1 })],
    ['backoff.baseMs', () => equalJitter({ baseMs: Number.NaN })],
    ['backoff.baseMs', () => equalJitter({ baseMs: '50' as never })],
    ['backoff.baseMs', () => constantDelay(-1)],
    ['backoff.baseMs', () => constantDelay(Number.POSITIVE_INFINITY)],
    ['backoff.capMs', () => fullJitter({ baseMs: 50, capMs: 49 })],
    ['backoff.capMs', () => decorrelatedJitter({ capMs: Number.POSITIVE_INFINITY })],
    ['backoff.capMs', () => grpcBackoff({ initialMs: 1, maxMs: 0, multiplier: 2 })],
    ['backoff.multiplier', () => grpcBackoff({ initialMs: 1, maxMs: 2, multiplier: 0 })],
    ['backoff.multiplier', () => grpcBackoff({ initialMs: 1, maxMs: 2, multiplier: Number.POSITIVE_INFINITY })],
    ['backoff', () => backoffFrom(null as never)],
    ['backoff.kind', () => backoffFrom({} as never)],
    ['backoff.kind', () => backoffFrom({ kind: 'toString' as never, baseMs: 1, capMs: 2 })],
  ]
  for (const [index, [path, make]] of wrong.entries()) {
    it(`are refused when built: ${path} (${index})`, () => {
      expect(make).toThrow(expect.objectContaining({ code: 'POLICY_INVALID', details: { path } }))
    })
  }

  it('let gRPC have a maximum below the initial delay, as A6 does', () => {
    expect(grpcBackoff({ initialMs: 10, maxMs: 5, multiplier: 2 }).delayMs(1, 0, always(0.5))).toBeCloseTo(5, 12)
  })
})

describe('decorrelated jitter in its published form', () => {
  it('waits exactly the cap where a draw lies past it, and draws once', () => {
    const published = decorrelatedJitter({ baseMs: 10, capMs: 100, pastCap: 'cap' })
    const ours = decorrelatedJitter({ baseMs: 10, capMs: 100 })
    const draws = (value: number) => ({ ...seededRandom(1), next: () => value })
    expect(published.delayMs(5, 100, draws(0.5))).toBe(100)
    expect(ours.delayMs(5, 100, draws(0.5))).toBe(75)
    expect(published.delayMs(2, 10, draws(0.5))).toBe(ours.delayMs(2, 10, draws(0.5)))
    expect(backoffFrom(published.data).data).toEqual({ kind: 'decorrelated', baseMs: 10, capMs: 100, pastCap: 'cap' })
    const refused = expect.objectContaining({ code: 'POLICY_INVALID', details: { path: 'backoff.pastCap' } })
    expect(() => decorrelatedJitter({ pastCap: 'half' as never })).toThrow(refused)
    expect(() => backoffFrom({ kind: 'full', baseMs: 1, capMs: 2, pastCap: 'cap' })).toThrow(refused)
  })
})
