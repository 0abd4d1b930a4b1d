// The cases of brokers on the one in memory, and brokers that do less than they must.

import { describe, expect, it } from 'vitest'
import { memoryBroker } from '../../../brokers/memory/index.js'
import { eventLoopTurn } from '../../../kernel/index.js'
import type { Delivery, Source } from '../../../messaging/index.js'
import { manualClock } from '../../manual-clock.js'
import { type BrokerWorld, runBrokerCase } from './broker-case.js'
import { brokerCases } from './broker-cases.js'

function memoryWorld(order: 'key' | 'none'): BrokerWorld {
  const clock = manualClock()
  const broker = memoryBroker({ order, clock })
  const turn = async (): Promise<void> => {
    for (let turns = 0; turns < 3; turns += 1) await eventLoopTurn()
  }
  broker.faults.refuses = ({ type }) => (type === 'ugly' ? 'it is ugly' : undefined)
  return {
    publisher: broker.publisher('topic'),
    clock,
    source: (group) => broker.source('topic', group),
    passes: async (ms) => {
      await turn()
      await clock.advance(ms)
    },
    cut: async () => broker.faults.cut(),
    away: async (isAway) => {
      broker.faults.isAway = isAway
    },
    putRaw: async (text) => broker.putRaw('topic', text),
    unwelcome: (message) => ({ ...message, type: 'ugly' }),
  }
}

const outcome = async (id: string, world: BrokerWorld): Promise<unknown> => {
  const subject = brokerCases.find((one) => one.id === id)
  return subject === undefined ? 'no such case' : runBrokerCase(subject, world)
}

/** A world whose deliveries were tampered with. */
function delivering(change: (delivery: Delivery) => Delivery): BrokerWorld {
  const world = memoryWorld('key')
  const source = (group: string): Source => {
    const real = world.source(group)
    return { ...real, open: (receive, limits) => real.open((delivery) => receive(change(delivery)), limits) }
  }
  return { ...world, source }
}

/** A world whose answers were tampered with. */
function answering(change: (answers: readonly unknown[]) => unknown): BrokerWorld {
  const world = memoryWorld('key')
  const { manifest, publish } = world.publisher
  return {
    ...world,
    publisher: { manifest, publish: async (messages, limits) => change(await publish(messages, limits)) as never },
  }
}

/** Bugs that a broker may have, and the cases that find them. */
const bugs: Readonly<Record<string, readonly [cases: readonly string[], world: () => BrokerWorld]>> = {
  'confirms everything': [
    ['publish.02', 'publish.04', 'publish.05'],
    () => answering((answers) => answers.map(() => ({ is: 'confirmed' }))),
  ],
  'throws where it is away': [
    ['publish.04'],
    () =>
      answering((answers) => {
        if (JSON.stringify(answers).includes('unsent')) throw new Error('away')
        return answers
      }),
  ],
  'loses the key': [
    ['publish.01'],
    () =>
      delivering((delivery) => ({ ...delivery, content: { ...delivery.content, key: 'x' } as Delivery['content'] })),
  ],
  'does not count': [['deliver.06'], () => delivering((delivery) => ({ ...delivery, count: 1 }))],
  'has no delay': [['deliver.04'], () => delivering((delivery) => ({ ...delivery, again: () => delivery.again(0) }))],
  'delivers again what was refused': [
    ['deliver.07'],
    () => delivering((delivery) => ({ ...delivery, refuse: () => delivery.again(0) })),
  ],
  'forgets what was not answered': [
    ['deliver.05'],
    () => {
      const world = delivering((delivery) => {
        void delivery.ack()
        return { ...delivery, ack: async () => {} }
      })
      return world
    },
  ],
  'takes answers to a lost delivery': [
    ['deliver.05'],
    () => delivering((delivery) => ({ ...delivery, ack: () => delivery.ack().catch(() => undefined) })),
  ],
  'knows no limit': [
    ['deliver.02'],
    () => {
      const world = memoryWorld('key')
      const source = (group: string): Source => {
        const real = world.source(group)
        return { ...real, open: (receive) => real.open(receive, { inFlight: 100 }) }
      }
      return { ...world, source }
    },
  ],
  'keeps no order and says that it does': [
    ['publish.03'],
    () => {
      const world = memoryWorld('none')
      return { ...world, publisher: { ...world.publisher, manifest: memoryBroker().manifest } }
    },
  ],
}

describe.each(['key', 'none'] as const)('a broker in memory, order %s', (order) => {
  it.each(brokerCases.map(({ id, title }) => [id, title]))('%s %s', async (id) => {
    expect(await outcome(id as string, memoryWorld(order))).toMatch(/^(passed|refused: .+)$/)
  })
})

describe('cases of brokers', () => {
  it.each(Object.keys(bugs))('catch a broker that %s', async (bug) => {
    const [cases, world] = bugs[bug] as (typeof bugs)[string]
    for (const id of cases) await expect(outcome(`broker.${id}`, world())).rejects.toThrow()
  })
})
