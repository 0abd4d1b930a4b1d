// Bugs that others have had, or that a consumer would have without one of its lines.

import { deadlineAfter } from '../../../../src/kernel/index.js'
import { type Bug, type Setting, withOrder } from './life.js'

const source: Setting = { from: 'source', order: 'key' }
const gapless: Setting = { from: 'source', order: 'gapless' }
const outbox: Setting = { from: 'outbox', order: 'key' }

const lost = /was lost|never answered/
const twice = /had its effect \d+ times/

export const plantedBugs: readonly Bug[] = [
  {
    name: 'ack before commit',
    setting: source,
    noticed: lost,
    delivery: (_life, delivery) => {
      const acked = delivery.ack()
      acked.catch(() => undefined)
      return { ...delivery, ack: () => acked, again: async () => {} }
    },
  },
  {
    name: 'the processed row in another transaction, before the effect',
    setting: source,
    noticed: lost,
    arrive: (life, real) => async (tx, arrival, gapMs) => {
      if (life.elsewhere.has(arrival.message.id)) return { is: 'duplicate' }
      life.elsewhere.add(arrival.message.id)
      return real(tx, arrival, gapMs)
    },
  },
  {
    name: 'the processed row in another transaction, after the effect',
    setting: source,
    noticed: twice,
    // What commits with the effect is the row of a message that nobody asks for.
    arrive: (life, real) => async (tx, arrival, gapMs) => {
      const { message } = arrival
      if (life.elsewhere.has(message.id)) return { is: 'duplicate' }
      return real(tx, { ...arrival, message: { ...message, id: `${message.id}-${life.random.next()}` } }, gapMs)
    },
    delivery: (life, delivery) => ({
      ...delivery,
      ack: async () => {
        if (!('unreadable' in delivery.content)) life.elsewhere.add(delivery.content.id)
        await delivery.ack()
      },
    }),
  },
  {
    name: 'a memory that is shorter than the last redelivery',
    setting: source,
    noticed: twice,
    memoryMs: 1,
    beforeRedelivery: async ({ db, clock }) => {
      const query = {
        sentAfterMs: undefined,
        processedAfterMs: 1,
        headsAfterMs: undefined,
        lettersAfterMs: undefined,
        limit: 1_000,
      }
      await clock.advance(10)
      await db.messages.purge(query, { deadline: deadlineAfter('1h', clock) })
    },
  },
  {
    name: 'a message passes the one of its key that failed',
    setting: source,
    noticed: /out of order/,
    arrive: (_life, real) => (tx, arrival, gapMs) => real(tx, withOrder(arrival, 'none'), gapMs),
  },
  {
    name: 'a message that failed is acknowledged, and not kept',
    setting: source,
    noticed: lost,
    keep: () => async () => {},
  },
  {
    name: 'an old number is taken for a duplicate',
    setting: gapless,
    noticed: lost,
    arrive: (_life, real) => async (tx, arrival, gapMs) => {
      const arrived = await real(tx, arrival, gapMs)
      return arrived.is === 'late' ? { is: 'duplicate' } : arrived
    },
  },
  {
    name: 'numbers are not checked, though the broker keeps no order',
    setting: gapless,
    noticed: /out of order|MESSAGE_GAP/,
    arrive: (_life, real) => (tx, arrival, gapMs) => real(tx, withOrder(arrival, 'key'), gapMs),
  },
  {
    name: 'attempts are burnt by an outage',
    setting: source,
    noticed: /is a dead letter for busy/,
    outageReachesHandler: true,
  },
  {
    name: 'a stage on the way mints the id anew for a redelivery',
    setting: source,
    noticed: twice,
    delivery: (life, delivery) => {
      const { content } = delivery
      if ('unreadable' in content) return delivery
      const id = `${content.id}-${life.random.next()}`
      return { ...delivery, content: { ...content, id } }
    },
  },
  {
    name: 'a claim that was lost ends its lane all the same',
    setting: outbox,
    noticed: twice,
    endIn: (_life, real) => async (tx, end) => {
      await real(tx, end)
      return true
    },
  },
  {
    name: 'the progress of a lane is no part of the transaction of its effect',
    setting: outbox,
    noticed: twice,
    endIn: () => async () => true,
  },
]
