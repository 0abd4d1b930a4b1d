import { describe, expect, it } from 'vitest'
import { demand, demandRanges, huge, tiny, within } from './demand.js'

describe('within', () => {
  it('includes both ends, and only numbers', () => {
    expect([1, 2, 3].map((value) => within(value, [1, 3]))).toEqual([true, true, true])
    for (const value of [0.99, 3.01, Number.NaN, '2', null, undefined, [2]]) expect(within(value, [1, 3])).toBe(false)
    expect([within(1.5, [1, 3, 'whole']), within(2, [1, 3, 'whole'])]).toEqual([false, true])
  })

  it('leaves out 0 and Infinity between tiny and huge', () => {
    const found = [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1e-300, 1e300].map((value) =>
      within(value, [tiny, huge]),
    )
    expect(found).toEqual([false, false, false, false, true, true])
  })
})

describe('demand', () => {
  it('names the part, and nothing else', () => {
    expect(() => demand(true, 'x')).not.toThrow()
    const refused = expect.objectContaining({
      code: 'POLICY_INVALID',
      message: 'Not valid: part.b.',
      details: { path: 'part.b' },
    })
    expect(() => demandRanges('part', { a: 1, b: 'secret' }, { a: [1, 1], b: [0, 2] })).toThrow(refused)
    expect(() => demandRanges('part', { a: 1 }, { a: [1, 1] })).not.toThrow()
  })
})
