// Dead letters of relays and consumers, and what people decide about them, on every store that keeps messages.

import { describe, expect, it } from 'vitest'
import { deadlineAfter, seededRandom } from '../../../src/kernel/index.js'
import { deadLetters, gauges, purgeMessages } from '../../../src/messaging/index.js'
import { type LettersWorld, letterWorlds } from './letters-world.js'

const by = { actor: 'ada', reason: 'fixed in 4.2' }
const which = (reader: string, id: string) => ({ reader, source: '/shop', id })
const code = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    (error) => error.details?.because ?? error.code,
  )

/** Emits three messages of one key and one of another, the second of which cannot be taken. */
async function parked({ emit, bad, consumed, relayed }: LettersWorld): Promise<void> {
  bad.add('a2')
  await relayed()
  await consumed()
  await emit(['a1', 'a'], ['a2', 'a'], ['a3', 'a'], ['b1', 'b'])
  expect([...(await consumed())].sort()).toEqual(['a1', 'b1'])
  expect((await relayed()).map(({ id }) => id).sort()).toEqual(['a1', 'b1'])
  bad.clear()
}

describe.each(letterWorlds)('dead letters on %s', (_name, inWorld) => {
  it('are grouped, listed without data, and shown with their history', () =>
    inWorld(async (world) => {
      await parked(world)
      const letters = deadLetters(world.db)
      expect(await letters.groups()).toEqual(
        expect.arrayContaining([
          expect.objectContaining({ reader: 'out', code: 'MESSAGE_REFUSED', letters: 1 }),
          expect.objectContaining({ reader: 'receipts', letters: 1 }),
        ]),
      )
      const listed = await letters.list()
      expect(listed).toHaveLength(2)
      expect(await letters.list({ reader: 'receipts', key: 'a', state: 'open' })).toMatchObject([
        { reader: 'receipts', kind: 'consumer', id: 'a2', key: 'a', parks: true, place: { number: 2 } },
      ])
      expect(JSON.stringify(listed)).not.toContain('"of"')
      expect(await letters.list({ state: 'closed' })).toEqual([])
      const shown = await letters.show(which('receipts', 'a2'))
      expect(shown).toMatchObject({ withheld: 'not-asked', dataLength: 11, decided: undefined })
      expect(shown).not.toHaveProperty('data')
      expect(shown?.history).toMatchObject([{}])
      expect(await letters.show({ ...which('out', 'a2'), data: true })).toMatchObject({
        data: { of: 'a2' },
        withheld: undefined,
      })
      expect(await letters.show(which('out', 'a9'))).toBeUndefined()
    }))

  it('go again under their own ids, and their keys go on behind them in order', () =>
    inWorld(async (world) => {
      await parked(world)
      const letters = deadLetters(world.db)
      expect(await letters.redrive(which('out', 'a2'), by)).toEqual({
        redriven: 1,
        elsewhere: 0,
        left: 0,
        interrupted: false,
      })
      expect(await letters.list({ reader: 'out' })).toMatchObject([{ state: 'redriving', decided: by }])
      expect(await code(letters.redrive(which('out', 'a2'), by))).toBe('decided')
      const wire = (await world.relayed()).filter(({ key }) => key === 'a')
      expect(wire.map(({ id, place }) => [id, place?.number])).toEqual([
        ['a1', 1],
        ['a2', 2],
        ['a3', 3],
      ])
      expect(await code(letters.redrive(which('out', 'a2'), by))).toBe('closed')
      expect(await code(letters.redrive(which('out', 'a9'), by))).toBe('absent')
      // The consumer's letter is another one.
      expect(await world.consumed()).not.toContain('a2')
      await letters.redrive({ reader: 'receipts' }, { ...by, over: 0 })
      expect((await world.consumed()).filter((id) => id.startsWith('a'))).toEqual(['a1', 'a2', 'a3'])
      expect(await letters.list()).toEqual([])
    }))

  it('are open again where they fail again, one letter for a message', () =>
    inWorld(async (world) => {
      await parked(world)
      world.bad.add('a2')
      const letters = deadLetters(world.db)
      const before = await letters.show(which('receipts', 'a2'))
      await letters.redrive(which('receipts', 'a2'), by)
      await world.consumed()
      const [again, ...others] = await letters.list({ reader: 'receipts' })
      expect(others).toEqual([])
      expect(again).toMatchObject({ state: 'open', id: 'a2', firstAtMs: before?.firstAtMs })
    }))

  it('redriven by the many are capped, whole keys, and due over time', () =>
    inWorld(async (world) => {
      const ids = Array.from({ length: 6 }, (_, index) => `m${index}`)
      for (const id of ids) world.bad.add(id)
      await world.consumed()
      await world.emit(...ids.map((id) => [id, `key of ${id}`] as const))
      await world.consumed()
      world.bad.clear()
      const letters = deadLetters(world.db)
      const heard: number[] = []
      const report = await letters.redrive(
        { reader: 'receipts' },
        {
          ...by,
          most: 4,
          over: '1h',
          random: seededRandom(7),
          onProgress: ({ redriven }) => heard.push(redriven),
        },
      )
      expect(report).toEqual({ redriven: 4, elsewhere: 0, left: 2, interrupted: false })
      expect(heard).toEqual([1, 2, 3, 4])
      const lanes = (await world.rows('lane')).filter(
        ({ reader, state }) => reader === 'receipts' && Number(state) === 1,
      )
      const dues = lanes.map(({ due_at_ms }) => Number(due_at_ms)).sort((a, b) => a - b)
      expect(dues).toHaveLength(4)
      // One in each quarter of the hour: two neighbours are less than two quarters apart, all of them more than two.
      const quarterMs = 900_000
      const gaps = dues.slice(1).map((due, index) => due - (dues[index] as number))
      for (const gap of gaps) expect(gap).toBeLessThan(2 * quarterMs)
      expect((dues[3] as number) - (dues[0] as number)).toBeGreaterThan(2 * quarterMs)
      // What is due later is not taken up now.
      expect(await world.consumed()).toEqual([])
    }))

  it('go with other data under a derived id, the same however often, and are closed with it', () =>
    inWorld(async (world) => {
      await parked(world)
      const letters = deadLetters(world.db)
      const { id } = await letters.edit(which('out', 'a2'), { ...by, data: { of: 'new' } })
      expect(id).toMatch(/^e1-[\w-]{43}$/)
      expect(await code(letters.edit(which('out', 'a2'), { ...by, data: 2 }))).toBe('decided')
      const wire = (await world.relayed()).filter(({ key }) => key === 'a')
      expect(wire.map((message) => [message.id, message.place?.number, message.data])).toEqual([
        ['a1', 1, { of: 'a1' }],
        [id, 2, { of: 'new' }],
        ['a3', 3, { of: 'a3' }],
      ])
      expect(await letters.list({ state: 'closed' })).toMatchObject([
        { id: 'a2', decided: { decision: 'edit', actor: 'ada' } },
      ])
      expect(await letters.edit(which('receipts', 'a2'), { ...by, data: 1 })).toEqual({ id })
      expect((await world.consumed()).filter((one) => one !== 'b1')).toEqual(['a1', id, 'a3'])
    }))

  it('refuses data that is no message, and decides nothing', () =>
    inWorld(async (world) => {
      await parked(world)
      const letters = deadLetters(world.db)
      const large = 'x'.repeat(300_000)
      expect(await code(letters.edit(which('out', 'a2'), { ...by, data: large }))).toBe('MESSAGE_TOO_LARGE')
      expect(await letters.list({ reader: 'out' })).toMatchObject([{ state: 'open', decided: undefined }])
    }))

  it('of a relay that are discarded send a message that says so, in their place', () =>
    inWorld(async (world) => {
      await parked(world)
      await deadLetters(world.db).discard(which('out', 'a2'), { actor: 'ada', reason: 'a test order' })
      const wire = (await world.relayed()).filter(({ key }) => key === 'a')
      expect(wire.map(({ id, place, discarded }) => [id, place?.number, discarded])).toEqual([
        ['a1', 1, undefined],
        ['a2', 2, 'a test order'],
        ['a3', 3, undefined],
      ])
      expect(await deadLetters(world.db).list({ reader: 'out' })).toEqual([])
    }))

  it('of a consumer that are discarded are over at once, and leave the proof that they are not to be handled', () =>
    inWorld(async (world) => {
      await parked(world)
      const letters = deadLetters(world.db)
      await letters.discard(which('receipts', 'a2'), { actor: 'ada', reason: 'a test order' })
      expect(await letters.list({ reader: 'receipts', state: 'closed' })).toMatchObject([
        { id: 'a2', decided: { decision: 'discard', reason: 'a test order' } },
      ])
      const processed = await world.rows('processed')
      expect(processed).toContainEqual(expect.objectContaining({ reader: 'receipts', id: 'a2' }))
      expect((await world.consumed()).filter((id) => id !== 'b1')).toEqual(['a1', 'a3'])
    }))

  it('are counted by gauges, with an alarm where they grow', () =>
    inWorld(async (world) => {
      await parked(world)
      const read = await gauges(world.db)
      const facts = { behind: 1, depth: 2, parked: 1, letters: 1 }
      expect(read).toMatchObject({ domain: 'shop', depth: 4, parked: 2, letters: 2, oldestMs: expect.any(Number) })
      expect(read.readers).toMatchObject([
        { reader: 'out', kind: 'relay', ...facts },
        { reader: 'receipts', kind: 'consumer', ...facts },
      ])
    }))

  it('and messages are purged where every reader is past them, and what is open stays', () =>
    inWorld(async (world) => {
      await parked(world)
      const times = { sentAfter: 0, processedAfter: 'never', headsAfter: 'never', lettersAfter: 0 } as const
      const left = async () => (await world.rows('message')).map(({ id }) => id).sort()
      // The store's clock has passed the millisecond of the last emit.
      await expect
        .poll(async () => {
          await purgeMessages({ store: world.db, ...times, batch: 1, pause: 0 })
          return left()
        })
        .toEqual(['a2', 'a3'])
      await deadLetters(world.db).redrive({ key: 'a' }, { ...by, over: 0 })
      await world.relayed()
      await world.consumed()
      await expect
        .poll(async () => {
          await purgeMessages({ store: world.db, ...times })
          return [await left(), await deadLetters(world.db).list({ state: 'closed' })]
        })
        .toEqual([[], []])
    }))

  it('of a key begin a higher epoch after newEpochs, with the first number', () =>
    inWorld(async (world) => {
      await world.relayed()
      await world.emit(['a1', 'a'], ['a2', 'a'])
      const before = (await world.relayed()).at(-1)?.place?.epoch as number
      expect(await world.db.messages.newEpochs({ deadline: deadlineAfter('60s') })).toBe(1)
      await world.emit(['a3', 'a'], ['a4', 'a'])
      const places = (await world.relayed()).slice(2).map(({ place }) => place)
      expect(places.map((place) => place?.number)).toEqual([1, 2])
      for (const place of places) expect(place?.epoch).toBeGreaterThan(before)
    }))
})
