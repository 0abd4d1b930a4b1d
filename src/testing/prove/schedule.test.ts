import { describe, expect, it } from 'vitest'
import { cutSchedules, duplicateSchedules, roundSchedules, visitSchedules, visitsOf } from './schedule.js'

describe('schedules', () => {
  it('have one for each visit of a point, and no more than five of one', () => {
    const visits = visitsOf(['a', 'b', 'a', ...Array.from({ length: 9 }, () => 'beat')])
    expect(visits.slice(0, 3)).toEqual([
      { point: 'a', nth: 1 },
      { point: 'b', nth: 1 },
      { point: 'a', nth: 2 },
    ])
    expect(visits.filter(({ point }) => point === 'beat')).toHaveLength(5)
    expect(visitSchedules('kill', visits).map(({ name }) => name)).toContain('killed at a, visit 2')
    expect(duplicateSchedules(3).map(({ name }) => name)).toEqual(['called again after its answer', '3 calls at once'])
  })

  it('cut every statement twice, and COMMIT once more', () => {
    const names = cutSchedules(['BEGIN', 'COMMIT']).map(({ name }) => name)
    expect(names).toEqual([
      'cut at statement 1 (BEGIN), before it arrives',
      'cut at statement 1 (BEGIN), before its answer',
      'cut at statement 2 (COMMIT), before it arrives',
      'cut at statement 2 (COMMIT), before its answer',
      'cut at statement 2 (COMMIT), and it arrives late',
    ])
    expect(cutSchedules(Array.from({ length: 100 }, () => 'SELECT 1'))).toHaveLength(80)
  })

  it('draw the same rounds from the same seed, each by its number alone', () => {
    const visits = visitsOf(['a', 'b', 'c'])
    const ten = roundSchedules(1, 10, 5, visits)
    expect(roundSchedules(1, 3, 5, visits)).toEqual(ten.slice(0, 3))
    expect(roundSchedules(2, 10, 5, visits)).not.toEqual(ten)
    expect(roundSchedules(1, 2, 5, []).every((one) => one.kind === 'round' && one.faults.length === 0)).toBe(true)
  })
})
