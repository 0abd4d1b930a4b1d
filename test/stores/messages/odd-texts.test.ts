// Texts that a store cannot hold as they are: what errors say, and what brokers deliver.

import { describe, expect, it } from 'vitest'
import { memoryBroker } from '../../../src/brokers/memory/index.js'
import { deadlineAfter } from '../../../src/kernel/index.js'
import { consume, deadLetters, relay } from '../../../src/messaging/index.js'
import { letterWorlds } from './letters-world.js'

const limits = () => ({ deadline: deadlineAfter('30s') })
const patient = { deadline: '60s', bodyLimit: '60s', connectionWait: '60s' } as const
const oddTexts = ['a\0b', '\ud800', `${'x'.repeat(992)}😀😀`]

describe.each(letterWorlds)('texts that cannot be stored, on %s', (_name, inWorld) => {
  it('of errors are mended: the message is a dead letter, and others go on', () =>
    inWorld(async ({ db }) => {
      const consumer = consume(db, {
        name: 'odd',
        from: db,
        handle: async (_tx, message) => {
          const text = oddTexts[Number(message.id.slice(1))]
          if (text !== undefined) throw new Error(text)
        },
      })
      await consumer.drain()
      const drafts = ['m0', 'm1', 'm2', 'm9'].map((id) => ({ type: 't', key: id, id, data: {} }))
      await db.transact((tx) => tx.emit(drafts), patient)
      expect((await consumer.drain()).handled).toBe(1)
      const letters = [...(await deadLetters(db).list({ reader: 'odd' }))].sort((a, b) => (a.id < b.id ? -1 : 1))
      expect(letters.map(({ reason }) => reason)).toEqual([
        'Error: a\ufffdb',
        'Error: \ufffd',
        expect.stringMatching(/x\ufffd$/),
      ])
    }))

  it('of deliveries are dead letters with what came, and others go on', () =>
    inWorld(async ({ db }) => {
      const broker = memoryBroker()
      const source = broker.source('t')
      const consumer = consume(db, { name: 'odd', from: source, redelivered: '1d', handle: async () => {} })
      const event = { specversion: '1.0', id: 'm1', source: '/s', type: 't', data: { kept: 'here' } }
      broker.putRaw('t', JSON.stringify({ ...event, id: 'bad\0' }))
      broker.putRaw('t', JSON.stringify({ ...event, id: 'x'.repeat(12_000) }))
      broker.putRaw('t', JSON.stringify({ ...event, data: { kept: 'here', odd: '\ud800' } }))
      broker.putRaw('t', 'no event\0')
      broker.putRaw('t', JSON.stringify({ ...event, id: 'm2' }))
      expect((await consumer.drain()).handled).toBe(1)
      const letters = await deadLetters(db).list({ reader: 'odd' })
      expect(letters.map(({ code }) => code)).toEqual(Array(4).fill('MESSAGE_UNREADABLE'))
      const data = await Promise.all(
        letters.map(
          async ({ source, id }) => (await db.messages.letter({ reader: 'odd', source, id }, limits()))?.message.data,
        ),
      )
      expect(data.filter((text) => text?.includes('"kept":"here"'))).toHaveLength(3)
    }))

  it('are not asked of a message that was discarded: its place arrives whatever `where` reads', () =>
    inWorld(async ({ db }) => {
      const broker = memoryBroker()
      let refuses = true
      broker.faults.refuses = () => (refuses ? 'not now' : undefined)
      const out = relay(db, {
        name: 'odd',
        to: broker.publisher('t'),
        where: ({ data }) => (data as { total: number }).total > 5,
        attempts: 1,
      })
      await out.drain()
      await db.transact((tx) => tx.emit({ type: 't', subject: 's', id: 'm1', data: { total: 9 } }), patient)
      await out.drain()
      const [letter] = await deadLetters(db).list({ reader: 'odd' })
      expect(letter).toMatchObject({ id: 'm1', state: 'open' })
      refuses = false
      const { source, id } = letter as { source: string; id: string }
      await deadLetters(db).discard({ reader: 'odd', source, id }, { actor: 'ada', reason: 'wrong' })
      await out.drain()
      expect(broker.published('t')).toMatchObject([{ id: 'm1', discarded: 'wrong' }])
      expect(await deadLetters(db).list({ reader: 'odd' })).toEqual([])
    }))
})
