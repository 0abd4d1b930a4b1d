import diagnostics from 'node:diagnostics_channel'
import { afterEach, expect, it } from 'vitest'
import { type Key, mintKey, scope } from '../../identity/index.js'
import { memory } from '../../stores/memory/index.js'
import { manualClock } from '../../testing/index.js'
import { fail, operationId } from '../index.js'

const names = ['claimed', 'executed', 'failed', 'replayed', 'refused'] as const
const stop: (() => void)[] = []
afterEach(() => {
  for (const end of stop.splice(0)) end()
})

function heard(): unknown[][] {
  const events: unknown[][] = []
  for (const name of names) {
    const listener = (message: unknown): unknown => events.push([name, message])
    diagnostics.subscribe(`reprise.operation.${name}`, listener)
    stop.push(() => diagnostics.unsubscribe(`reprise.operation.${name}`, listener))
  }
  return events
}

it('tells what was claimed, executed, replayed, refused and failed, by the name of the record and never by the key', async () => {
  const db = memory({ name: 'shop', clock: manualClock() })
  const pay = db.operation('pay', {
    scope: () => scope('shop'),
    key: ({ key }: { key: Key; amount: number }) => key,
    window: '1h',
    failures: ['declined'],
    run: (_tx, { amount }) => (amount > 9 ? fail('declined') : amount),
  })
  const events = heard()
  const [key, other] = [mintKey(), mintKey()]
  await Promise.all([pay({ key, amount: 1 }), pay({ key, amount: 1 })])
  await pay({ key, amount: 1 })
  await pay({ key, amount: 2 }).catch(() => undefined)
  await pay.outcome({ key: other, amount: 10 })
  const about = (of: Key) => ({
    domain: 'shop',
    operation: 'pay',
    mode: 'atomic',
    id: operationId('pay', scope('shop'), of),
  })
  expect(events).toEqual([
    ['claimed', { ...about(key), attempt: 1 }],
    ['executed', about(key)],
    ['replayed', { ...about(key), outcome: 'succeeded', from: 'leader' }],
    ['replayed', { ...about(key), outcome: 'succeeded', from: 'store' }],
    ['refused', { ...about(key), code: 'OPERATION_MISMATCH' }],
    ['claimed', { ...about(other), attempt: 1 }],
    ['failed', about(other)],
  ])
  expect(JSON.stringify(events)).not.toContain(key)
})
