import diagnostics from 'node:diagnostics_channel'
import { afterEach, expect, it } from 'vitest'
import { chargeOptions, type Receipt, world } from '../../../test/idempotency/leased-world.js'
import { operationId } from '../call-identity.js'
import { fail } from '../outcome.js'
import { leased } from './leased.js'
import { hold } from './recovery.js'

const names = ['claimed', 'executed', 'failed', 'replayed', 'refused', 'lease'] as const
const stop: (() => void)[] = []
afterEach(() => {
  for (const end of stop.splice(0)) end()
})

function heard(): [string, Record<string, unknown>][] {
  const events: [string, Record<string, unknown>][] = []
  for (const name of names) {
    const listener = (message: unknown): unknown => events.push([name, message as Record<string, unknown>])
    diagnostics.subscribe(`reprise.operation.${name}`, listener)
    stop.push(() => diagnostics.unsubscribe(`reprise.operation.${name}`, listener))
  }
  return events
}

it('tells of claims, outcomes, replays and refusals, by the name of the record and never by the key', async () => {
  const one = world()
  const options = chargeOptions<'declined'>({
    store: one.store(),
    failures: ['declined'],
    run: (_lease, { amount }): Receipt | ReturnType<typeof fail<'declined'>> =>
      amount > 9 ? fail('declined') : { charge: amount },
  })
  const charge = leased('charge', options)
  const [order, dear] = [one.order(5), one.order(10)]
  const events = heard()
  await charge(order)
  await charge(order)
  await expect(charge({ ...order, amount: 6 })).rejects.toMatchObject({ code: 'OPERATION_MISMATCH' })
  await charge.outcome(dear)
  const about = (of: typeof order) => ({
    domain: 'test',
    operation: 'charge',
    mode: 'leased',
    id: operationId('charge', options.scope(of), of.key),
  })
  expect(events.filter(([name]) => name !== 'lease')).toEqual([
    ['claimed', { ...about(order), attempt: 1 }],
    ['executed', about(order)],
    ['replayed', { ...about(order), outcome: 'succeeded', from: 'store' }],
    ['refused', { ...about(order), code: 'OPERATION_MISMATCH' }],
    ['claimed', { ...about(dear), attempt: 1 }],
    ['failed', about(dear)],
  ])
  expect(events.filter(([name]) => name === 'lease').map(([, { what, why }]) => [what, why])).toEqual([
    ['claimed', undefined],
    ['completed', 'succeeded'],
    ['claimed', undefined],
    ['completed', 'failed'],
  ])
  expect(JSON.stringify(events)).not.toContain(order.key)
})

it('tells of an outcome that became unknown, and of every call that is refused because of it', async () => {
  const one = world()
  const options = chargeOptions({
    store: one.store(),
    recover: hold(),
    run: async () => Promise.reject(new Error('nobody knows')),
  })
  const charge = leased('charge', options)
  const order = one.order(5)
  const events = heard()
  await expect(charge(order)).rejects.toMatchObject({ code: 'OPERATION_UNKNOWN' })
  await expect(charge(order)).rejects.toMatchObject({ code: 'OPERATION_UNKNOWN' })
  const told = events.map(([name, { what, code }]) => [name, what ?? code])
  expect(told).toEqual([
    ['lease', 'claimed'],
    ['claimed', undefined],
    ['lease', 'unknown'],
    ['refused', 'OPERATION_UNKNOWN'],
    ['refused', 'OPERATION_UNKNOWN'],
  ])
})
