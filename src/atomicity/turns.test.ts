import { setMaxListeners } from 'node:events'
import { expect, it } from 'vitest'
import { eventLoopTurn } from '../kernel/index.js'
import { manualClock } from '../testing/index.js'
import { type Turn, turnsOf } from './turns.js'

const long = { waitMs: 10_000 }

it('hands out turns in the order of asking, and nobody overtakes', async () => {
  const turns = turnsOf({ clock: manualClock() })
  const order: number[] = []
  const first = await turns.take(long)
  const work = async (number: number): Promise<void> => {
    const turn = await turns.take(long)
    order.push(number)
    await eventLoopTurn()
    turn.done()
  }
  const all = Promise.all([1, 2, 3].map(work))
  expect(turns.waiting).toBe(3)
  first.done()
  // Asked for at the moment in which a turn is passed on: it comes last all the same.
  await work(4)
  await all
  expect(order).toEqual([1, 2, 3, 4])
  expect([turns.taken, turns.waiting]).toEqual([0, 0])
})

it('lets as many work at once as there are places', async () => {
  const turns = turnsOf({ places: 2, clock: manualClock() })
  await turns.take(long)
  const second = await turns.take(long)
  const third = turns.take(long)
  expect([turns.taken, turns.waiting]).toEqual([2, 1])
  second.done()
  second.done()
  await third
  expect([turns.taken, turns.waiting]).toEqual([2, 0])
})

it('gives up after its wait, and leaves the queue in order', async () => {
  const clock = manualClock()
  const turns = turnsOf({ clock })
  const first = await turns.take(long)
  const impatient = turns.take({ waitMs: 50 })
  const patient = turns.take({ waitMs: 500 })
  const refused = expect(impatient).rejects.toMatchObject({ code: 'POOL_EXHAUSTED', details: { waitMs: 50 } })
  await clock.advance(50)
  await refused
  expect(turns.waiting).toBe(1)
  first.done()
  ;(await patient).done()
  expect(clock.pendingTimers).toBe(0)
})

it('fails at once where there is no time to wait', async () => {
  const turns = turnsOf({ clock: manualClock() })
  const first = await turns.take({ waitMs: 0 })
  await expect(turns.take({ waitMs: 0 })).rejects.toMatchObject({ code: 'POOL_EXHAUSTED' })
  first.done()
  await expect(turns.take({ waitMs: 0 })).resolves.toBeDefined()
})

it('refuses one more than may wait', async () => {
  const turns = turnsOf({ queue: 2, clock: manualClock() })
  await turns.take(long)
  const waiting = [turns.take(long), turns.take(long)]
  await expect(turns.take(long)).rejects.toMatchObject({ code: 'QUEUE_FULL', details: { queue: 2, places: 1 } })
  expect(waiting).toHaveLength(turns.waiting)
})

it('ends a wait with the reason of its signal, and leaves neither timer nor listener', async () => {
  const clock = manualClock()
  const turns = turnsOf({ clock })
  await turns.take(long)
  const controller = new AbortController()
  const reason = new Error('gone')
  const waiting = turns.take({ waitMs: 1_000, signal: controller.signal })
  controller.abort(reason)
  await expect(waiting).rejects.toBe(reason)
  await expect(turns.take({ waitMs: 1_000, signal: controller.signal })).rejects.toBe(reason)
  expect([turns.waiting, clock.pendingTimers]).toEqual([0, 0])
})

it.each([{ aborted: false, throwIfAborted: () => undefined }, { throwIfAborted: () => undefined }])(
  'leaves nothing behind for a signal that is none: %j',
  async (signal) => {
    const clock = manualClock()
    const turns = turnsOf({ clock })
    await turns.take(long)
    const taken = turns.take({ waitMs: 1_000, signal: signal as unknown as AbortSignal })
    await expect(taken).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    expect([turns.waiting, clock.pendingTimers]).toEqual([0, 0])
  },
)

it('closes when all at work are through, and refuses everybody else', async () => {
  const turns = turnsOf({ clock: manualClock() })
  const first = await turns.take(long)
  const waiting = expect(turns.take(long)).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  let closed = false
  const closing = turns.close().then(() => {
    closed = true
  })
  await waiting
  await expect(turns.take(long)).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  await eventLoopTurn()
  expect(closed).toBe(false)
  first.done()
  await closing
  expect(closed).toBe(true)
})

it.each([{ places: 0 }, { places: 1.5 }, { queue: -1 }, { queue: Number.NaN }])('refuses %j', (options) => {
  expect(() => turnsOf(options)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
})

it('keeps a thousand waiting turns cheap to give up', async () => {
  const turns = turnsOf({ clock: manualClock() })
  await turns.take(long)
  const controller = new AbortController()
  setMaxListeners(0, controller.signal)
  const all = Array.from({ length: 1000 }, () => turns.take({ ...long, signal: controller.signal }))
  const settled = Promise.allSettled<Turn>(all)
  controller.abort(new Error('gone'))
  expect((await settled).every((end) => end.status === 'rejected')).toBe(true)
  expect(turns.waiting).toBe(0)
})

it('takes a turn without waiting where one is free, and none where nobody would have one', async () => {
  const turns = turnsOf()
  const first = turns.tryTake()
  expect(first).toBeDefined()
  expect(turns.tryTake()).toBeUndefined()
  const waiting = turns.take({ waitMs: 1_000 })
  first?.done()
  // The place went to the one who waited.
  expect(turns.tryTake()).toBeUndefined()
  ;(await waiting).done()
  turns.tryTake()?.done()
  await turns.close()
  expect(() => turns.tryTake()).toThrow(expect.objectContaining({ code: 'STORE_CLOSED' }))
})

it('lets the urgent go first, in the order of asking, and limits them as well', async () => {
  const turns = turnsOf({ queue: 2, clock: manualClock() })
  const order: string[] = []
  const first = await turns.take(long)
  const work = async (name: string, urgent: boolean): Promise<void> => {
    const turn = await turns.take({ ...long, urgent })
    order.push(name)
    turn.done()
  }
  const all = Promise.all([work('a', false), work('b', false), work('c', true), work('d', true)])
  expect(turns.waiting).toBe(4)
  await expect(turns.take({ ...long, urgent: true })).rejects.toMatchObject({ code: 'QUEUE_FULL' })
  first.done()
  await all
  expect(order).toEqual(['c', 'd', 'a', 'b'])
})
