import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { property } from '../../../test/property.js'
import { manualClock } from '../../testing/index.js'
import { sleep } from './sleep.js'

const listeners = (signal: AbortSignal) => getEventListeners(signal, 'abort').length

/** What became of a promise so far, without waiting for it. */
function watch(promise: Promise<unknown>): { state: 'pending' | 'resolved' | 'rejected'; reason?: unknown } {
  const seen: ReturnType<typeof watch> = { state: 'pending' }
  promise.then(
    () => {
      seen.state = 'resolved'
    },
    (reason) => {
      seen.state = 'rejected'
      seen.reason = reason
    },
  )
  return seen
}

const microtasks = async () => {
  for (let index = 0; index < 5; index += 1) await undefined
}

describe('sleep', () => {
  it('wakes when its time has come, not before', async () => {
    const clock = manualClock()
    const seen = watch(sleep('2s', { clock }))
    await clock.advance(1999)
    expect(seen.state).toBe('pending')
    await clock.advance(1)
    expect(seen.state).toBe('resolved')
    expect(clock.pendingTimers).toBe(0)
  })

  it('gives nothing back', async () => {
    await expect(sleep(0)).resolves.toBeUndefined()
  })

  it('waits for a later turn even when there is no time to wait', async () => {
    const clock = manualClock()
    const seen = watch(sleep(0, { clock }))
    await microtasks()
    expect(seen.state).toBe('pending')
    expect(clock.pendingTimers).toBe(1)
    await clock.advance(0)
    expect(seen.state).toBe('resolved')
  })

  it('sleeps by the real clock where none is given', async () => {
    const startedMs = performance.now()
    await sleep(4)
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(4)
  })

  it('ends at once when called off, with the reason, and leaves nothing behind', async () => {
    const clock = manualClock()
    const controller = new AbortController()
    const seen = watch(sleep('1h', { clock, signal: controller.signal }))
    expect([listeners(controller.signal), clock.pendingTimers]).toEqual([1, 1])
    const reason = new Error('enough')
    controller.abort(reason)
    expect([listeners(controller.signal), clock.pendingTimers]).toEqual([0, 0])
    await microtasks()
    expect(seen).toEqual({ state: 'rejected', reason })
  })

  it('leaves no listener behind when it wakes', async () => {
    const clock = manualClock()
    const { signal } = new AbortController()
    const sleeps = Array.from({ length: 10 }, () => sleep(5, { clock, signal }))
    expect(listeners(signal)).toBe(1)
    await clock.advance(5)
    await Promise.all(sleeps)
    expect([listeners(signal), clock.pendingTimers]).toEqual([0, 0])
  })

  it('sets neither timer nor listener when called off before', async () => {
    const clock = manualClock()
    const signal = AbortSignal.abort('over')
    await expect(sleep(5, { clock, signal })).rejects.toBe('over')
    expect([listeners(signal), clock.pendingTimers]).toEqual([0, 0])
  })

  it.each<[string, unknown]>([
    ['text', 'over'],
    ['null', null],
    ['zero', 0],
    ['false', false],
  ])('hands on a reason that is %s', async (_, reason) => {
    const controller = new AbortController()
    const waiting = sleep('1h', { signal: controller.signal })
    controller.abort(reason)
    await expect(waiting).rejects.toBe(reason)
  })

  it('rejects with an AbortError where the reason was left out, and with undefined for a foreign signal without one', async () => {
    const controller = new AbortController()
    const waiting = sleep('1h', { signal: controller.signal })
    controller.abort()
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' })
    const foreign = { aborted: true, addEventListener() {}, removeEventListener() {} } as unknown as AbortSignal
    await expect(sleep(5, { signal: foreign })).rejects.toBeUndefined()
  })

  it('is not disturbed by an abort after it woke', async () => {
    const clock = manualClock()
    const controller = new AbortController()
    const seen = watch(sleep(5, { clock, signal: controller.signal }))
    await clock.advance(5)
    controller.abort(new Error('late'))
    await microtasks()
    expect(seen).toEqual({ state: 'resolved' })
  })

  it('rejects, and does not throw, for what is not a duration; no timer is set', async () => {
    const clock = manualClock()
    for (const bad of [Number.NaN, -1, '2 weeks', '0.5ms', undefined]) {
      const waiting = sleep(bad as number, { clock })
      await expect(waiting).rejects.toMatchObject({ code: 'DURATION_INVALID' })
    }
    expect(clock.pendingTimers).toBe(0)
  })

  it('rejects for what is no signal, before a timer is set', async () => {
    const clock = manualClock()
    await expect(sleep(5, { clock, signal: {} as never })).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    expect(clock.pendingTimers).toBe(0)
  })

  it('waits for what a clock or jitter gives: fractions of a ms', async () => {
    const clock = manualClock()
    const seen = watch(sleep(0.5, { clock }))
    await clock.advance(0.25)
    expect(seen).toEqual({ state: 'pending' })
    await clock.advance(0.25)
    expect(seen).toEqual({ state: 'resolved' })
  })

  it.each([
    [{}, true],
    [{ keepAlive: true }, true],
    [{ keepAlive: false }, false],
  ])('passes on whether it holds the process: %j', (options, keepAlive) => {
    const clock = { ...manualClock(), setTimer: vi.fn(() => () => undefined) }
    void sleep(5, { clock, ...options })
    expect(clock.setTimer).toHaveBeenCalledWith(5, expect.any(Function), { keepAlive })
  })

  property(
    'wakes at its time or ends at the abort, whichever is first, and leaves nothing behind',
    [fc.nat(50), fc.nat(50), fc.boolean()],
    async (delayMs, abortAtMs, sleepsFirst) => {
      const clock = manualClock()
      const controller = new AbortController()
      const start = () => sleep(delayMs, { clock, signal: controller.signal })
      const callOff = () => clock.setTimer(abortAtMs, () => controller.abort('over'))
      // Of two timers at one instant the one set first fires first.
      let waiting: Promise<void>
      if (sleepsFirst) {
        waiting = start()
        callOff()
      } else {
        callOff()
        waiting = start()
      }
      const settledAtMs = waiting.then(
        () => clock.monotonicMs(),
        () => clock.monotonicMs(),
      )
      const seen = watch(waiting)
      await clock.advance(50)
      const wakes = delayMs < abortAtMs || (delayMs === abortAtMs && sleepsFirst)
      expect(seen).toEqual(wakes ? { state: 'resolved' } : { state: 'rejected', reason: 'over' })
      expect(await settledAtMs).toBe(Math.min(delayMs, abortAtMs))
      expect([listeners(controller.signal), clock.pendingTimers]).toEqual([0, 0])
    },
  )
})
