import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../../test/property.js'
import { manualClock } from '../../testing/index.js'
import { type Deadline, deadlineAfter, earlier, remainingMs } from './duration.js'

const points = fc.option(
  fc.double({ noNaN: true }).map((expiresAtMs): Deadline => ({ expiresAtMs })),
  { nil: undefined },
)

describe('deadlines', () => {
  it('count down by monotonic time, to zero and not below', async () => {
    const clock = manualClock({ monotonicMs: 777.5 })
    const deadline = deadlineAfter('2s', clock)
    expect(deadline).toEqual({ expiresAtMs: 2777.5 })
    expect(remainingMs(deadline, clock)).toBe(2000)
    await clock.advance(1999)
    expect(remainingMs(deadline, clock)).toBe(1)
    await clock.advance(500)
    expect(remainingMs(deadline, clock)).toBe(0)
  })

  it('do not notice a wall clock that is set', () => {
    const clock = manualClock()
    const deadline = deadlineAfter(50, clock)
    clock.setWallMs(clock.wallMs() + 86_400_000)
    expect(remainingMs(deadline, clock)).toBe(50)
  })

  it('cannot be moved', () => {
    expect(Object.isFrozen(deadlineAfter(5))).toBe(true)
  })

  it('use the real clock where none is given', () => {
    const deadline = deadlineAfter('1h')
    expect(deadline.expiresAtMs - performance.now()).toBeLessThanOrEqual(3_600_000)
    expect(remainingMs(deadline)).toBeGreaterThan(3_590_000)
    expect(remainingMs(deadline)).toBeLessThanOrEqual(3_600_000)
  })

  it('refuse what is not a duration or not a deadline', () => {
    expect(() => deadlineAfter(-1)).toThrow(expect.objectContaining({ code: 'DURATION_INVALID' }))
    const invalid = expect.objectContaining({ code: 'ARGUMENT_INVALID' })
    const fine: Deadline = { expiresAtMs: 5 }
    for (const broken of [{ expiresAtMs: Number.NaN }, {}, { expiresAtMs: '5' }] as Deadline[]) {
      expect(() => remainingMs(broken)).toThrow(invalid)
      expect(() => earlier(broken, fine)).toThrow(invalid)
      expect(() => earlier(fine, broken)).toThrow(invalid)
    }
  })

  it('have an earlier one of two, also where one is absent', () => {
    const soon: Deadline = { expiresAtMs: 5 }
    const later: Deadline = { expiresAtMs: 6 }
    expect(earlier(soon, later)).toBe(soon)
    expect(earlier(later, soon)).toBe(soon)
    expect(earlier(undefined, later)).toBe(later)
    expect(earlier(later, undefined)).toBe(later)
    expect(earlier(undefined, undefined)).toBeUndefined()
  })

  property('only shrink inward', [points, points], (outer, inner) => {
    const both = earlier(outer, inner)
    for (const one of [outer, inner]) {
      if (one !== undefined) expect((both as Deadline).expiresAtMs).toBeLessThanOrEqual(one.expiresAtMs)
    }
    expect([outer, inner]).toContain(both)
  })
})
