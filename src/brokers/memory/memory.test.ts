import { describe, expect, it } from 'vitest'
import type { Message } from '../../atomicity/index.js'
import { deadlineAfter } from '../../kernel/index.js'
import type { Delivery } from '../../messaging/index.js'
import { manualClock } from '../../testing/index.js'
import { memoryBroker } from './index.js'

const message = (id: string): Message => ({
  source: '/shop',
  id,
  type: 'order.placed',
  subject: 'order/1',
  key: 'order/1',
  place: { epoch: 1, number: 1 },
  version: undefined,
  atMs: 0,
  intent: undefined,
  traceparent: undefined,
  schema: undefined,
  data: { total: 12 },
})

describe('a broker in memory', () => {
  it('refuses options that it does not know or cannot hold', () => {
    expect(() => memoryBroker({ nothing: 1 } as never)).toThrow(/nothing/)
    expect(() => memoryBroker({ most: 0 })).toThrow(/most/)
  })

  it('delivers what was given back once more, and counts', async () => {
    const clock = manualClock()
    const broker = memoryBroker({ clock })
    const published = await broker
      .publisher('orders')
      .publish([message('m-1')], { deadline: deadlineAfter('1s', clock) })
    expect(published).toEqual([{ is: 'confirmed' }])
    const counts: (number | undefined)[] = []
    const done = new Promise<void>((resolve) => {
      const receive = async (delivery: Delivery): Promise<void> => {
        counts.push(delivery.count)
        expect(delivery.content).toEqual(message('m-1'))
        if (counts.length === 1) return delivery.again(0)
        await delivery.ack()
        resolve()
      }
      void broker.source('orders').open(receive, { inFlight: 1 })
    })
    await done
    expect(counts).toEqual([1, 2])
    expect(broker.waiting('orders')).toBe(0)
  })
})
