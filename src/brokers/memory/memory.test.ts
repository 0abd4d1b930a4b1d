import { expect, it } from 'vitest'
import { deadlineAfter, eventLoopTurn } from '../../kernel/index.js'
import type { Delivery, Message } from '../../messaging/index.js'
import { manualClock } from '../../testing/index.js'
import { type BrokerFaults, type MemoryBrokerOptions, memoryBroker } from './index.js'
import { MemorySubscription } from './subscription.js'
import { Group } from './topic.js'

const message = (key: string): Message => ({ source: '/s', id: key, type: 't', key, atMs: 0, data: 1 }) as Message

function world(options: MemoryBrokerOptions = {}) {
  const clock = manualClock()
  const broker = memoryBroker({ clock, ...options })
  const publish = (...keys: readonly string[]) =>
    broker.publisher('a').publish(keys.map(message), { deadline: deadlineAfter('1s', clock) })
  return { clock, broker, publish }
}

it('takes no more messages than there is room for', async () => {
  const { broker, publish } = world({ most: 2 })
  broker.source('a')
  expect((await publish('a', 'b', 'c')).map(({ is }) => is)).toEqual(['confirmed', 'confirmed', 'unsent'])
  expect(broker.waiting('a')).toBe(2)
  expect(broker.published('a')).toHaveLength(2)
})

it('delivers no message for longer than it keeps them', async () => {
  const { clock, broker, publish } = world({ keep: '1h' })
  broker.source('a')
  await publish('a')
  await clock.advance('2h')
  await publish('b')
  const received: Delivery[] = []
  await broker.source('a').open(async (delivery) => void received.push(delivery), { inFlight: 5 })
  expect(received.map(({ content }) => 'id' in content && content.id)).toEqual(['b'])
})

it('refuses what cannot be written, and what is too large', async () => {
  const { clock, broker } = world()
  const answers = await broker.publisher('a').publish(
    [
      { ...message('a'), data: 1n },
      { ...message('b'), data: 'x'.repeat(1_100_000) },
    ],
    {
      deadline: deadlineAfter('1s', clock),
    },
  )
  expect(answers).toMatchObject([
    { is: 'refused', code: 'MESSAGE_INVALID' },
    { is: 'refused', code: 'MESSAGE_TOO_LARGE' },
  ])
})

it('fails as it is told to', async () => {
  const { broker, publish } = world()
  const faults: BrokerFaults = broker.faults
  faults.lostMessages = 1
  expect((await publish('a')).map(({ is }) => is)).toEqual(['unknown'])
  faults.lostAnswers = 1
  expect((await publish('a')).map(({ is }) => is)).toEqual(['unknown'])
  faults.doubled = 1
  expect((await publish('b')).map(({ is }) => is)).toEqual(['confirmed'])
  expect(broker.published('a').map(({ id }) => id)).toEqual(['a', 'b', 'b'])
  faults.isAway = true
  await expect(broker.source('a').open(async () => {}, { inFlight: 1 })).rejects.toMatchObject({ code: 'BROKER_AWAY' })
})

it('ends a subscription with its signal, and gives back what it had', async () => {
  const { broker, publish } = world()
  const stop = new AbortController()
  const received: Delivery[] = []
  const subscription = await broker
    .source('a')
    .open(async (delivery) => void received.push(delivery), { inFlight: 5, signal: stop.signal })
  await publish('a')
  stop.abort()
  await subscription.ended
  await eventLoopTurn()
  await expect(received[0]?.ack()).rejects.toMatchObject({ code: 'DELIVERY_LOST' })
  expect(broker.waiting('a')).toBe(1)
})

it.each([{ order: 'all' }, { most: 0 }, { mos: 1 }])('refuses the options %j', (options) => {
  expect(() => memoryBroker(options as never)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
})

it('refuses a limit that is none', () => {
  const group = new Group({ clock: manualClock(), order: 'key', most: 1, keepMs: 1 }, [])
  expect(() => new MemorySubscription(group, async () => {}, { inFlight: 0 })).toThrow(/inFlight/)
})
