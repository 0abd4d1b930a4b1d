import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { property } from '../../../test/property.js'
import { manualClock } from '../../testing/index.js'
import { eventLoopTurn } from './clock.js'
import { inTime, isPromiseLike, sleep, waitFor, whenAborted } from './wait.js'

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

describe('waitFor', () => {
  it('gives what settles it, either way', async () => {
    await expect(waitFor({}, (resolve) => void resolve('value'))).resolves.toBe('value')
    const error = new Error('no')
    await expect(waitFor({}, (_, reject) => void reject(error))).rejects.toBe(error)
  })

  it('ends at its limit, with the error asked for, and not before', async () => {
    const clock = manualClock()
    const reason = new Error('too long')
    const seen = watch(waitFor({ clock, limitMs: 20, expired: () => reason }, () => undefined))
    await clock.advance(19)
    expect(seen.state).toBe('pending')
    await clock.advance(1)
    expect(seen).toEqual({ state: 'rejected', reason })
    expect(clock.pendingTimers).toBe(0)
  })

  it('has an error of its own for a limit, takes one below 0 for 0, and refuses one that is no number', async () => {
    const clock = manualClock()
    const seen = watch(waitFor({ clock, limitMs: -5 }, () => undefined))
    await clock.advance(0)
    expect(seen).toMatchObject({ state: 'rejected', reason: { code: 'DEADLINE_EXCEEDED' } })
    const { signal } = new AbortController()
    const start = vi.fn()
    await expect(waitFor({ clock, limitMs: Number.NaN, signal }, start)).rejects.toMatchObject({
      code: 'ARGUMENT_INVALID',
    })
    expect([listeners(signal), start.mock.calls.length]).toEqual([0, 0])
  })

  it('ends when the signal aborts, and leaves neither timer nor listener', async () => {
    const clock = manualClock()
    const controller = new AbortController()
    const { signal } = controller
    const seen = watch(waitFor({ clock, limitMs: 20, signal }, () => undefined))
    expect([listeners(signal), clock.pendingTimers]).toEqual([1, 1])
    controller.abort('over')
    expect([listeners(signal), clock.pendingTimers]).toEqual([0, 0])
    await microtasks()
    expect(seen).toEqual({ state: 'rejected', reason: 'over' })
  })

  it('starts nothing where the signal has aborted already', async () => {
    const clock = manualClock()
    const start = vi.fn()
    const signal = AbortSignal.abort('before')
    await expect(waitFor({ clock, limitMs: 20, signal }, start)).rejects.toBe('before')
    expect([start.mock.calls.length, listeners(signal), clock.pendingTimers]).toEqual([0, 0, 0])
  })

  it.each([[{}], [null], ['signal']])('refuses %j in place of a signal, and leaves nothing behind', async (signal) => {
    const clock = manualClock()
    const start = vi.fn()
    const waiting = waitFor({ clock, limitMs: 20, signal: signal as never }, start)
    await expect(waiting).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    expect([start.mock.calls.length, clock.pendingTimers]).toEqual([0, 0])
  })

  it('rejects with what starting it threw', async () => {
    const clock = manualClock()
    const { signal } = new AbortController()
    const error = new Error('at once')
    const start = () => {
      throw error
    }
    await expect(waitFor({ clock, limitMs: 20, signal }, start)).rejects.toBe(error)
    expect([listeners(signal), clock.pendingTimers]).toEqual([0, 0])
  })

  it.each(['resolved', 'rejected', 'limit', 'signal', 'at once'] as const)(
    'cleans up exactly once, also when it is ended again: %s',
    async (way) => {
      const clock = manualClock()
      const controller = new AbortController()
      const cleanUp = vi.fn()
      let settled: boolean[] = []
      let end = (): boolean => true
      const waiting = waitFor<string>({ clock, limitMs: 20, signal: controller.signal }, (resolve, reject) => {
        end = () => (way === 'rejected' ? reject('no') : resolve('yes'))
        if (way === 'at once') settled = [end(), end()]
        return cleanUp
      })
      const seen = watch(waiting)
      if (way === 'limit') await clock.advance(20)
      else if (way === 'signal') controller.abort('over')
      else if (way !== 'at once') settled = [end(), end()]
      expect(cleanUp).toHaveBeenCalledOnce()
      expect([listeners(controller.signal), clock.pendingTimers]).toEqual([0, 0])
      expect(settled).toEqual(way === 'limit' || way === 'signal' ? [] : [true, false])
      expect(end()).toBe(false)
      controller.abort('again')
      await clock.advance(50)
      expect(cleanUp).toHaveBeenCalledOnce()
      expect(seen.state).toBe(way === 'resolved' || way === 'at once' ? 'resolved' : 'rejected')
    },
  )
})

describe('inTime', () => {
  it('gives what the work gives, and takes timer and listener away', async () => {
    const clock = manualClock()
    const { signal } = new AbortController()
    await expect(inTime({ clock, limitMs: 20, signal }, Promise.resolve(7))).resolves.toBe(7)
    await expect(inTime({ clock, limitMs: 20, signal }, Promise.reject('no'))).rejects.toBe('no')
    expect([listeners(signal), clock.pendingTimers]).toEqual([0, 0])
  })

  it('drops a late failure where the signal has aborted already, and hands a late value over', async () => {
    const signal = AbortSignal.abort('before')
    const late = vi.fn()
    await expect(inTime({ signal }, Promise.reject(new Error('late')))).rejects.toBe('before')
    await expect(inTime({ signal }, Promise.resolve(7), late)).rejects.toBe('before')
    // An unhandled rejection would be told in a later turn.
    await eventLoopTurn()
    expect(late.mock.calls).toEqual([[7]])
  })

  it('is the work itself where nothing limits it', async () => {
    const work = Promise.resolve(7)
    expect(inTime({}, work)).toBe(work)
    expect(inTime({ limitMs: undefined, signal: undefined }, work)).toBe(work)
  })

  it('hands a late value to who asked for it, and drops a late failure', async () => {
    const clock = manualClock()
    const controller = new AbortController()
    const late = vi.fn()
    let bring = (_: string): void => undefined
    let fail = (_: unknown): void => undefined
    const value = new Promise<string>((resolve) => {
      bring = resolve
    })
    const failure = new Promise<string>((_, reject) => {
      fail = reject
    })
    const timedOut = watch(inTime({ clock, limitMs: 5 }, value, late))
    const dropped = watch(inTime({ clock, limitMs: 5 }, value))
    const calledOff = watch(inTime({ signal: controller.signal }, failure, late))
    await clock.advance(5)
    controller.abort('over')
    bring('late')
    fail(new Error('late'))
    await microtasks()
    expect(late.mock.calls).toEqual([['late']])
    expect(timedOut).toMatchObject({ state: 'rejected', reason: { code: 'DEADLINE_EXCEEDED' } })
    expect(dropped.state).toBe('rejected')
    expect(calledOff).toEqual({ state: 'rejected', reason: 'over' })
  })

  it('does not hand over a value that came in time', async () => {
    const late = vi.fn()
    await inTime({ clock: manualClock(), limitMs: 5 }, Promise.resolve(1), late)
    expect(late).not.toHaveBeenCalled()
  })
})

describe('whenAborted', () => {
  it('puts one listener on a signal, however many wait, and none when all have left', () => {
    const { signal } = new AbortController()
    const leave = Array.from({ length: 50 }, () => whenAborted(signal, () => undefined))
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    for (const go of leave) go()
    for (const go of leave) go()
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  })

  it('tells all who wait, in their order, once, and not those who left', () => {
    const controller = new AbortController()
    const heard: string[] = []
    const hear = (): void => void heard.push('twice')
    whenAborted(controller.signal, () => heard.push('first'))
    const leave = whenAborted(controller.signal, () => heard.push('gone'))
    whenAborted(controller.signal, hear)
    whenAborted(controller.signal, hear)
    leave()
    controller.abort()
    controller.abort()
    expect(heard).toEqual(['first', 'twice', 'twice'])
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
  })

  it('does not tell one who leaves while the others are told', () => {
    const controller = new AbortController()
    const heard: string[] = []
    let leave = (): void => undefined
    whenAborted(controller.signal, () => leave())
    leave = whenAborted(controller.signal, () => heard.push('gone'))
    controller.abort()
    expect(heard).toEqual([])
  })
})

const withThen = (value: object, then: unknown): object => Object.defineProperty(value, 'then', { value: then })
const work = (): void => undefined

describe('isPromiseLike', () => {
  it.each([
    ['a promise', Promise.resolve(), true],
    ['an object that can be waited for', withThen({}, work), true],
    ['a function that can be waited for', withThen(() => undefined, work), true],
    ['an object whose then is none', withThen({}, 1), false],
    ['an object', {}, false],
    ['a text', 'then', false],
    ['null', null, false],
    ['undefined', undefined, false],
  ])('%s', (_, value, waited) => expect(isPromiseLike<unknown>(value)).toBe(waited))
})
