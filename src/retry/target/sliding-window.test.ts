import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { property } from '../../../test/property.js'
import { added, aged, stepAt, total, windowLength } from './sliding-window.js'

describe('a sliding window', () => {
  const events = fc.array(
    fc.record({ afterMs: fc.integer({ min: 0, max: 3000 }), marks: fc.integer({ min: 0, max: 3 }) }),
  )

  property(
    'sums what happened in the last ten steps, after any idle time',
    [fc.integer({ min: 1, max: 2000 }), events],
    (windowMs, made) => {
      let pairs: readonly number[] = []
      let nowMs = 0
      const known: { step: number; marks: number }[] = []
      for (const { afterMs, marks } of made) {
        pairs = aged(pairs, stepAt(nowMs + afterMs, windowMs) - stepAt(nowMs, windowMs))
        nowMs += afterMs
        pairs = added(pairs, 1, marks)
        known.push({ step: stepAt(nowMs, windowMs), marks })
        const left = known.filter(({ step }) => step > stepAt(nowMs, windowMs) - 10)
        expect(total(pairs, 0)).toBe(left.length)
        expect(total(pairs, 1)).toBe(left.reduce((sum, event) => sum + event.marks, 0))
        expect(pairs.length).toBeLessThanOrEqual(windowLength)
      }
    },
  )
})
