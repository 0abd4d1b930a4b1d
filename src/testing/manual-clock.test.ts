import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { property } from '../../test/property.js'
import { seededRandom as kernelSeededRandom, sleep } from '../kernel/index.js'
import { manualClock, seededRandom } from './index.js'

const invalid = expect.objectContaining({ code: 'ARGUMENT_INVALID' })

describe('manualClock', () => {
  it('stands still until it is moved', async () => {
    const clock = manualClock({ wallMs: 5000, monotonicMs: 10 })
    await new Promise((resolve) => setTimeout(resolve, 3))
    expect([clock.monotonicMs(), clock.wallMs()]).toEqual([10, 5000])
    await clock.advance('1.5s')
    expect([clock.monotonicMs(), clock.wallMs()]).toEqual([1510, 6500])
  })

  it('begins in 2025 and at zero where nothing else is said', () => {
    const clock = manualClock()
    expect(new Date(clock.wallMs()).toISOString()).toBe('2025-01-01T00:00:00.000Z')
    expect(clock.monotonicMs()).toBe(0)
  })

  it('fires in the order of time, and in the order of setting within one instant', async () => {
    const clock = manualClock()
    const fired: string[] = []
    const note = (name: string) => () => fired.push(`${name}@${clock.monotonicMs()}`)
    clock.setTimer(20, note('c'))
    clock.setTimer(10, note('a'))
    clock.setTimer(20, note('d'))
    clock.setTimer(10, note('b'))
    clock.setTimer(31, note('not yet'))
    await clock.advance(30)
    expect(fired).toEqual(['a@10', 'b@10', 'c@20', 'd@20'])
    expect(clock.pendingTimers).toBe(1)
    expect(clock.monotonicMs()).toBe(30)
  })

  it('moves the wall along while timers fire', async () => {
    const clock = manualClock({ wallMs: 1000 })
    let wallMs = 0
    clock.setTimer(10, () => {
      wallMs = clock.wallMs()
    })
    await clock.advance(25)
    expect([wallMs, clock.wallMs()]).toEqual([1010, 1025])
  })

  it('lets code sleep again and again within one span, whatever it awaits in between', async () => {
    const clock = manualClock()
    const woken: number[] = []
    const work = (async () => {
      for (let round = 0; round < 5; round += 1) {
        await sleep(10, { clock })
        for (let index = 0; index < 200; index += 1) await undefined
        woken.push(clock.monotonicMs())
      }
    })()
    await clock.advance(50)
    expect(woken).toEqual([10, 20, 30, 40, 50])
    await work
  })

  it('lets code that was just started set its timer before time moves', async () => {
    const clock = manualClock()
    let wokenAtMs = 0
    void (async () => {
      await undefined
      await sleep(10, { clock })
      wokenAtMs = clock.monotonicMs()
    })()
    await clock.advance(10)
    expect(wokenAtMs).toBe(10)
  })

  it('does not fire what was cancelled, also from within another timer of the same instant', async () => {
    const clock = manualClock()
    const fire = vi.fn()
    clock.setTimer(5, () => cancel())
    const cancel = clock.setTimer(5, fire)
    const early = clock.setTimer(5, fire)
    early()
    early()
    expect(clock.pendingTimers).toBe(2)
    await clock.advance(10)
    expect(fire).not.toHaveBeenCalled()
    expect(clock.pendingTimers).toBe(0)
  })

  it('a cancel after the firing takes no other timer away', async () => {
    const clock = manualClock()
    const cancel = clock.setTimer(5, () => undefined)
    await clock.advance(5)
    clock.setTimer(5, () => undefined)
    cancel()
    expect(clock.pendingTimers).toBe(1)
  })

  it('never fires from within setTimer', () => {
    const fire = vi.fn()
    manualClock().setTimer(0, fire)
    expect(fire).not.toHaveBeenCalled()
  })

  it('sets the wall without touching timers or monotonic time', async () => {
    const clock = manualClock()
    const fire = vi.fn()
    clock.setTimer(100, fire)
    clock.setWallMs(clock.wallMs() + 86_400_000)
    await clock.advance(99)
    expect(fire).not.toHaveBeenCalled()
    clock.setWallMs(0)
    expect([clock.wallMs(), clock.monotonicMs()]).toEqual([0, 99])
    await clock.advance(1)
    expect(fire).toHaveBeenCalledOnce()
    expect(clock.wallMs()).toBe(1)
  })

  it('runs to the next instant that has a timer, and says when there is none', async () => {
    const clock = manualClock()
    const fired: number[] = []
    for (const delayMs of [30, 10, 10]) clock.setTimer(delayMs, () => fired.push(delayMs))
    expect(await clock.runToNext()).toBe(true)
    expect([fired, clock.monotonicMs()]).toEqual([[10, 10], 10])
    expect(await clock.runToNext()).toBe(true)
    expect([fired, clock.monotonicMs()]).toEqual([[10, 10, 30], 30])
    expect(await clock.runToNext()).toBe(false)
    expect(clock.monotonicMs()).toBe(30)
  })

  it('stops timers that set one another without end, with an error that says so', async () => {
    for (const maxFires of [Number.NaN, 0, -1, 1.5]) {
      expect(() => manualClock({ maxFires })).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
    }
    const clock = manualClock({ maxFires: 50 })
    let fires = 0
    const again = () => {
      fires += 1
      clock.setTimer(0, again)
    }
    again()
    fires = 0
    await expect(clock.advance(1)).rejects.toThrow('More than 50 timers')
    expect(fires).toBe(50)
    await expect(clock.advance(1)).rejects.toThrow(invalid)
  })

  it('fires exactly as many as allowed without complaint', async () => {
    const clock = manualClock({ maxFires: 3 })
    const fire = vi.fn()
    for (let index = 0; index < 3; index += 1) clock.setTimer(1, fire)
    await clock.advance(1)
    expect(fire).toHaveBeenCalledTimes(3)
  })

  it('rejects with what a timer throws, and goes on afterwards', async () => {
    const clock = manualClock()
    const after = vi.fn()
    clock.setTimer(5, () => {
      throw new Error('from a timer')
    })
    clock.setTimer(6, after)
    await expect(clock.advance(10)).rejects.toThrow('from a timer')
    expect(clock.monotonicMs()).toBe(5)
    await clock.advance(1)
    expect(after).toHaveBeenCalledOnce()
  })

  it('lets moves at the same time follow one another', async () => {
    const clock = manualClock()
    const fired: number[] = []
    clock.setTimer(5, () => {
      fired.push(clock.monotonicMs())
      void clock.advance(100)
    })
    clock.setTimer(12, () => fired.push(clock.monotonicMs()))
    await Promise.all([clock.advance(10), clock.advance(10), clock.runToNext()])
    expect(fired).toEqual([5, 12])
    await clock.advance(0)
    expect(clock.monotonicMs()).toBe(120)
  })

  it('works while fake timers are installed', async () => {
    vi.useFakeTimers()
    try {
      const clock = manualClock()
      const fire = vi.fn()
      clock.setTimer(5, fire)
      await clock.advance(5)
      expect(fire).toHaveBeenCalledOnce()
    } finally {
      vi.useRealTimers()
    }
  })

  it('refuses numbers that are no time', async () => {
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, '5' as unknown as number]) {
      expect(() => manualClock({ wallMs: bad })).toThrow(invalid)
      expect(() => manualClock({ monotonicMs: bad })).toThrow(invalid)
      expect(() => manualClock().setWallMs(bad)).toThrow(invalid)
      expect(() => manualClock().setTimer(bad, () => undefined)).toThrow(invalid)
    }
    expect(() => manualClock().setTimer(-1, () => undefined)).toThrow(invalid)
    await expect(manualClock().advance(-1)).rejects.toThrow(expect.objectContaining({ code: 'DURATION_INVALID' }))
  })

  property(
    'fires every timer once, at its own instant, in order, however the span is cut',
    [fc.array(fc.nat(60), { maxLength: 12 }), fc.array(fc.nat(20), { maxLength: 4 })],
    async (delaysMs, stepsMs) => {
      const clock = manualClock()
      const fired: [number, number][] = []
      delaysMs.forEach((delayMs, index) => {
        clock.setTimer(delayMs, () => fired.push([clock.monotonicMs(), index]))
      })
      for (const stepMs of stepsMs) await clock.advance(stepMs)
      const endMs = stepsMs.reduce((sum, stepMs) => sum + stepMs, 0)
      const expected = delaysMs
        .map((delayMs, index): [number, number] => [delayMs, index])
        .filter(([delayMs]) => stepsMs.length > 0 && delayMs <= endMs)
        .sort(([a, i], [b, j]) => a - b || i - j)
      expect(fired).toEqual(expected)
      expect(clock.pendingTimers).toBe(delaysMs.length - expected.length)
      expect(clock.monotonicMs()).toBe(endMs)
    },
  )
})

describe('the entry point', () => {
  it('offers the seeded random of the kernel', () => {
    expect(seededRandom).toBe(kernelSeededRandom)
  })
})
