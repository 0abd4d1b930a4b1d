import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { property } from '../../../test/property.js'
import { type ClockHost, clockOn, systemClock } from './clock.js'

const maxHostDelayMs = 2 ** 31 - 1

interface HostTimer {
  readonly dueMs: number
  readonly fire: () => void
  unrefs: number
  unref(): void
}

/**
 * A host whose time the test moves. Like Node it cannot wait longer than 31 bits of ms, and may count in whole ms, so
 * that it rings early.
 */
class FakeHost implements ClockHost {
  nowMs = 1000.25
  wall = 5000
  lateMs = 0
  countsWholeMs = false
  readonly delaysMs: number[] = []
  readonly made: HostTimer[] = []
  readonly pending = new Set<HostTimer>()

  readonly timers = this
  monotonicMs = () => this.nowMs
  wallMs = () => this.wall

  setTimeout = (fire: () => void, delayMs: number): HostTimer => {
    this.delaysMs.push(delayMs)
    const effectiveMs = delayMs > maxHostDelayMs || Number.isNaN(delayMs) ? 1 : Math.trunc(delayMs)
    const timer: HostTimer = {
      dueMs: (this.countsWholeMs ? Math.floor(this.nowMs) : this.nowMs) + effectiveMs + this.lateMs,
      fire,
      unrefs: 0,
      unref() {
        this.unrefs += 1
      },
    }
    this.made.push(timer)
    this.pending.add(timer)
    return timer
  }

  clearTimeout = (handle: unknown): void => {
    this.pending.delete(handle as HostTimer)
  }

  /** Rings pending timers one by one until none is left or the limit is reached. */
  run(limit = 1000): void {
    for (let rings = 0; rings < limit && this.pending.size > 0; rings += 1) {
      const [first] = [...this.pending].sort((a, b) => a.dueMs - b.dueMs) as [HostTimer]
      this.pending.delete(first)
      this.nowMs = Math.max(this.nowMs, first.dueMs)
      first.fire()
    }
  }
}

afterEach(() => {
  vi.useRealTimers()
})

describe('a clock on a host', () => {
  it('keeps monotonic and wall time apart', () => {
    const host = new FakeHost()
    const clock = clockOn(host)
    expect([clock.monotonicMs(), clock.wallMs()]).toEqual([1000.25, 5000])
    host.wall = -7
    expect([clock.monotonicMs(), clock.wallMs()]).toEqual([1000.25, -7])
  })

  it('makes long delays of several that the host can keep, and fires once, on time', () => {
    const host = new FakeHost()
    const fired: number[] = []
    const delayMs = 3 * maxHostDelayMs + 5000 // some 75 days
    clockOn(host).setTimer(delayMs, () => fired.push(host.nowMs))
    host.run()
    expect(fired).toEqual([1000.25 + delayMs])
    expect(host.delaysMs).toEqual([maxHostDelayMs, maxHostDelayMs, maxHostDelayMs, 5000])
  })

  it('measures a long delay by the clock, so that late rings do not add up', () => {
    const host = new FakeHost()
    host.lateMs = 250 // each ring comes 250 ms late
    let firedAtMs = 0
    clockOn(host).setTimer(2 * maxHostDelayMs + 10_000, () => {
      firedAtMs = host.nowMs
    })
    host.run()
    expect(host.delaysMs).toEqual([maxHostDelayMs, maxHostDelayMs, 9500])
    expect(firedAtMs).toBe(1000.25 + 2 * maxHostDelayMs + 10_000 + 250)
  })

  it.each([
    [maxHostDelayMs - 1, 1],
    [maxHostDelayMs, 1],
    [maxHostDelayMs + 1, 2],
    [2 * maxHostDelayMs, 2],
    [0, 1],
  ])('needs for %d ms a number of host timers of %d', (delayMs, count) => {
    const host = new FakeHost()
    const fire = vi.fn()
    clockOn(host).setTimer(delayMs, fire)
    host.run()
    expect(fire).toHaveBeenCalledOnce()
    expect(host.made).toHaveLength(count)
    expect(Math.max(...host.delaysMs)).toBeLessThanOrEqual(maxHostDelayMs)
  })

  it('waits on when the host rings too early', () => {
    const host = new FakeHost()
    host.nowMs = 1000.75
    host.countsWholeMs = true
    let firedAtMs = 0
    clockOn(host).setTimer(100, () => {
      firedAtMs = host.nowMs
    })
    host.run()
    expect(host.delaysMs).toEqual([100, 1])
    expect(firedAtMs).toBe(1101) // due at 1100.75
  })

  it('does not fire after cancelling, in any portion, and cancelling again does nothing', () => {
    for (const rings of [0, 1, 2]) {
      const host = new FakeHost()
      const fire = vi.fn()
      const cancel = clockOn(host).setTimer(3 * maxHostDelayMs, fire)
      host.run(rings)
      cancel()
      cancel()
      expect(host.pending.size).toBe(0)
      for (const timer of host.made) timer.fire() // a host that rings all the same
      expect(fire).not.toHaveBeenCalled()
      expect(host.pending.size).toBe(0)
    }
  })

  it('fires once even if the host rings twice, and takes a cancel afterwards or from within', () => {
    const host = new FakeHost()
    const fire = vi.fn(() => cancel())
    const cancel = clockOn(host).setTimer(5, fire)
    host.run()
    host.made[0]?.fire()
    const clear = vi.spyOn(host, 'clearTimeout')
    cancel()
    expect(fire).toHaveBeenCalledOnce()
    expect(clear).not.toHaveBeenCalled()
  })

  it('does not hold the process where asked, in every portion, and holds it otherwise', () => {
    const host = new FakeHost()
    const clock = clockOn(host)
    clock.setTimer(2 * maxHostDelayMs, () => undefined, { keepAlive: false })
    host.run()
    expect(host.made.map((timer) => timer.unrefs)).toEqual([1, 1])
    clock.setTimer(5, () => undefined, { keepAlive: true })
    clock.setTimer(5, () => undefined, {})
    clock.setTimer(5, () => undefined)
    expect(host.made.slice(2).map((timer) => timer.unrefs)).toEqual([0, 0, 0])
  })

  it('takes handles that are plain numbers, as in a browser', () => {
    const fire = vi.fn()
    const cleared: unknown[] = []
    let ring = (): void => undefined
    const clock = clockOn({
      monotonicMs: () => 0,
      wallMs: () => 0,
      timers: {
        setTimeout: (work) => {
          ring = work
          return 77
        },
        clearTimeout: (handle) => void cleared.push(handle),
      },
    })
    clock.setTimer(0, fire, { keepAlive: false })
    ring()
    expect(fire).toHaveBeenCalledOnce()
    clock.setTimer(0, fire, { keepAlive: false })()
    expect(cleared).toEqual([77])
  })

  it.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -1, -0.001, '5', undefined, null])(
    'refuses a delay of %s and sets nothing',
    (delayMs) => {
      const host = new FakeHost()
      expect(() => clockOn(host).setTimer(delayMs as number, () => undefined)).toThrow(
        expect.objectContaining({ code: 'ARGUMENT_INVALID' }),
      )
      expect(host.made).toEqual([])
    },
  )

  property(
    'never fires early and never more than the host is late',
    [
      fc.double({ min: 0, max: 20 * maxHostDelayMs, noNaN: true }),
      fc.double({ min: 0, max: 1e6, noNaN: true }),
      fc.double({ min: 0, max: 3, noNaN: true }),
      fc.boolean(),
    ],
    (delayMs, nowMs, lateMs, countsWholeMs) => {
      const host = Object.assign(new FakeHost(), { nowMs, lateMs, countsWholeMs })
      const fired: number[] = []
      clockOn(host).setTimer(delayMs, () => fired.push(host.nowMs))
      host.run()
      expect(fired).toHaveLength(1)
      const overdueMs = (fired[0] as number) - (nowMs + delayMs)
      // One ms for the fraction, one for a second try, and what the host adds at the last ring.
      expect(overdueMs).toBeGreaterThanOrEqual(0)
      expect(overdueMs).toBeLessThanOrEqual(2 + lateMs)
    },
  )
})

describe('systemClock', () => {
  it('tells the time of the runtime', () => {
    const [beforeMs, wallBeforeMs] = [performance.now(), Date.now()]
    const [monotonicMs, wallMs] = [systemClock.monotonicMs(), systemClock.wallMs()]
    expect(monotonicMs).toBeGreaterThanOrEqual(beforeMs)
    expect(monotonicMs).toBeLessThanOrEqual(performance.now())
    expect(wallMs).toBeGreaterThanOrEqual(wallBeforeMs)
    expect(wallMs).toBeLessThanOrEqual(Date.now())
  })

  it('fires by real timers, never early, and not from within the call', async () => {
    const startedMs = systemClock.monotonicMs()
    let returned = false
    await new Promise<void>((resolve) => {
      systemClock.setTimer(5, () => {
        expect(returned).toBe(true)
        resolve()
      })
      returned = true
    })
    expect(systemClock.monotonicMs() - startedMs).toBeGreaterThanOrEqual(5)
  })

  it('follows fake timers that are installed later, over months', () => {
    vi.useFakeTimers()
    const fire = vi.fn()
    const hundredDaysMs = 100 * 86_400_000
    systemClock.setTimer(hundredDaysMs, fire)
    vi.advanceTimersByTime(hundredDaysMs - 1)
    expect(fire).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(fire).toHaveBeenCalledOnce()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('cancels real timers', () => {
    vi.useFakeTimers()
    const cancel = systemClock.setTimer(5, () => expect.unreachable())
    expect(vi.getTimerCount()).toBe(1)
    cancel()
    expect(vi.getTimerCount()).toBe(0)
  })
})
