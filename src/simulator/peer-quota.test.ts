import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../test/property.js'
import { quotaBudget, quotaData } from './peer-quota.js'

describe('the retry quota of the AWS SDKs', () => {
  it.each([
    [14, 35],
    [5, 100],
  ])('from full, a cost of %d is %d repeats in a row', (cost, repeats) => {
    const quota = quotaBudget(quotaData({ kind: 'quota', cost }))
    let granted = 0
    while (granted < 1000 && quota.tryRepeat(0)) {
      granted += 1
      quota.failed(0, true)
    }
    expect(granted).toBe(repeats)
  })

  it('gives the cost back for a repeat that succeeds, and a little for a first attempt', () => {
    const quota = quotaBudget(quotaData({ kind: 'quota', capacity: 30, cost: 10, gain: 2 }))
    expect([quota.tryRepeat(0), quota.tryRepeat(0), quota.level(0)]).toEqual([true, true, 10])
    quota.succeeded(0, true)
    expect(quota.level(0)).toBe(20)
    quota.succeeded(0)
    expect(quota.level(0)).toBe(22)
  })

  type Move = 'fresh' | 'good' | 'bad'
  const moves: fc.Arbitrary<Move[]> = fc.array(fc.constantFrom<Move>('fresh', 'good', 'bad'), { maxLength: 80 })
  property(
    'never holds less than nothing or more than its capacity, and spends no more than it had',
    [fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 20 }), fc.integer({ min: 0, max: 3 }), moves],
    (capacity, cost, gain, made) => {
      const quota = quotaBudget({ kind: 'quota', capacity, cost, gain })
      let balance = capacity
      for (const move of made) {
        if (move === 'fresh') {
          quota.succeeded(0)
          balance = Math.min(capacity, balance + gain)
        } else {
          const may = balance >= cost
          expect(quota.tryRepeat(0)).toBe(may)
          if (may && move === 'bad') balance -= cost
          if (may && move === 'good') quota.succeeded(0, true)
          else quota.failed(0, true)
        }
        expect(quota.level(0)).toBe(balance)
      }
    },
  )

  it.each([
    ['peerBudget.capacity', { capacity: 0 }],
    ['peerBudget.cost', { cost: Number.NaN }],
    ['peerBudget.gain', { gain: -1 }],
  ])('refuses %s %o', (name, options) => {
    expect(() => quotaData({ kind: 'quota', ...options })).toThrowError(
      expect.objectContaining({ code: 'ARGUMENT_INVALID', details: expect.objectContaining({ name }) }),
    )
  })

  it('refuses schemes that it does not know', () => {
    expect(() => quotaData({ kind: 'other' } as never)).toThrowError(
      expect.objectContaining({ code: 'ARGUMENT_INVALID' }),
    )
  })
})
