import { describe, expect, it } from 'vitest'
import { messageOf } from '../../../test/messaging/consumer/scripted-source.js'
import { busy, world as consumerWorld, type Options, settled } from '../../../test/messaging/consumer/world.js'
import { type DrillOptions, type DrillViolationEvent, drill } from '../../drill/index.js'
import { rerunKeyed } from '../../idempotency/index.js'
import { memory } from '../../stores/memory/index.js'
import { manualClock } from '../../testing/index.js'
import { consume, consumeLeased, once } from '../index.js'
import { deliverAgain } from './drilled.js'

/** A domain in which each delivery comes again, on a clock that is moved by hand. */
function world(more: Partial<DrillOptions> = {}) {
  const clock = manualClock()
  const violations: DrillViolationEvent[] = []
  const drilled = drill({ oneIn: 1, onViolation: (violation) => violations.push(violation), ...more })
  const db = memory({ name: 'shop', clock, drill: drilled })
  const later = async () => {
    await clock.advance('1s')
    return drilled.settled()
  }
  const ofSource = (options: Options = {}) => consumerWorld({ clock, ...options }, { db })
  return { clock, db, drilled, violations, later, ofSource }
}

describe('what a source delivers', () => {
  it.each(['key', 'gapless', 'none'] as const)(
    'is recognised, with order %s, and no count or table says so',
    async (order) => {
      const { clock, later, ofSource } = world()
      const { source, consumer, effects, calls } = ofSource({ order })
      const place = (number: number) => ({ place: { epoch: 1, number } })
      source.send(messageOf('1', 'a', place(1)), messageOf('2', 'a', place(2)), messageOf('3', 'b', place(1)))
      await settled(clock, consumer.drain())
      expect(await later()).toMatchObject({ agreed: 3, violations: 0 })
      expect([[...effects()].sort(), [...calls].sort()]).toEqual([
        ['1', '2', '3'],
        ['1', '2', '3'],
      ])
      expect(consumer.counts).toMatchObject({ handled: 3, duplicates: 0, stored: 0, parked: 0 })
    },
  )

  it('is found by its count where the handler has an effect outside of its transaction', async () => {
    const mails: string[] = []
    const { clock, later, ofSource, violations } = world({
      effects: ({ input }) => mails.filter((id) => id === (input as { id: string }).id).length,
    })
    let runs = 0
    const { source, consumer } = ofSource({
      handle: (_tx, { id }) => {
        mails.push(id)
        runs += 1
        if (runs === 1) throw busy
      },
    })
    source.send(messageOf('1', 'a'), messageOf('2', 'b'))
    await settled(clock, consumer.drain())
    await clock.advance(2_000)
    await settled(clock, consumer.drain())
    expect(await later()).toMatchObject({ agreed: 1, violations: 1 })
    expect(violations).toMatchObject([{ code: 'DRILL_EFFECTS', kind: 'consumer', name: 'receipts' }])
  })
})

it('what is read from the outbox cannot be done once more by one who comes late', async () => {
  const { clock, db, later } = world()
  const handled: unknown[] = []
  const consumer = consume(db, { name: 'mail', from: db, handle: (_tx, { data }) => handled.push(data) })
  await db.transact((tx) => tx.emit([1, 2, 3].map((data) => ({ type: 'order.placed', key: 'a', data }))))
  await settled(clock, consumer.drain())
  expect(await later()).toMatchObject({ agreed: 3, violations: 0 })
  await db.transact((tx) => tx.emit({ type: 'order.placed', key: 'a', data: 4 }))
  await settled(clock, consumer.drain())
  expect([handled, consumer.counts.fenced]).toEqual([[1, 2, 3, 4], 0])
})

it('nor while its lane is held for the next message', async () => {
  const { clock, db, drilled, later } = world()
  const consumer = consumeLeased(db, {
    name: 'mail',
    from: db,
    recover: rerunKeyed('24h'),
    handle: async (_lease, { data }) => {
      if (data !== 2) return
      await clock.advance('1s')
      // Of the first message: as an operation, and in its lane.
      expect(await drilled.settled()).toMatchObject({ agreed: 2, violations: 0 })
    },
  })
  await db.transact((tx) => tx.emit([1, 2].map((data) => ({ type: 'order.placed', key: 'a', data }))))
  await settled(clock, consumer.drain())
  expect(await later()).toMatchObject({ agreed: 4, violations: 0 })
  expect(consumer.counts).toMatchObject({ handled: 2, failed: 0 })
})

it('what once lets through is recognised', async () => {
  const { db, later } = world()
  const job = () => once(db, { consumer: 'mail', id: 'job-1' })(() => 'sent')
  expect(await job()).toEqual({ handled: true, value: 'sent' })
  expect(await job()).toEqual({ handled: false, because: 'duplicate' })
  expect(await later()).toMatchObject({ agreed: 1, violations: 0 })
})

it.each([
  ['new', 'DRILL_EXECUTED'],
  ['mismatch', 'DRILL_DIFFERENT'],
])('a store that takes a repeat for %s is found: %s, and what it wrote is rolled back', async (says, code) => {
  const { db, clock, drilled, later, violations } = world()
  db.table('written', { unique: [['n']] })
  deliverAgain(drilled, db, {
    consumer: 'mail',
    message: messageOf('1', 'a'),
    clock,
    deadlineMs: 1_000,
    arrive: async (tx) => {
      await tx.insertOnce('written', { n: 1 }, ['n'])
      return says
    },
  })
  await later()
  expect(violations).toMatchObject([{ code, kind: 'consumer', domain: 'shop', name: 'mail' }])
  expect(db.rows('written')).toEqual([])
})
