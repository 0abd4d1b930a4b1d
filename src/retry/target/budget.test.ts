import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../../test/property.js'
import { type Budget, budgetFrom, type RatioBudgetOptions, ratioBudget, tokenBudget } from './budget.js'

function times(count: number, act: () => void): void {
  for (let index = 0; index < count; index += 1) act()
}

describe('tokenBudget: the examples of gRPC A6', () => {
  it('starts full and allows repeats', () => {
    const budget = tokenBudget({ maxTokens: 10, tokenRatio: 0.1 })
    expect([budget.level(0), budget.tryRepeat(0)]).toEqual([10, true])
  })

  it('10 and 0.1: five failures in a row from full block, one success after them opens', () => {
    const budget = tokenBudget({ maxTokens: 10, tokenRatio: 0.1 })
    times(4, () => budget.failed(0))
    expect([budget.level(0), budget.tryRepeat(0)]).toEqual([6, true])
    budget.failed(0)
    expect([budget.level(0), budget.tryRepeat(0)]).toEqual([5, false])
    budget.succeeded(0)
    expect([budget.level(0), budget.tryRepeat(0)]).toEqual([5.1, true])
  })

  it('a repeat takes nothing by itself', () => {
    const budget = tokenBudget()
    times(100, () => expect(budget.tryRepeat(0)).toBe(true))
    expect(budget.level(0)).toBe(10)
  })

  it('stays between 0 and maxTokens', () => {
    const budget = tokenBudget({ maxTokens: 3, tokenRatio: 2 })
    times(9, () => budget.failed(0))
    expect(budget.level(0)).toBe(0)
    times(9, () => budget.succeeded(0))
    expect(budget.level(0)).toBe(3)
  })

  it.each([
    [0.5466, 0.546],
    [0.5469999, 0.546],
    [0.1, 0.1],
    [1.005, 1.005],
    [0.0019, 0.001],
    [0.001, 0.001],
    [4.35, 4.35],
    [123.4567, 123.456],
  ])('tokenRatio %d counts as %d: decimals beyond the third are ignored, not rounded', (given, counts) => {
    const budget = tokenBudget({ maxTokens: 1000, tokenRatio: given })
    expect(budget.data).toEqual({ kind: 'token', maxTokens: 1000, tokenRatio: counts })
    times(1000, () => budget.failed(0))
    budget.succeeded(0)
    expect(budget.level(0)).toBe(counts)
  })

  it('drains where more than ratio / (1 + ratio) of the attempts fail, and only there', () => {
    const levelAfter = (failuresInTwelve: number): number => {
      const budget = tokenBudget({ maxTokens: 1000, tokenRatio: 0.1 })
      times(100, () => budget.failed(0))
      times(1000, () => {
        times(failuresInTwelve, () => budget.failed(0))
        times(12 - failuresInTwelve, () => budget.succeeded(0))
      })
      return budget.level(0)
    }
    expect(levelAfter(1)).toBe(1000) // 8.3 %
    expect(levelAfter(2)).toBeLessThan(500) // 16.7 %
  })

  const moves = fc.array(fc.boolean(), { maxLength: 60 })
  const thousandths = fc.integer({ min: 1, max: 3000 })
  property(
    'equals exact arithmetic',
    [fc.integer({ min: 1, max: 1000 }), thousandths, moves],
    (maxTokens, gain, results) => {
      const budget = tokenBudget({ maxTokens, tokenRatio: gain / 1000 })
      let tokens = BigInt(maxTokens) * 1000n
      // To A6 a result is a result, of a first attempt or of a repeat.
      for (const [place, good] of results.entries()) {
        if (good) budget.succeeded(0, place % 2 === 1)
        else budget.failed(0, place % 2 === 1)
        tokens += good ? BigInt(gain) : -1000n
        if (tokens < 0n) tokens = 0n
        if (tokens > BigInt(maxTokens) * 1000n) tokens = BigInt(maxTokens) * 1000n
        expect(budget.level(0)).toBe(Number(tokens) / 1000)
        expect(budget.tryRepeat(0)).toBe(tokens * 2n > BigInt(maxTokens) * 1000n)
      }
    },
  )

  it.each([
    ['budget.maxTokens', { maxTokens: 0 }],
    ['budget.maxTokens', { maxTokens: 1001 }],
    ['budget.maxTokens', { maxTokens: Number.NaN }],
    ['budget.tokenRatio', { tokenRatio: 0 }],
    ['budget.tokenRatio', { tokenRatio: -0.1 }],
    ['budget.tokenRatio', { tokenRatio: 0.0009 }],
    ['budget.tokenRatio', { tokenRatio: Number.POSITIVE_INFINITY }],
  ])('refuses %s %o', (path, options) => {
    expect(() => tokenBudget(options)).toThrow(expect.objectContaining({ code: 'POLICY_INVALID', details: { path } }))
  })
})

describe('ratioBudget', () => {
  const bare = { refillPerSecond: 0, initial: 0 } as const

  it('allows a tenth of the calls of the window, and no more', () => {
    const budget = ratioBudget(bare)
    times(29, () => budget.succeeded(0))
    expect([budget.tryRepeat(0), budget.tryRepeat(0), budget.tryRepeat(0)]).toEqual([true, true, false])
  })

  it('does not let repeats earn repeats', () => {
    const budget = ratioBudget({ ...bare, ratio: 1 })
    times(5, () => budget.failed(0))
    let granted = 0
    while (granted < 100 && budget.tryRepeat(0)) {
      granted += 1
      budget.failed(0, true)
      budget.succeeded(0, true)
    }
    // Five calls earn five repeats; a repeat's own result would earn another, for ever.
    expect(granted).toBe(5)
  })

  it('forgets calls and repeats that have left the window', () => {
    const budget = ratioBudget({ ...bare, window: '10s' })
    times(20, () => budget.succeeded(0))
    expect(budget.level(9_999)).toBe(2)
    expect(budget.level(10_000)).toBe(0)
  })

  it('is right after a long idle time, whatever multiple of the window it was', () => {
    for (const idleMs of [10_000, 19_999, 20_000, 100_000, 3_600_000, 1e12]) {
      const budget = ratioBudget(bare)
      times(1000, () => budget.succeeded(5_000))
      expect(budget.level(5_000)).toBe(100)
      expect(budget.tryRepeat(5_000 + idleMs)).toBe(false)
    }
  })

  it('lets a quiet client recover slowly by time', () => {
    const budget = ratioBudget({ ratio: 0.1, refillPerSecond: 0.01, initial: 1 })
    expect(budget.tryRepeat(0)).toBe(true)
    expect(budget.tryRepeat(99_000)).toBe(false)
    expect(budget.tryRepeat(100_001)).toBe(true)
    expect(budget.level(1e9)).toBe(1)
  })

  it('starts small: the initial balance multiplies with the fleet', () => {
    const budget = ratioBudget()
    expect(budget.level(0)).toBe(1)
    expect([budget.tryRepeat(0), budget.tryRepeat(0)]).toEqual([true, false])
  })

  it('has a floor only if told', () => {
    const budget = ratioBudget({ ...bare, floorPerSecond: 0.5, window: '10s' })
    let granted = 0
    while (granted < 100 && budget.tryRepeat(0)) {
      granted += 1
      budget.failed(0, true)
    }
    expect(granted).toBe(5)
    expect(budget.tryRepeat(9_999)).toBe(false)
    expect(budget.tryRepeat(10_000)).toBe(true)
  })

  it('takes a time that goes back for the latest it has seen', () => {
    const budget = ratioBudget({ ...bare, window: '10s', refillPerSecond: 1 })
    times(20, () => budget.succeeded(50_000))
    const level = budget.level(50_000)
    expect(budget.level(0)).toBe(level)
    times(20, () => budget.succeeded(1_000))
    expect(budget.level(50_000)).toBe(level + 2)
  })

  // A repeat is lost when nobody hears of its result: a hedge that lost, a wait that the caller left.
  type Move = readonly [afterMs: number, move: 'call' | 'repeat' | 'lost']
  const moves: fc.Arbitrary<Move[]> = fc.array(
    fc.tuple(
      fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 5_000 })),
      fc.constantFrom('call' as const, 'call' as const, 'repeat' as const, 'lost' as const),
    ),
    { maxLength: 60 },
  )
  const settings: fc.Arbitrary<Required<RatioBudgetOptions>> = fc.record({
    ratio: fc.constantFrom(0, 0.1, 0.25, 0.5, 1),
    window: fc.constantFrom(10, 100, 1000),
    refillPerSecond: fc.constantFrom(0, 0.5, 8),
    floorPerSecond: fc.constantFrom(0, 2, 16),
    initial: fc.constantFrom(0, 0.5, 1, 3),
  })

  property(
    'never gives more than ratio · calls + refill + floor + initial, in any stretch of time',
    [settings, moves],
    (options, made) => {
      const windowMs = Number(options.window)
      const budget: Budget = ratioBudget(options)
      const callsMs: number[] = []
      const repeatsMs: number[] = []
      let nowMs = 0
      for (const [afterMs, move] of made) {
        nowMs += afterMs
        if (move === 'call') {
          callsMs.push(nowMs)
          budget.failed(nowMs)
        } else if (budget.tryRepeat(nowMs)) {
          repeatsMs.push(nowMs)
          if (move === 'repeat') budget.failed(nowMs, true)
        }
        expect(budget.level(nowMs)).toBeGreaterThanOrEqual(0)
      }
      // From every repeat to every later one. Calls of one window before the stretch still count for it.
      const reserve = Math.max(1, options.initial)
      for (const [first, fromMs] of repeatsMs.entries()) {
        for (let last = first; last < repeatsMs.length; last += 1) {
          const toMs = repeatsMs[last] ?? 0
          const calls = callsMs.filter((ms) => ms >= fromMs - windowMs && ms <= toMs).length
          const seconds = (toMs - fromMs) / 1000
          const floor = options.floorPerSecond * (seconds + windowMs / 1000)
          const most = options.ratio * calls + reserve + options.refillPerSecond * seconds + floor
          expect(last - first + 1).toBeLessThanOrEqual(most + 1e-9)
        }
      }
      // Over the whole life the initial balance is all that is free.
      const seconds = nowMs / 1000
      const free =
        options.initial + options.refillPerSecond * seconds + options.floorPerSecond * (seconds + windowMs / 1000)
      expect(repeatsMs.length).toBeLessThanOrEqual(options.ratio * callsMs.length + free + 1e-9)
    },
  )

  property('gives what a list of everything that happened would give', [settings, moves], (options, made) => {
    const windowMs = Number(options.window)
    const budget = ratioBudget(options)
    const stepOf = (ms: number): number => Math.floor((ms * 10) / windowMs)
    let events: { step: number; calls: number; repeats: number }[] = []
    let reserve = options.initial
    let nowMs = 0
    for (const [index, [afterMs, move]] of made.entries()) {
      nowMs += afterMs
      if (index > 0)
        reserve = Math.min(Math.max(1, options.initial), reserve + (afterMs * options.refillPerSecond) / 1000)
      events = events.filter(({ step }) => step > stepOf(nowMs) - 10)
      const step = stepOf(nowMs)
      if (move === 'call') {
        events.push({ step, calls: 1, repeats: 0 })
        budget.succeeded(nowMs)
        continue
      }
      const calls = events.reduce((sum, event) => sum + event.calls, 0)
      const repeats = events.reduce((sum, event) => sum + event.repeats, 0)
      const share = options.ratio * calls + (options.floorPerSecond * windowMs) / 1000 - repeats
      expect(budget.level(nowMs)).toBe(Math.max(0, share) + reserve)
      const expected = share >= 1 || reserve >= 1
      expect(budget.tryRepeat(nowMs)).toBe(expected)
      if (!expected) continue
      if (share < 1) reserve -= 1
      else events.push({ step, calls: 0, repeats: 1 })
      if (move === 'repeat') budget.succeeded(nowMs, true)
    }
  })

  property('does not mind whether the results of repeats come', [settings, moves], (options, made) => {
    const [told, untold] = [ratioBudget(options), ratioBudget(options)]
    let nowMs = 0
    for (const [afterMs, move] of made) {
      nowMs += afterMs
      if (move === 'call') {
        told.failed(nowMs)
        untold.failed(nowMs)
      } else if (told.tryRepeat(nowMs)) {
        expect(untold.tryRepeat(nowMs)).toBe(true)
        if (move === 'repeat') told.failed(nowMs, true)
        else told.succeeded(nowMs, true)
      } else {
        expect(untold.tryRepeat(nowMs)).toBe(false)
      }
      expect(untold.level(nowMs)).toBe(told.level(nowMs))
    }
  })

  property(
    'gives a quiet client a repeat back, whatever happened before',
    [settings, moves, fc.constantFrom(0.01, 0.5, 8)],
    (options, made, refillPerSecond) => {
      const budget = ratioBudget({ ...options, refillPerSecond })
      let nowMs = 0
      for (const [afterMs, move] of made) {
        nowMs += afterMs
        if (move === 'call') budget.failed(nowMs)
        else budget.tryRepeat(nowMs)
      }
      while (budget.tryRepeat(nowMs));
      expect(budget.tryRepeat(nowMs + 1000 / refillPerSecond + 1)).toBe(true)
    },
  )

  it.each([
    ['budget.ratio', { ratio: -0.1 }],
    ['budget.ratio', { ratio: 1.1 }],
    ['budget.windowMs', { window: 0 }],
    ['budget.refillPerSecond', { refillPerSecond: Number.NaN }],
    ['budget.floorPerSecond', { floorPerSecond: -1 }],
    ['budget.initial', { initial: Number.POSITIVE_INFINITY }],
  ])('refuses %s %o', (path, options) => {
    expect(() => ratioBudget(options)).toThrow(expect.objectContaining({ code: 'POLICY_INVALID', details: { path } }))
  })
})

describe('budgetFrom', () => {
  it('makes a new budget of the same data', () => {
    for (const budget of [tokenBudget({ maxTokens: 7, tokenRatio: 0.25 }), ratioBudget({ ratio: 0.2, window: '1m' })]) {
      expect(budgetFrom(JSON.parse(JSON.stringify(budget.data))).data).toEqual(budget.data)
    }
    expect(() => budgetFrom({ kind: 'other' } as never)).toThrow(
      expect.objectContaining({ details: { path: 'budget.kind' } }),
    )
  })
})

it.each([
  ['budget', null],
  ['budget', 'token'],
  ['budget.kind', {}],
])('says that %s is not valid of %j', (path, data) => {
  expect(() => budgetFrom(data as never)).toThrowError(
    expect.objectContaining({ code: 'POLICY_INVALID', details: { path } }),
  )
})

describe('a token budget that still allows at exactly half', () => {
  it('allows one failure in a row more than gRPC A6, and is data', () => {
    const repeats = (allowsAtHalf: boolean, maxTokens: number): number => {
      const budget = tokenBudget({ maxTokens, allowsAtHalf })
      let allowed = 0
      for (budget.failed(0); budget.tryRepeat(0) && allowed < 100; budget.failed(0)) allowed += 1
      return allowed
    }
    expect([repeats(false, 10), repeats(true, 10), repeats(false, 2), repeats(true, 2)]).toEqual([4, 5, 0, 1])
    const { data } = tokenBudget({ allowsAtHalf: true })
    expect(budgetFrom(data).data).toEqual({ kind: 'token', maxTokens: 10, tokenRatio: 0.1, allowsAtHalf: true })
    expect(tokenBudget().data).toEqual({ kind: 'token', maxTokens: 10, tokenRatio: 0.1 })
    const refused = expect.objectContaining({ code: 'POLICY_INVALID', details: { path: 'budget.allowsAtHalf' } })
    expect(() => tokenBudget({ allowsAtHalf: 1 as never })).toThrow(refused)
  })
})
