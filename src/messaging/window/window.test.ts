import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { property } from '../../../test/property.js'
import type { StoredKey } from '../../identity/index.js'
import { deadlineAfter, eventLoopTurn, RepriseError, remainingMs } from '../../kernel/index.js'
import { memory } from '../../stores/memory/index.js'
import { type EventChannel, windowDropped, windowUnchecked, windowUnremembered } from '../../telemetry/index.js'
import { manualClock } from '../../testing/index.js'
import type { DedupeWindow, DedupeWindowOptions } from './contract.js'
import type { Mark, SeenStore, WindowStore } from './seen-store.js'
import { dedupeWindow } from './window.js'

const clock = manualClock()
const bounds = { within: '10m', most: 100, clock } as const
const isDuplicate = { accepted: false, because: 'duplicate' }

/** A sink that is open until the test decides. */
function openSink() {
  let settle: { accept(value: string): void; refuse(error: unknown): void } | undefined
  const calls: unknown[] = []
  const sink = (call: unknown) =>
    new Promise<string>((accept, refuse) => {
      calls.push(call)
      settle = { accept, refuse }
    })
  return {
    sink,
    calls,
    accept: (value = 'done') => settle?.accept(value),
    refuse: (error: unknown) => settle?.refuse(error),
  }
}

/** What is told on a channel from now on. */
async function told<Message>(channel: EventChannel<Message>): Promise<Message[]> {
  const { subscribe, unsubscribe } = await import('node:diagnostics_channel')
  const messages: Message[] = []
  const listener = (message: unknown): void => void messages.push(message as Message)
  subscribe(channel.name, listener)
  onTestFinished(() => void unsubscribe(channel.name, listener))
  return messages
}

/** A store in memory whose answers can be held back or refused, and whose marks are kept. */
function doubtfulStore() {
  const { seen: real } = memory({ name: 'shop', clock })
  const state: { seen?: (() => Promise<void>) | undefined; mark?: (() => Promise<void>) | undefined } = {}
  const writes: (readonly Mark[])[] = []
  const questions: (readonly StoredKey[])[] = []
  const seen: SeenStore = {
    seen: async (window, ids, limits) => {
      questions.push(ids)
      await state.seen?.()
      return real.seen(window, ids, limits)
    },
    mark: async (window, marks, limits) => {
      await state.mark?.()
      writes.push(marks)
      await real.mark(window, marks, limits)
    },
    forget: (window, mostRows, limits) => real.forget(window, mostRows, limits),
  }
  const store: WindowStore = { name: 'shop', seen }
  return { store, state, writes, questions }
}

describe('a window', () => {
  it('lets a message through once, and drops what has its id', async () => {
    const events = await told(windowDropped)
    const window = dedupeWindow({ ...bounds, name: 'orders' })
    expect(await window.pass('a', () => 5)).toEqual({ accepted: true, value: 5, remembered: 'process' })
    expect(await window.pass('a', () => expect.unreachable())).toEqual(isDuplicate)
    expect(await window.pass('b', () => 6)).toMatchObject({ accepted: true, value: 6 })
    expect(window.counts).toEqual({
      accepted: 2,
      duplicates: 1,
      failed: 0,
      evictedByAge: 0,
      evictedByCount: 0,
      unchecked: 0,
      unremembered: 0,
      held: 0,
    })
    expect(events).toEqual([{ window: 'orders', id: expect.stringMatching(/^sha256:/), knownBy: 'process' }])
  })

  it('remembers nothing of what the sink refused, whether it threw or rejected', async () => {
    const window = dedupeWindow(bounds)
    const error = new Error('full')
    const throwing = () => {
      throw error
    }
    await expect(window.pass('a', throwing)).rejects.toBe(error)
    await expect(window.pass('a', () => Promise.reject(error))).rejects.toBe(error)
    expect(await window.pass('a', () => 'now')).toMatchObject({ accepted: true, value: 'now' })
    expect(window.counts).toMatchObject({ failed: 2, accepted: 1, duplicates: 0 })
  })

  it('marks only after the sink has accepted: an id in flight is neither remembered nor in the store', async () => {
    const { store, writes } = doubtfulStore()
    const window = dedupeWindow({ ...bounds, name: 'w', store })
    const { sink, accept, calls } = openSink()
    const passing = window.pass('a', sink)
    await expect.poll(() => calls.length).toBe(1)
    expect([writes.length, window.counts.accepted]).toEqual([0, 0])
    accept()
    expect(await passing).toMatchObject({ accepted: true, remembered: 'store' })
    expect(writes.map((marks) => marks.length)).toEqual([1])
  })

  it('forgets by age, which a duplicate does not extend and the wall clock does not move', async () => {
    const window = dedupeWindow({ ...bounds, within: '10s' })
    await window.pass('a', () => 1)
    await clock.advance('9999ms')
    expect(await window.pass('a', () => 2)).toEqual(isDuplicate)
    clock.setWallMs(clock.wallMs() + 86_400_000)
    expect(await window.pass('a', () => 2)).toEqual(isDuplicate)
    clock.setWallMs(clock.wallMs() - 2 * 86_400_000)
    await clock.advance('1ms')
    expect(await window.pass('a', () => 3)).toMatchObject({ accepted: true, value: 3 })
    expect(window.counts).toMatchObject({ evictedByAge: 1, evictedByCount: 0 })
  })

  it('forgets the oldest by count, and that one alone', async () => {
    const window = dedupeWindow({ ...bounds, most: 2 })
    for (const id of ['a', 'b', 'c']) await window.pass(id, () => id)
    expect(await window.pass('b', () => 1)).toEqual(isDuplicate)
    expect(await window.pass('c', () => 1)).toEqual(isDuplicate)
    expect(await window.pass('a', () => 1)).toMatchObject({ accepted: true })
    expect(window.counts).toMatchObject({ evictedByAge: 0, evictedByCount: 2 })
    await clock.advance('10m')
    expect(window.counts).toMatchObject({ evictedByAge: 2, evictedByCount: 2 })
  })

  it('tells tuples apart whatever is in them, and takes a text for the tuple of it', async () => {
    const window = dedupeWindow(bounds)
    const ids = [['a', 'b'], ['ab'], ['a:b'], ['1:a1:b'], ['a', 'b', 'c'], ['b', 'a']] as const
    for (const id of ids) expect(await window.pass(id, () => 1)).toMatchObject({ accepted: true })
    expect(await window.pass('ab', () => 1)).toEqual(isDuplicate)
    expect(await window.pass(['a', 'b'], () => 1)).toEqual(isDuplicate)
  })

  it('is refused where it makes no sense', async () => {
    const refused = (options: object, option: string) =>
      expect(() => dedupeWindow({ ...bounds, ...options } as DedupeWindowOptions)).toThrow(
        expect.objectContaining({ code: 'ARGUMENT_INVALID', details: expect.objectContaining({ option }) }),
      )
    refused({ most: 0 }, 'most')
    refused({ most: 1.5 }, 'most')
    refused({ mostHeld: -1 }, 'mostHeld')
    refused({ storeAway: 'maybe' }, 'storeAway')
    refused({ name: '' }, 'name')
    refused({ name: 'a\0b' }, 'name')
    refused({ store: memory({ name: 'shop' }) }, 'name')
    refused({ name: 'w', store: {} }, 'store')
    expect(() => dedupeWindow({ ...bounds, within: 0 })).toThrow(
      expect.objectContaining({ code: 'DURATION_INVALID', details: expect.objectContaining({ option: 'within' }) }),
    )
    const window = dedupeWindow(bounds)
    for (const id of ['', [], ['a', ''], undefined, 5, '\ud800', 'x'.repeat(4_097), Array(17).fill('x')]) {
      await expect(window.pass(id as string, () => 1)).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    }
    await expect(window.pass('a', 5 as never)).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    await expect(window.pass('a', () => 1, { deadline: {} as never })).rejects.toMatchObject({
      code: 'ARGUMENT_INVALID',
    })
    expect(window.counts).toMatchObject({ accepted: 0, failed: 0 })
  })
})

describe('duplicates of an id in flight', () => {
  it('are held, and dropped when it is accepted', async () => {
    const events = await told(windowDropped)
    const window = dedupeWindow(bounds)
    const { sink, accept } = openSink()
    const first = window.pass('a', sink)
    const others = [1, 2, 3].map(() => window.pass('a', () => expect.unreachable()))
    expect(window.counts).toMatchObject({ held: 3, duplicates: 0 })
    expect(await window.pass('b', () => 1)).toMatchObject({ accepted: true })
    accept()
    expect(await first).toMatchObject({ accepted: true, value: 'done' })
    expect(await Promise.all(others)).toEqual([isDuplicate, isDuplicate, isDuplicate])
    expect(window.counts).toMatchObject({ held: 0, duplicates: 3, accepted: 2 })
    expect(events.map(({ knownBy }) => knownBy)).toEqual(['leader', 'leader', 'leader'])
  })

  it('go to the sink one at a time, in their order, until one is accepted', async () => {
    const window = dedupeWindow(bounds)
    const log: string[] = []
    const sinkOf = (name: string, accepts: boolean) => async () => {
      log.push(`${name} begins`)
      await eventLoopTurn()
      log.push(`${name} ends`)
      if (!accepts) throw new Error(name)
      return name
    }
    const results = await Promise.allSettled([
      window.pass('a', sinkOf('one', false)),
      window.pass('a', sinkOf('two', false)),
      window.pass('a', sinkOf('three', true)),
      window.pass('a', sinkOf('four', true)),
    ])
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled', 'fulfilled'])
    expect(log).toEqual(['one begins', 'one ends', 'two begins', 'two ends', 'three begins', 'three ends'])
    expect(window.counts).toMatchObject({ failed: 2, accepted: 1, duplicates: 1, held: 0 })
  })

  it('end by their own signal and deadline, and leave the others alone', async () => {
    const window = dedupeWindow(bounds)
    const { sink, accept } = openSink()
    const first = window.pass('a', sink, { deadline: '5m' })
    const controller = new AbortController()
    const aborted = window.pass('a', () => 1, { signal: controller.signal })
    const late = window.pass('a', () => 1, { deadline: deadlineAfter('3s', clock) })
    const patient = window.pass('a', () => 1, { deadline: '1m' })
    controller.abort(new Error('enough'))
    await expect(aborted).rejects.toThrow('enough')
    const lateEnd = expect(late).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    await clock.advance('3s')
    await lateEnd
    expect(window.counts.held).toBe(1)
    accept()
    expect([await first, await patient]).toEqual([expect.objectContaining({ accepted: true }), isDuplicate])
    expect(clock.pendingTimers).toBe(0)
  })

  it('are refused when too many wait, for whichever ids', async () => {
    const window = dedupeWindow({ ...bounds, mostHeld: 2 })
    const { sink, accept } = openSink()
    const other = openSink()
    const leaders = [window.pass('a', sink), window.pass('b', other.sink)]
    const held = [window.pass('a', () => 1), window.pass('b', () => 1)]
    await expect(window.pass('a', () => 1)).rejects.toMatchObject({ code: 'QUEUE_FULL', details: { waiters: 2 } })
    expect(await window.pass('c', () => 1)).toMatchObject({ accepted: true })
    accept()
    other.accept()
    await Promise.all([...leaders, ...held])
    expect(window.counts).toMatchObject({ held: 0, duplicates: 2, accepted: 3 })
  })

  it('do not reach the sink when the time is over before it', async () => {
    const window = dedupeWindow(bounds)
    await expect(window.pass('a', () => 1, { deadline: 0 })).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    await expect(window.pass('a', () => 1, { signal: AbortSignal.abort(new Error('no')) })).rejects.toThrow('no')
    expect(window.counts).toMatchObject({ accepted: 0, failed: 0 })
  })

  it('see the deadline and the signal that the sink gets', async () => {
    const window = dedupeWindow(bounds)
    const { signal } = new AbortController()
    const deadline = deadlineAfter('3s', clock)
    expect(await window.pass('a', (call) => call, { deadline, signal })).toMatchObject({ value: { deadline, signal } })
  })
})

describe('an id from inside its own sink', () => {
  it('is refused at once, however deep, by whichever window of the store', async () => {
    const store = memory({ name: 'shop', clock })
    const windows = [dedupeWindow({ ...bounds, name: 'w', store }), dedupeWindow({ ...bounds, name: 'w', store })]
    const [window, twin] = windows as [DedupeWindow, DedupeWindow]
    const refused = { code: 'WINDOW_REENTERED' }
    for (const inner of windows) {
      await expect(window.pass('a', () => inner.pass('a', () => 1))).rejects.toMatchObject(refused)
      await expect(window.pass('a', () => twin.pass('b', () => inner.pass('a', () => 1)))).rejects.toMatchObject(
        refused,
      )
    }
    await expect(dedupeWindow(bounds).pass('a', () => window.pass('a', () => 1))).resolves.toMatchObject({
      accepted: true,
    })
    // Another id is welcome there, and so is this one when the sink has ended: it waits for nothing.
    let later: Promise<unknown> | undefined
    const other = await window.pass('c', async () => {
      later = eventLoopTurn().then(() => eventLoopTurn().then(() => window.pass('c', () => 1)))
      return window.pass('d', () => 1)
    })
    expect(other).toMatchObject({ accepted: true, value: { accepted: true } })
    expect(await later).toEqual(isDuplicate)
    expect(clock.pendingTimers).toBe(0)
  })
})

describe('two windows of one name and store', () => {
  it('hold duplicates of what is with the sink of either', async () => {
    const { store, questions } = doubtfulStore()
    const [one, two] = [dedupeWindow({ ...bounds, name: 'w', store }), dedupeWindow({ ...bounds, name: 'w', store })]
    const { sink, accept, calls } = openSink()
    const first = one.pass('a', sink)
    await expect.poll(() => calls.length).toBe(1)
    const second = two.pass('a', () => expect.unreachable())
    expect([one.counts.held, two.counts.held]).toEqual([0, 1])
    // Neither another name nor another id is held by it.
    const refunds = dedupeWindow({ ...bounds, name: 'refunds', store })
    expect(await refunds.pass('a', () => 1)).toMatchObject({ accepted: true })
    expect(await two.pass('b', () => 1)).toMatchObject({ accepted: true })
    accept()
    expect([await first, await second]).toEqual([expect.objectContaining({ accepted: true }), isDuplicate])
    expect([one.counts.accepted, two.counts.duplicates, questions.length]).toEqual([1, 1, 3])
  })

  it('hold what was accepted until its mark is in the store', async () => {
    const { store, state } = doubtfulStore()
    const [one, two] = [dedupeWindow({ ...bounds, name: 'w', store }), dedupeWindow({ ...bounds, name: 'w', store })]
    let release: () => void = () => undefined
    let marking = 0
    state.mark = () => {
      marking += 1
      return new Promise<void>((resolve) => (release = resolve))
    }
    const first = one.pass('a', () => 1)
    await expect.poll(() => marking).toBe(1)
    // The one that has accepted it knows; the other one waits.
    expect(await one.pass('a', () => expect.unreachable())).toEqual(isDuplicate)
    const second = two.pass('a', () => expect.unreachable())
    expect(two.counts).toMatchObject({ held: 1, duplicates: 0 })
    release()
    expect([await first, await second]).toEqual([expect.objectContaining({ remembered: 'store' }), isDuplicate])
  })

  it('let one of those who wait be next where the sink refused', async () => {
    const { store } = doubtfulStore()
    const [one, two] = [dedupeWindow({ ...bounds, name: 'w', store }), dedupeWindow({ ...bounds, name: 'w', store })]
    const { sink, refuse, calls } = openSink()
    const first = one.pass('a', sink)
    await expect.poll(() => calls.length).toBe(1)
    const second = two.pass('a', () => 'by the other')
    refuse(new Error('full'))
    await expect(first).rejects.toThrow('full')
    expect(await second).toMatchObject({ accepted: true, value: 'by the other' })
  })
})

describe('purge', () => {
  it('removes what is forgotten, and nothing that is remembered', async () => {
    const store = memory({ name: 'shop', clock })
    const window = dedupeWindow({ ...bounds, name: 'w', store })
    for (const id of ['a', 'b', 'c']) await window.pass(id, () => 1)
    expect(await window.purge()).toBe(0)
    expect(await dedupeWindow({ ...bounds, most: 2, name: 'w', store }).purge()).toBe(1)
    const after = dedupeWindow({ ...bounds, name: 'w', store })
    expect(await after.pass('b', () => expect.unreachable())).toEqual(isDuplicate)
    expect(await after.pass('a', () => 1)).toMatchObject({ accepted: true })
    await clock.advance('1ms')
    expect(await dedupeWindow({ ...bounds, within: 1, name: 'w', store }).purge()).toBe(3)
    expect(await after.purge()).toBe(0)
    expect(await dedupeWindow(bounds).purge()).toBe(0)
    await expect(store.transact(() => after.purge())).rejects.toMatchObject({ code: 'TRANSACTION_NESTED' })
  })

  it('goes on while a commit is full, and ends by its limit', async () => {
    const given = [500, 500, 3]
    const { store } = doubtfulStore()
    const seen = { ...store.seen, forget: async () => given.shift() ?? 0 }
    expect(await dedupeWindow({ ...bounds, name: 'w', store: { ...store, seen } }).purge()).toBe(1_003)
    const silent = { ...store.seen, forget: () => new Promise<never>(() => undefined) }
    const purging = dedupeWindow({ ...bounds, name: 'w', store: { ...store, seen: silent } }).purge()
    const ended = expect(purging).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    await clock.advance('2s')
    await ended
  })
})

describe('a store that never answers', () => {
  const never = () => new Promise<never>(() => undefined)

  it('is given up after its limit, or at the deadline or signal of the call', async () => {
    const { store, state } = doubtfulStore()
    state.seen = never
    const window = dedupeWindow({ ...bounds, name: 'w', store })
    const away = expect(window.pass('a', () => expect.unreachable())).rejects.toMatchObject({
      code: 'WINDOW_STORE_AWAY',
    })
    const late = expect(window.pass('b', () => expect.unreachable(), { deadline: '1s' })).rejects.toMatchObject({
      code: 'DEADLINE_EXCEEDED',
    })
    const controller = new AbortController()
    const { signal } = controller
    const aborted = expect(window.pass('c', () => expect.unreachable(), { signal })).rejects.toThrow('enough')
    controller.abort(new Error('enough'))
    await aborted
    await clock.advance('1s')
    await late
    await clock.advance('1s')
    await away
    expect(clock.pendingTimers).toBe(0)
  })

  it('costs a message one limit, under pass, and not one for the question and one for the mark', async () => {
    const { store, state } = doubtfulStore()
    state.seen = never
    state.mark = never
    const window = dedupeWindow({ ...bounds, name: 'w', store, storeAway: 'pass' })
    const sinceMs = clock.monotonicMs()
    let endedMs = 0
    const passing = window.pass('a', () => 1).finally(() => (endedMs = clock.monotonicMs()))
    for (let step = 0; step < 30 && endedMs === 0; step += 1) await clock.advance('200ms')
    expect(await passing).toMatchObject({ accepted: true, remembered: 'process' })
    expect(endedMs - sinceMs).toBeLessThanOrEqual(2_200)
    expect(window.counts).toMatchObject({ unchecked: 1, unremembered: 1 })
    // Each of those that come while the writer waits has its own limit, and not that of the writer too.
    const laterMs = clock.monotonicMs()
    const next = window.pass('b', () => 1).finally(() => (endedMs = clock.monotonicMs()))
    for (let step = 0; step < 30 && endedMs <= laterMs; step += 1) await clock.advance('200ms')
    await next
    expect(endedMs - laterMs).toBeLessThanOrEqual(2_200)
    // It answers again, and gets what it does not know.
    state.seen = undefined
    state.mark = undefined
    await clock.advance('2s')
    expect(await window.pass('c', () => 1)).toMatchObject({ remembered: 'store' })
    const after = dedupeWindow({ ...bounds, name: 'w', store })
    for (const id of ['a', 'b', 'c']) expect(await after.pass(id, () => expect.unreachable())).toEqual(isDuplicate)
  })

  it('leaves a mark that is given up to the next write', async () => {
    const { store, state, writes } = doubtfulStore()
    const window = dedupeWindow({ ...bounds, name: 'w', store })
    state.mark = never
    const passing = window.pass('a', () => 1)
    await expect.poll(() => window.counts.accepted).toBe(1)
    await clock.advance('2s')
    expect(await passing).toMatchObject({ remembered: 'process' })
    state.mark = undefined
    expect(await window.pass('b', () => 1)).toMatchObject({ remembered: 'store' })
    expect(writes.flat()).toHaveLength(2)
  })

  it('lets a message pass within its deadline, though that is shorter than the limit, and leaves the sink time', async () => {
    const { store, state } = doubtfulStore()
    state.seen = never
    const window = dedupeWindow({ ...bounds, name: 'w', store, storeAway: 'pass' })
    const deadline = deadlineAfter('1s', clock)
    let leftMs = 0
    const passing = window.pass('a', () => (leftMs = remainingMs(deadline, clock)), { deadline })
    await clock.advance('500ms')
    expect(await passing).toMatchObject({ accepted: true, remembered: 'store' })
    expect(leftMs).toBe(500)
    expect(window.counts).toMatchObject({ unchecked: 1, accepted: 1 })
  })
})

describe('with a store', () => {
  it('remembers over a restart; without one a cold start lets everything through once', async () => {
    const store = memory({ name: 'shop', clock })
    const before = dedupeWindow({ ...bounds, name: 'w', store })
    expect(await before.pass('a', () => 1)).toMatchObject({ accepted: true, remembered: 'store' })
    const events = await told(windowDropped)
    const after = dedupeWindow({ ...bounds, name: 'w', store })
    expect(await after.pass('a', () => 2)).toEqual(isDuplicate)
    expect(events.map(({ knownBy }) => knownBy)).toEqual(['store'])
    expect(await dedupeWindow({ ...bounds, name: 'other', store }).pass('a', () => 3)).toMatchObject({ value: 3 })
    const cold = dedupeWindow(bounds)
    expect(await cold.pass('a', () => 4)).toMatchObject({ accepted: true })
    expect(await cold.pass('a', () => 5)).toEqual(isDuplicate)
  })

  it('asks only for what the process does not know', async () => {
    const { store, questions } = doubtfulStore()
    const window = dedupeWindow({ ...bounds, name: 'w', store })
    for (const id of ['a', 'a', 'b', 'a']) await window.pass(id, () => 1)
    expect(questions).toHaveLength(2)
  })

  it('writes marks that come while one is on its way in one commit, in their order', async () => {
    const { store, state, writes } = doubtfulStore()
    const window = dedupeWindow({ ...bounds, name: 'w', store })
    let release: () => void = () => undefined
    state.mark = () => new Promise<void>((resolve) => (release = resolve))
    const accepted: string[] = []
    const passes = ['a', 'b', 'c', 'd'].map((id) => window.pass(id, () => accepted.push(id)))
    await expect.poll(() => accepted.length).toBe(4)
    state.mark = undefined
    release()
    await Promise.all(passes)
    expect(writes.map((marks) => marks.length)).toEqual([1, 3])
    const again = dedupeWindow({ ...bounds, name: 'w', store })
    for (const id of ['a', 'b', 'c', 'd']) expect(await again.pass(id, () => 1)).toEqual(isDuplicate)
  })

  it('refuses before the sink where the store does not answer, and the repeat goes through', async () => {
    const events = await told(windowUnchecked)
    const { store, state } = doubtfulStore()
    const cause = new RepriseError('STORE_UNREACHABLE', 'away')
    state.seen = () => Promise.reject(cause)
    const window = dedupeWindow({ ...bounds, name: 'w', store })
    await expect(window.pass('a', () => expect.unreachable())).rejects.toMatchObject({
      code: 'WINDOW_STORE_AWAY',
      cause,
    })
    expect(window.counts).toMatchObject({ unchecked: 1, accepted: 0, failed: 0 })
    expect(events).toEqual([
      { window: 'w', domain: 'shop', id: expect.stringMatching(/^sha256:/), passed: false, error: cause },
    ])
    state.seen = undefined
    expect(await window.pass('a', () => 1)).toMatchObject({ accepted: true, remembered: 'store' })
  })

  it('passes where that is wanted: by what the process remembers, counted and told', async () => {
    const events = await told(windowUnchecked)
    const { store, state } = doubtfulStore()
    const old = dedupeWindow({ ...bounds, name: 'w', store })
    await old.pass('old', () => 1)
    state.seen = () => Promise.reject(new Error('away'))
    const window = dedupeWindow({ ...bounds, name: 'w', store, storeAway: 'pass' })
    expect(await window.pass('a', () => 1)).toMatchObject({ accepted: true, remembered: 'store' })
    expect(await window.pass('a', () => 2)).toEqual(isDuplicate)
    // What only the store knows comes through.
    expect(await window.pass('old', () => 3)).toMatchObject({ accepted: true })
    expect(window.counts).toMatchObject({ unchecked: 2, accepted: 2, duplicates: 1 })
    expect(events.map(({ passed }) => passed)).toEqual([true, true])
  })

  it.each(['MIGRATION_MISSING', 'PEPPER_MISMATCH', 'STORE_CLOSED'] as const)(
    'lets nothing pass where the set-up is wrong: %s',
    async (code) => {
      const { store, state } = doubtfulStore()
      state.seen = () => Promise.reject(new RepriseError(code, 'wrong'))
      const window = dedupeWindow({ ...bounds, name: 'w', store, storeAway: 'pass' })
      await expect(window.pass('a', () => expect.unreachable())).rejects.toMatchObject({ code })
    },
  )

  it('remembers in the process what could not be marked, says so, and marks it with the next', async () => {
    const events = await told(windowUnremembered)
    const { store, state, writes } = doubtfulStore()
    const window = dedupeWindow({ ...bounds, name: 'w', store })
    const error = new Error('read-only')
    state.mark = () => Promise.reject(error)
    expect(await window.pass('a', () => 1)).toEqual({ accepted: true, value: 1, remembered: 'process' })
    expect(await window.pass('a', () => 2)).toEqual(isDuplicate)
    expect(window.counts).toMatchObject({ accepted: 1, unremembered: 1 })
    expect(events).toEqual([{ window: 'w', domain: 'shop', id: expect.any(String), error }])
    state.mark = undefined
    await clock.advance('2s')
    expect(await window.pass('b', () => 1)).toMatchObject({ remembered: 'store' })
    // In the order of their acceptance, each with its own age.
    expect(writes.flat().map(({ agoMs }) => agoMs)).toEqual([2_000, 0])
    const again = dedupeWindow({ ...bounds, name: 'w', store })
    expect([await again.pass('a', () => 1), await again.pass('b', () => 1)]).toEqual([isDuplicate, isDuplicate])
  })

  it('does not count a mark twice whose answer was lost', async () => {
    const { store, state, writes } = doubtfulStore()
    const { mark } = store.seen
    const lossy: WindowStore = {
      ...store,
      seen: {
        ...store.seen,
        mark: async (...given) => {
          await mark(...given)
          if (writes.length === 1) throw new Error('the answer was lost')
        },
      },
    }
    const window = dedupeWindow({ ...bounds, most: 3, name: 'w', store: lossy })
    for (const id of ['a', 'b', 'c']) await window.pass(id, () => 1)
    expect(state).toEqual({})
    expect(writes.map((marks) => marks.length)).toEqual([1, 1, 1])
    const again = dedupeWindow({ ...bounds, most: 3, name: 'w', store })
    for (const id of ['a', 'b', 'c']) expect(await again.pass(id, () => 1)).toEqual(isDuplicate)
  })

  it('keeps no more marks for a store that is away than the window has', async () => {
    const { store, state, writes } = doubtfulStore()
    const window = dedupeWindow({ ...bounds, most: 3, name: 'w', store })
    state.mark = () => Promise.reject(new Error('away'))
    for (const id of ['a', 'b', 'c', 'd', 'e']) await window.pass(id, () => 1)
    state.mark = undefined
    await window.pass('f', () => 1)
    expect(writes.flat()).toHaveLength(4)
    const again = dedupeWindow({ ...bounds, most: 3, name: 'w', store })
    expect(await again.pass('d', () => 1)).toEqual(isDuplicate)
    expect(await again.pass('c', () => 1)).toMatchObject({ accepted: true })
  })

  it('ends by its own deadline or signal while the store is silent', async () => {
    const { store, state } = doubtfulStore()
    state.seen = () => Promise.reject(new RepriseError('DEADLINE_EXCEEDED', 'late'))
    const window = dedupeWindow({ ...bounds, name: 'w', store })
    const deadline = deadlineAfter('1s', clock)
    state.seen = async () => {
      await clock.advance('1s')
      throw new RepriseError('DEADLINE_EXCEEDED', 'late')
    }
    await expect(window.pass('a', () => expect.unreachable(), { deadline })).rejects.toMatchObject({
      code: 'DEADLINE_EXCEEDED',
    })
    const controller = new AbortController()
    state.seen = async () => {
      controller.abort(new Error('enough'))
      throw new Error('away')
    }
    await expect(window.pass('a', () => expect.unreachable(), { signal: controller.signal })).rejects.toThrow('enough')
    expect(window.counts).toMatchObject({ unchecked: 0, accepted: 0 })
  })

  it('is refused inside a transaction, of which it would be no part', async () => {
    const db = memory({ name: 'shop', clock })
    const window = dedupeWindow({ ...bounds, name: 'w', store: db })
    await expect(db.transact(() => window.pass('a', () => 1))).rejects.toMatchObject({ code: 'TRANSACTION_NESTED' })
  })
})

// Against a list of all acceptances: an id is remembered while fewer than `most` came after its last one, which is less
// than `within` ago. With a store, any step may be a restart.
const most = 3
const withinMs = 100
type Step = readonly ['pass', id: number, accepts: boolean] | readonly ['wait', ms: number] | readonly ['restart']
const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.tuple(fc.constant('pass' as const), fc.integer({ min: 0, max: 6 }), fc.boolean()) },
    { weight: 2, arbitrary: fc.tuple(fc.constant('wait' as const), fc.integer({ min: 1, max: 60 })) },
    { weight: 1, arbitrary: fc.tuple(fc.constant('restart' as const)) },
  ),
  { maxLength: 40 },
)

async function heldAgainstModel(list: readonly Step[], stored: boolean): Promise<void> {
  const time = manualClock()
  const store = memory({ name: 'shop', clock: time })
  const open = () => dedupeWindow({ within: withinMs, most, clock: time, ...(stored ? { name: 'w', store } : {}) })
  let window = open()
  let accepted: { id: number; atMs: number }[] = []
  for (const step of list) {
    if (step[0] === 'wait') await time.advance(step[1])
    else if (step[0] === 'restart') {
      window = open()
      if (!stored) accepted = []
    } else {
      const [, id, accepts] = step
      const nowMs = time.monotonicMs()
      const isKnown = accepted.slice(-most).some((one) => one.id === id && nowMs - one.atMs < withinMs)
      const sink = () => {
        if (!accepts) throw new Error('refused')
        return id
      }
      const result = await window.pass(String(id), sink).catch(() => 'refused')
      if (isKnown) expect(result).toEqual(isDuplicate)
      else if (accepts) expect(result).toMatchObject({ accepted: true, value: id })
      else expect(result).toBe('refused')
      if (!isKnown && accepts) accepted.push({ id, atMs: nowMs })
    }
  }
}

property('a window without a store does as the list says', [steps], (list) => heldAgainstModel(list, false), {
  cases: 500,
})
property(
  'a window with a store does as the list says, over restarts',
  [steps],
  (list) => heldAgainstModel(list, true),
  {
    cases: 500,
  },
)
