import { describe, expect, it } from 'vitest'
import { seededRandom } from '../kernel/index.js'
import { exponential, normal } from './sampling.js'

const draws = 100_000

function moments(draw: () => number): { mean: number; deviation: number; least: number } {
  const values = Array.from({ length: draws }, draw)
  const mean = values.reduce((sum, value) => sum + value, 0) / draws
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / draws
  return { mean, deviation: Math.sqrt(variance), least: Math.min(...values) }
}

describe('sampling', () => {
  it('draws exponentially: the deviation is the mean, and nothing is negative', () => {
    const random = seededRandom(1)
    const { mean, deviation, least } = moments(() => exponential(random, 10))
    expect(mean).toBeCloseTo(10, 0)
    expect(deviation).toBeCloseTo(10, 0)
    expect(least).toBeGreaterThanOrEqual(0)
  })

  it('draws normally: 68.3 % within one deviation', () => {
    const random = seededRandom(2)
    let within = 0
    const { mean, deviation } = moments(() => {
      const value = normal(random, 10, 2)
      if (Math.abs(value - 10) < 2) within += 1
      return value
    })
    expect(mean).toBeCloseTo(10, 1)
    expect(deviation).toBeCloseTo(2, 1)
    expect(within / draws).toBeCloseTo(0.683, 2)
  })

  it.each([0, 1 - 2 ** -53])('stays finite at the edge of chance, %d', (edge) => {
    const random = { next: () => edge, fill: () => undefined }
    expect(exponential(random, 1)).toBeLessThan(40)
    expect(Math.abs(normal(random, 0, 1))).toBeLessThan(10)
  })
})
