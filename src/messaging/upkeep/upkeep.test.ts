import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { describe, expect, it } from 'vitest'
import { memory } from '../../stores/memory/index.js'
import { messagesGauges, messagesLetters } from '../../telemetry/index.js'
import type { LetterDomain, ReaderState } from '../index.js'
import { gauges } from './gauges.js'
import { purgeMessages } from './purge.js'

/** A domain whose readers are as a test says. */
function withReaders(...states: readonly Partial<ReaderState>[]): LetterDomain {
  const db = memory({ name: 'shop' })
  const usual = { kind: 'relay', behind: 0, depth: 0, oldestMs: undefined, parked: 0, letters: 0 } as const
  const readers = async () => states.map((state, index) => ({ ...usual, name: `r${index}`, ...state }))
  return { ...db, messages: { ...db.messages, readers } }
}

async function heard(channel: string, work: () => Promise<unknown>): Promise<readonly unknown[]> {
  const events: unknown[] = []
  const hear = (event: unknown): void => void events.push(event)
  subscribe(channel, hear)
  await work().finally(() => unsubscribe(channel, hear))
  return events
}

describe('gauges', () => {
  it('sums what readers have before them, and tells it', async () => {
    const db = withReaders({ depth: 3, oldestMs: 7, parked: 1 }, { depth: 2, oldestMs: 9, letters: 4 })
    const events = await heard(messagesGauges.name, async () => {
      expect(await gauges(db)).toMatchObject({ depth: 5, oldestMs: 9, parked: 1, letters: 4, domain: 'shop' })
    })
    expect(events).toMatchObject([{ domain: 'shop', readers: [{ reader: 'r0', depth: 3 }, { reader: 'r1' }] }])
    expect(await gauges(withReaders({}))).toMatchObject({ depth: 0, oldestMs: undefined })
  })

  it('alarms where dead letters grow, against the last call or what is given', async () => {
    const states = [{ letters: 1 }, { letters: 1 }]
    const db = withReaders(...states)
    const alarms = (before?: { readers: never[] }) =>
      heard(messagesLetters.name, () => gauges(db, before === undefined ? {} : { before }))
    expect(await alarms()).toEqual([])
    expect(await alarms()).toEqual([])
    const second = states[1] as { letters: number }
    second.letters = 3
    expect(await alarms()).toEqual([{ domain: 'shop', reader: 'r1', letters: 3, before: 1 }])
    expect(await alarms()).toEqual([])
    second.letters = 2
    expect(await alarms()).toEqual([])
    expect(await alarms({ readers: [] })).toHaveLength(2)
  })
})

describe('purgeMessages', () => {
  it('repeats a batch whose answer was lost, and counts it', async () => {
    const db = memory({ name: 'shop' })
    let calls = 0
    const purge: typeof db.messages.purge = async (...given) => {
      calls += 1
      if (calls === 1) throw new Error('the connection was cut')
      return db.messages.purge(...given)
    }
    const store = { ...db, messages: { ...db.messages, purge } }
    expect(await purgeMessages({ store })).toEqual({
      messages: 0,
      processed: 0,
      heads: 0,
      letters: 0,
      unconfirmed: 1,
      interrupted: false,
    })
  })

  it('forgets after a day, a month and a quarter by default, and never what is to be kept', async () => {
    const db = memory({ name: 'shop' })
    const queries: unknown[] = []
    const purge: typeof db.messages.purge = async (query, limits) => {
      queries.push(query)
      return db.messages.purge(query, limits)
    }
    const store = { ...db, messages: { ...db.messages, purge } }
    await purgeMessages({ store })
    await purgeMessages({ store, processedAfter: 'never', sentAfter: '2h', batch: 7 })
    const day = 86_400_000
    const usual = { sentAfterMs: day, processedAfterMs: 30 * day, headsAfterMs: 30 * day, lettersAfterMs: 90 * day }
    expect(queries).toEqual([
      { ...usual, limit: 500 },
      { ...usual, sentAfterMs: 7_200_000, processedAfterMs: undefined, limit: 7 },
    ])
  })

  it.each([{ headsAfter: '59s' as const }, { sentAfter: 'soon' as never }])('refuses %j', async (options) => {
    const refused = purgeMessages({ store: memory({ name: 'shop' }), ...options })
    await expect(refused).rejects.toMatchObject({ code: 'DURATION_INVALID' })
  })
})
