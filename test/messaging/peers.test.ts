// Bugs of other outboxes, queues and consumers, on the same input here. Each is named after where it was reported; none
// of them runs the other program. What needs a server is in test/stores/messages/peers.test.ts.

import { describe, expect, it } from 'vitest'
import { memoryBroker } from '../../src/brokers/memory/index.js'
import { seededRandom } from '../../src/kernel/index.js'
import {
  consume,
  type Message,
  type Publisher,
  purgeMessages,
  type RelayOptions,
  relay,
} from '../../src/messaging/index.js'
import { memory } from '../../src/stores/memory/index.js'
import { type ManualClock, manualClock } from '../../src/testing/index.js'
import { replaced } from '../torture/replaced.js'
import { messageOf, ScriptedSource } from './consumer/scripted-source.js'
import { aSecond, settled } from './consumer/world.js'

/** A store, and a broker that refuses the messages of some keys; every call of `publish` is noted. */
function world(refused: (message: Message) => boolean = () => false) {
  const clock = manualClock()
  const db = memory({ name: 'shop', clock })
  const broker = memoryBroker({ clock })
  broker.faults.refuses = (message) => (refused(message) ? 'not this one' : undefined)
  const calls: string[][] = []
  const inner = broker.publisher('shop')
  const to: Publisher = {
    ...inner,
    publish(messages, limits) {
      calls.push(messages.map(({ key }) => key))
      return inner.publish(messages, limits)
    },
  }
  const start = (options: Partial<RelayOptions> = {}) =>
    relay(db, { name: 'out', to, random: seededRandom(1), clock, backoff: aSecond, ...options })
  const emit = (...keys: readonly string[]): Promise<unknown> =>
    db.transact((tx) => tx.emit(keys.map((key, data) => ({ type: 'order.placed', key, data }))))
  const sent = (): readonly string[] => broker.published('shop').map(({ key }) => key)
  return { clock, db, to, calls, start, emit, sent }
}

/** Lets relays work for a time. */
async function during(
  clock: ManualClock,
  time: '1h' | '1m',
  relays: readonly ReturnType<typeof relay>[],
): Promise<void> {
  const stop = new AbortController()
  const running = relays.map((one) => one.run({ signal: stop.signal }))
  await clock.advance(time)
  stop.abort()
  await clock.advance('1m')
  await Promise.all(running)
}

describe('relays', () => {
  it('MassTransit#6216: a message that cannot be sent does not spin the relay, and holds up no other key', async () => {
    const w = world(({ key }) => key === 'bad')
    await w.emit('bad', 'good')
    const out = w.start({ attempts: 4 })
    await during(w.clock, '1h', [out])
    expect(w.sent()).toEqual(['good'])
    expect(w.calls.flat().filter((key) => key === 'bad')).toHaveLength(4)
    expect(out.counts).toMatchObject({ refused: 4, parked: 1 })
  })

  it('CAP#1797: two relays of one name repeat a failing message no more often than one', async () => {
    const w = world(({ key }) => key === 'bad')
    await w.emit('bad')
    await during(w.clock, '1h', [w.start({ attempts: 5 }), w.start({ attempts: 5 })])
    expect(w.calls.flat()).toHaveLength(5)
  })

  it('Brighter#1764: a hundred messages are a handful of questions to the store, and not two for each', async () => {
    const w = world()
    await w.emit(...Array.from({ length: 100 }, (_, index) => `key ${index}`))
    const asked: string[] = []
    const messages = new Proxy(w.db.messages, {
      get(target, name) {
        const value = Reflect.get(target, name) as unknown
        if (typeof value !== 'function') return value
        return (...given: unknown[]) => {
          asked.push(String(name))
          return (value as (...all: unknown[]) => unknown).apply(target, given)
        }
      },
    })
    const out = relay(replaced(w.db, { messages }), { name: 'out', to: w.to, batch: 100 })
    expect(await out.drain()).toMatchObject({ published: 100 })
    expect(asked.filter((name) => ['register', 'claim', 'end'].includes(name)).length).toBeLessThan(30)
  })

  it('river#1258, river#1318: more failing keys than a batch has room for hold up nobody else', async () => {
    const w = world(({ key }) => key.startsWith('bad'))
    await w.emit(...Array.from({ length: 50 }, (_, index) => `bad ${index}`), 'good')
    await during(w.clock, '1m', [w.start({ batch: 4, attempts: 100 })])
    expect(w.sent()).toEqual(['good'])
  })
})

describe('consumers', () => {
  it('MassTransit#3791: what a handler emits is there once, however often its message is delivered', async () => {
    const clock = manualClock()
    const db = memory({ name: 'shop', clock })
    const source = new ScriptedSource()
    const consumer = consume(db, {
      ...{ name: 'receipts', from: source, clock },
      handle: (tx, { id }) => tx.emit({ type: 'receipt.sent', subject: id, data: {} }),
    })
    for (let times = 0; times < 3; times += 1) source.send(messageOf('1', 'a'))
    await settled(clock, consumer.drain())
    expect(db.rows('reprise_message').map(({ subject }) => subject)).toEqual(['1'])
    expect(consumer.counts).toMatchObject({ handled: 1, duplicates: 2 })
  })

  it('dbos-transact-py#769: after a purge nothing of an old message is left that a new one could be taken for', async () => {
    const clock = manualClock()
    const db = memory({ name: 'shop', clock })
    const source = new ScriptedSource()
    const totals: unknown[] = []
    const consumer = consume(db, {
      ...{ name: 'receipts', from: source, clock, memory: '1h' },
      handle: (_tx, { data }) => totals.push(data),
    })
    source.send(messageOf('1', 'a', { data: 'old' }))
    await settled(clock, consumer.drain())
    await clock.advance('2h')
    await settled(clock, purgeMessages({ store: db, processedAfter: '1h', clock }))
    source.send(messageOf('1', 'a', { data: 'new' }))
    await settled(clock, consumer.drain())
    expect(totals).toEqual(['old', 'new'])
    expect(consumer.counts).toMatchObject({ handled: 2, mismatches: 0 })
  })
})
