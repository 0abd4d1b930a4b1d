import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../../test/property.js'
import { RepriseError, seededRandom } from '../../kernel/index.js'
import { type MemoryDomain, memory } from '../../stores/memory/index.js'
import { consume, type DeadLetter, deadLetters } from '../index.js'
import { editedId } from './decide.js'
import { planRedrive } from './redrive.js'

const by = { actor: 'ada', reason: 'fixed' }
const which = { reader: 'receipts', source: memory({ name: 'shop' }).messages.source, id: 'm-1' }

/** A domain with one dead letter, the message `m-1`. */
async function withLetter(): Promise<MemoryDomain> {
  const db = memory({ name: 'shop' })
  const refuse = (): never => {
    throw new TypeError('no')
  }
  const receipts = consume(db, { name: 'receipts', from: db, handle: refuse })
  await receipts.drain()
  await db.transact((tx) => tx.emit({ id: 'm-1', type: 'order.placed', subject: 'order/1', data: { total: 12 } }))
  await receipts.drain()
  return db
}

/** The domain, where the answers to the first decisions are lost after, or before, they are written. */
function losing(db: MemoryDomain, lost: number, isWritten: boolean) {
  let calls = 0
  const decide: typeof db.messages.decide = async (...given) => {
    calls += 1
    if (calls > lost) return db.messages.decide(...given)
    if (isWritten) await db.messages.decide(...given)
    throw new Error('the connection was cut')
  }
  return { db: { ...db, messages: { ...db.messages, decide } }, calls: () => calls }
}

describe('a decision whose answer was lost', () => {
  it.each([true, false])('is sent again, and is a success (it had been written: %s)', async (isWritten) => {
    const { db, calls } = losing(await withLetter(), 1, isWritten)
    await deadLetters(db).discard(which, by)
    expect(calls()).toBe(2)
    expect(await deadLetters(db).list({ state: 'closed' })).toMatchObject([{ id: 'm-1', decided: by }])
  })

  it('is unknown where the store does not answer any more, and says so', async () => {
    const { db } = losing(await withLetter(), 1_000, true)
    const failed = deadLetters(db).discard(which, { ...by, deadline: '50ms' })
    await expect(failed).rejects.toMatchObject({ code: 'UPKEEP_UNKNOWN' })
  })

  it('is refused where it was somebody else who decided', async () => {
    const db = await withLetter()
    await deadLetters(db).redrive(which, { actor: 'grace' })
    const { db: cut } = losing(db, 1, false)
    await expect(deadLetters(cut).discard(which, by)).rejects.toMatchObject({
      code: 'LETTER_REFUSED',
      details: { because: 'decided' },
    })
  })

  it('did not happen where the store proves it, and the error says what was in the way', async () => {
    const db = await withLetter()
    const decide = () => Promise.reject(new RepriseError('STORE_CLOSED', 'closed'))
    const closed = { ...db, messages: { ...db.messages, decide } }
    await expect(deadLetters(closed).discard(which, by)).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  })
})

describe('deadLetters', () => {
  it.each([
    ['no reason', (db: MemoryDomain) => deadLetters(db).discard(which, { actor: 'ada' } as never)],
    ['an empty reason', (db: MemoryDomain) => deadLetters(db).discard(which, { actor: 'ada', reason: ' ' })],
    ['no actor', (db: MemoryDomain) => deadLetters(db).redrive(which, {} as never)],
    ['all letters at once', (db: MemoryDomain) => deadLetters(db).redrive({}, by)],
    ['a cap of 0', (db: MemoryDomain) => deadLetters(db).redrive({ reader: 'a' }, { ...by, most: 0 })],
    ['a letter without a source', (db: MemoryDomain) => deadLetters(db).show({ reader: 'a', id: 'b' } as never)],
    ['an unknown state', (db: MemoryDomain) => deadLetters(db).list({ state: 'dead' as never })],
    ['an unknown option', (db: MemoryDomain) => deadLetters(db).edit(which, { ...by, dta: 1 } as never)],
    ['no domain', () => Promise.resolve().then(() => deadLetters({} as never))],
  ])('refuses %s, and decides nothing', async (_what, call) => {
    const db = await withLetter()
    await expect(call(db)).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    expect(await deadLetters(db).list()).toMatchObject([{ state: 'open', decided: undefined }])
  })

  it('shows no data that was erased or cannot be read, and says why', async () => {
    const db = await withLetter()
    const shown = (dataOf: () => unknown) =>
      deadLetters({ ...db, messages: { ...db.messages, dataOf } }).show({ ...which, data: true })
    expect(await shown(() => undefined)).toMatchObject({ withheld: 'erased' })
    const unreadable = (): never => {
      throw new RepriseError('MESSAGE_UNREADABLE', 'a codec')
    }
    expect(await shown(unreadable)).toMatchObject({ withheld: 'unreadable' })
  })
})

it('derives the id of an edited message from its identity alone', () => {
  expect(editedId({ source: 'shop', id: 'm-1' })).toBe(editedId({ source: 'shop', id: 'm-1' }))
  expect(editedId({ source: 'shop', id: 'm-1' })).not.toBe(editedId({ source: 'shopm', id: '-1' }))
  expect(editedId({ source: 'shop', id: 'm-1' })).toBe('e1-Qyv7GbejATKRcn5yqZyFh4T4st2XLeHXszlt-5vZ8N0')
})

const letter = (key: string, number: number): DeadLetter =>
  ({ reader: 'r', message: { key, place: { epoch: 1, number }, source: 's', id: `${key}${number}` } }) as DeadLetter

const letters = fc.uniqueArray(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd'), fc.integer({ min: 1, max: 20 })), {
  selector: ([key, number]) => `${key}${number}`,
  maxLength: 40,
})

property(
  'a plan keeps to the cap, takes the first letters of a key in order, and lies within the time',
  [letters, fc.integer({ min: 1, max: 50 }), fc.integer({ min: 0, max: 1e6 }), fc.integer()],
  (drawn, most, overMs, seed) => {
    const given = drawn.map(([key, number]) => letter(key, number))
    const plan = planRedrive(given, most, overMs, seededRandom(seed))
    expect(plan.length).toBeLessThanOrEqual(most)
    if (given.length > 0) expect(plan.length).toBeGreaterThan(0)
    const keys = [...new Set(plan.map(({ letter: one }) => one.message.key))]
    keys.forEach((key, place) => {
      const mine = plan.filter(({ letter: one }) => one.message.key === key)
      const all = given.map(({ message }) => message).filter((message) => message.key === key)
      const inOrder = all.map(({ place: at }) => at.number).sort((a, b) => a - b)
      expect(mine.map(({ letter: one }) => one.message.place.number)).toEqual(inOrder.slice(0, mine.length))
      // Only a key that is larger than the cap by itself is cut.
      if (mine.length < all.length) expect(all.length).toBeGreaterThan(most)
      const share = overMs / keys.length
      for (const { inMs } of mine) {
        expect(inMs).toBeGreaterThanOrEqual(Math.floor(place * share))
        expect(inMs).toBeLessThanOrEqual((place + 1) * share)
      }
    })
  },
)
