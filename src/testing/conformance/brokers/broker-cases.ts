// What every broker must do: confirm what it has, refuse in words, deliver until somebody answers, and lose nothing.

import { deadlineAfter } from '../../../kernel/index.js'
import type { BrokerManifest, Message, Published } from '../../../messaging/index.js'
import { failing, holds, same } from '../expectations.js'
import { type BrokerCase, type BrokerWorld, eventOf, receiving } from './broker-case.js'

const publish = ({ publisher, clock }: BrokerWorld, ...messages: readonly Message[]): Promise<readonly Published[]> =>
  publisher.publish(messages, { deadline: deadlineAfter('10s', clock) })
const words = (answers: readonly Published[]): readonly string[] => answers.map(({ is }) => is)
const unanswered = async (): Promise<void> => {}
const withoutOrder = ({ order, because }: BrokerManifest): string | undefined =>
  order === 'none' ? (because.order ?? 'it keeps no order') : undefined

/** Cases of the groups `broker.publish` and `broker.deliver`. */
export const brokerCases: readonly BrokerCase[] = [
  {
    id: 'broker.publish.01',
    title: 'MUST confirm messages and deliver them whole',
    async run(world) {
      const received = await receiving(world, 'one', 10)
      const { data: _, ...rest } = eventOf('b', 1)
      const discarded = { ...rest, data: undefined, discarded: 'of no use' }
      same(words(await publish(world, eventOf('a', 1), discarded)), ['confirmed', 'confirmed'], 'the answers')
      await received.until(2)
      const contents = received.deliveries.map(({ content }) => content)
      same(
        contents.filter((content) => !('unreadable' in content) && content.key === 'a'),
        [eventOf('a', 1)],
        'the message',
      )
      same(
        contents.filter((content) => !('unreadable' in content) && content.key === 'b'),
        [discarded],
        'the message without data',
      )
    },
  },
  {
    id: 'broker.publish.02',
    title: 'MUST answer for each message in its place, and take the others where one is refused',
    async run(world) {
      const received = await receiving(world, 'one', 10)
      const answers = await publish(world, eventOf('a', 1), world.unwelcome(eventOf('b', 1)), eventOf('c', 1))
      same(words(answers), ['confirmed', 'refused', 'confirmed'], 'the answers')
      await received.until(2)
      same([...received.ids()].sort(), ['a-1', 'c-1'], 'what was delivered')
    },
  },
  {
    id: 'broker.publish.03',
    title: 'MUST send nothing of a key behind a message that it refuses',
    deniedBy: withoutOrder,
    async run(world) {
      const received = await receiving(world, 'one', 10)
      const answers = await publish(world, world.unwelcome(eventOf('a', 1)), eventOf('a', 2), eventOf('b', 1))
      same(words(answers), ['refused', 'unsent', 'confirmed'], 'the answers')
      await received.until(1)
      same(received.ids(), ['b-1'], 'what was delivered')
    },
    async refusal(world) {
      const answers = await publish(world, world.unwelcome(eventOf('a', 1)), eventOf('a', 2))
      same(words(answers), ['refused', 'confirmed'], 'the answers')
    },
  },
  {
    id: 'broker.publish.04',
    title: 'MUST say unsent or unknown where it is away, and throw nothing',
    async run(world) {
      await world.away(true)
      const answers = await publish(world, eventOf('a', 1), eventOf('b', 1))
      holds(
        answers.length === 2 && answers.every(({ is }) => is === 'unsent' || is === 'unknown'),
        'nothing is confirmed',
      )
      await world.away(false)
      await world.passes(50)
      same(words(await publish(world, eventOf('a', 1))), ['confirmed'], 'the answer when it is there again')
    },
  },
  {
    id: 'broker.publish.05',
    title: 'MUST confirm nothing after the deadline',
    async run({ publisher, clock }) {
      const answers = await publisher.publish([eventOf('a', 1)], { deadline: deadlineAfter(0, clock) })
      holds(
        answers.length === 1 && answers[0]?.is !== 'confirmed' && answers[0]?.is !== 'refused',
        'it is not confirmed',
      )
    },
  },
  {
    id: 'broker.publish.06',
    title: 'MUST deliver a message once that is published twice',
    deniedBy: ({ dedupeMs, because }) => (dedupeMs > 0 ? undefined : (because.dedupeMs ?? 'it takes every message')),
    async run(world) {
      const received = await receiving(world, 'one', 10)
      for (let times = 0; times < 2; times += 1) {
        same(words(await publish(world, eventOf('a', 1))), ['confirmed'], 'the answer')
      }
      await received.until(1)
      same(received.ids(), ['a-1'], 'what was delivered')
    },
    async refusal(world) {
      const received = await receiving(world, 'one', 10)
      for (let times = 0; times < 2; times += 1) {
        same(words(await publish(world, eventOf('a', 1))), ['confirmed'], 'the answer')
      }
      await received.until(2)
      same(received.ids(), ['a-1', 'a-1'], 'what was delivered')
    },
  },
  {
    id: 'broker.deliver.01',
    title: 'MUST deliver the messages of a key in the order in which they were published',
    deniedBy: withoutOrder,
    async run(world) {
      const received = await receiving(world, 'one', 50)
      const numbers = Array.from({ length: 20 }, (_, index) => index + 1)
      await publish(world, ...numbers.flatMap((number) => [eventOf('a', number), eventOf('b', number)]))
      await received.until(40)
      for (const key of ['a', 'b']) {
        const ids = received.ids().filter((id) => id.startsWith(key))
        same(
          ids,
          numbers.map((number) => `${key}-${number}`),
          `the order of ${key}`,
        )
      }
    },
    async refusal(world) {
      const received = await receiving(world, 'one', 50)
      await publish(world, eventOf('a', 1), eventOf('a', 2))
      await received.until(2)
      same([...received.ids()].sort(), ['a-1', 'a-2'], 'what was delivered')
    },
  },
  {
    id: 'broker.deliver.02',
    title: 'MUST have no more deliveries out than are wanted, and go on when one is answered',
    async run(world) {
      const received = await receiving(world, 'one', 2, unanswered)
      await publish(world, ...['a', 'b', 'c', 'd'].map((key) => eventOf(key, 1)))
      await received.until(2)
      same(received.deliveries.length, 2, 'deliveries that are out')
      await received.deliveries[0]?.ack()
      await received.until(3)
      same(received.deliveries.length, 3, 'deliveries after one was answered')
    },
  },
  {
    id: 'broker.deliver.03',
    title: 'MUST deliver each message to every group, and to one of those who share it',
    async run(world) {
      const [one, other, second] = [
        await receiving(world, 'one', 1),
        await receiving(world, 'other', 10),
        await receiving(world, 'one', 1),
      ]
      const keys = Array.from({ length: 20 }, (_, index) => `k${index}`)
      await publish(world, ...keys.map((key) => eventOf(key, 1)))
      await other.until(20)
      for (let tries = 0; one.deliveries.length + second.deliveries.length < 20 && tries < 200; tries += 1) {
        await world.passes(50)
      }
      const wanted = keys.map((key) => `${key}-1`).sort()
      same([...one.ids(), ...second.ids()].sort(), wanted, 'what those who share got')
      same([...other.ids()].sort(), wanted, 'what the other group got')
    },
  },
  {
    id: 'broker.deliver.04',
    title: 'MUST deliver a message again after the delay that was asked for, and not before',
    deniedBy: ({ delay, because }) => (delay ? undefined : (because.delay ?? 'it has no delay')),
    async run(world) {
      const received = await receiving(world, 'one', 10, async (delivery) => {
        if (received.deliveries.length === 1) await delivery.again(2_000)
        else await delivery.ack()
      })
      await publish(world, eventOf('a', 1))
      await received.until(1)
      await world.passes(500)
      same(received.deliveries.length, 1, 'deliveries before the delay is over')
      await world.passes(2_000)
      await received.until(2)
      same(received.ids(), ['a-1', 'a-1'], 'deliveries')
    },
    async refusal(world) {
      const received = await receiving(world, 'one', 10, async (delivery) => {
        if (received.deliveries.length === 1) await delivery.again(2_000)
        else await delivery.ack()
      })
      await publish(world, eventOf('a', 1))
      await received.until(2)
      same(received.ids(), ['a-1', 'a-1'], 'deliveries')
    },
  },
  {
    id: 'broker.deliver.05',
    title: 'MUST deliver again what was not answered when a subscription was lost, and refuse answers to the lost one',
    async run(world) {
      const lost = await receiving(world, 'one', 10, unanswered)
      await publish(world, eventOf('a', 1), eventOf('b', 1))
      await lost.until(2)
      await lost.deliveries.find(({ content }) => !('unreadable' in content) && content.key === 'b')?.ack()
      const ended = failing(lost.subscription.ended)
      await world.cut()
      await ended
      const received = await receiving(world, 'one', 10)
      await received.until(1)
      same(received.ids(), ['a-1'], 'what comes again')
      const waiting = lost.deliveries.find(({ content }) => !('unreadable' in content) && content.key === 'a')
      if (waiting !== undefined) await failing(waiting.ack())
    },
  },
  {
    id: 'broker.deliver.06',
    title: 'MUST say how often a message was delivered',
    deniedBy: ({ deliveryCount, because }) =>
      deliveryCount === 'exact' ? undefined : (because.deliveryCount ?? 'it does not count deliveries'),
    async run(world) {
      const received = await receiving(world, 'one', 10, (delivery) =>
        delivery.count === 3 ? delivery.ack() : delivery.again(0),
      )
      await publish(world, eventOf('a', 1))
      await received.until(3)
      same(
        received.deliveries.map(({ count }) => count),
        [1, 2, 3],
        'counts',
      )
    },
    async refusal(world) {
      const received = await receiving(world, 'one', 10)
      await publish(world, eventOf('a', 1))
      await received.until(1)
      holds(received.deliveries[0]?.count === undefined || received.deliveries[0].count === 1, 'the first has no count')
    },
  },
  {
    id: 'broker.deliver.07',
    title: 'MUST never deliver again what was acknowledged or refused, and take the first answer only',
    async run(world) {
      const received = await receiving(world, 'one', 10, async (delivery) => {
        const isFirst = !('unreadable' in delivery.content) && delivery.content.key === 'a'
        await (isFirst ? delivery.ack() : delivery.refuse('it is ugly'))
        await delivery.again(0).catch(() => undefined)
      })
      await publish(world, eventOf('a', 1), eventOf('b', 1))
      await received.until(2)
      const after = await receiving(world, 'one', 10)
      await world.passes(500)
      same([received.deliveries.length, after.deliveries.length], [2, 0], 'deliveries')
    },
  },
  {
    id: 'broker.deliver.08',
    title: 'MUST deliver nothing to a subscription that is paused or drained, and end it when all is answered',
    async run(world) {
      const received = await receiving(world, 'one', 10, unanswered)
      received.subscription.pause()
      await publish(world, eventOf('a', 1))
      await world.passes(200)
      same(received.deliveries.length, 0, 'deliveries while it is paused')
      received.subscription.resume()
      await received.until(1)
      let isDrained = false
      const drained = received.subscription.drain().then(() => {
        isDrained = true
      })
      await publish(world, eventOf('b', 1))
      await world.passes(200)
      same([received.deliveries.length, isDrained], [1, false], 'deliveries while it is drained')
      await received.deliveries[0]?.ack()
      await drained
      await received.subscription.ended
      const next = await receiving(world, 'one', 10)
      await next.until(1)
      same(next.ids(), ['b-1'], 'what the next one gets')
    },
  },
  {
    id: 'broker.deliver.09',
    title: 'MUST hand out what is no event as it is, with the reason',
    async run(world) {
      const received = await receiving(world, 'one', 10)
      await world.putRaw('{"specversion":"1.0"}')
      await received.until(1)
      const content = received.deliveries[0]?.content
      holds(content !== undefined && 'unreadable' in content && content.unreadable !== '', 'there is a reason')
      same(content !== undefined && 'raw' in content && content.raw, '{"specversion":"1.0"}', 'what came')
    },
  },
]
