import { expect, it } from 'vitest'
import { messageOf } from '../../../../test/messaging/consumer/scripted-source.js'
import { busy, world } from '../../../../test/messaging/consumer/world.js'
import { armFaultPoints } from '../../../kernel/index.js'
import { consumerFaultPoints } from './fault-points.js'

it('are all reached by a message that fails once, and by nothing else', async () => {
  const reached = new Set<string>()
  const disarm = armFaultPoints((point) => {
    if (point.startsWith('consumer.')) reached.add(point)
  })
  try {
    const { source, failing, drain, later } = world()
    failing.set('1', busy)
    source.send(messageOf('1', 'a'), messageOf('2', 'b'))
    await drain()
    failing.clear()
    await later(1_000)
  } finally {
    disarm()
  }
  expect([...reached].sort()).toEqual([...consumerFaultPoints].sort())
})
