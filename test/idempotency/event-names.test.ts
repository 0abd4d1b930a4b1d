import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { expect, it } from 'vitest'
import { happened, leased, resolve } from '../../src/idempotency/index.js'
import { type Key, mintKey, scope } from '../../src/identity/index.js'
import { memory } from '../../src/stores/memory/index.js'
import {
  type OperationLeaseEvent,
  operationLease,
  operationSweep,
  transactionAttempt,
} from '../../src/telemetry/index.js'

const identity = { scope: () => scope('north'), key: (key: Key) => key, window: '24h' } as const

async function heard(channel: string, work: () => Promise<unknown>): Promise<unknown[]> {
  const events: unknown[] = []
  const listen = (event: unknown) => void events.push(event)
  subscribe(channel, listen)
  await work().catch(() => undefined)
  unsubscribe(channel, listen)
  return events
}

it('the event of a failed attempt names operation and record, as far as there are such', async () => {
  const db = memory({ name: 'shop' })
  const fail = async () => {
    throw new Error('the body failed')
  }
  const pay = db.operation('pay', { ...identity, run: fail })
  const named = { domain: 'shop', operation: 'pay', id: expect.stringMatching(/^sha256:/) }
  expect(await heard(transactionAttempt.name, () => pay(mintKey()))).toEqual([expect.objectContaining(named)])
  const [bare] = await heard(transactionAttempt.name, () => db.transact(fail))
  expect(bare).toMatchObject({ domain: 'shop', attempt: 1 })
  expect(bare).not.toHaveProperty('id')
  expect(bare).not.toHaveProperty('operation')
})

it('the event of a sweep names operation and record', async () => {
  const db = memory({ name: 'shop' })
  const charge = leased('charge', {
    ...identity,
    store: db,
    lease: '30s',
    lookAfter: 0,
    recover: resolve(() => happened('receipt')),
    run: (lease) => lease.effect('capture', () => Promise.reject<string>(new Error('the answer got lost'))),
  })
  await expect(charge(mintKey())).rejects.toMatchObject({ code: 'OPERATION_UNKNOWN' })
  const events = await heard(operationSweep.name, () => db.sweep([charge]))
  expect(events).toEqual([
    { domain: 'shop', operation: 'charge', id: expect.stringMatching(/^sha256:/), what: 'succeeded' },
  ])
})

it('every event of a claim names operation and record', async () => {
  const db = memory({ name: 'shop' })
  const options = { ...identity, store: db, lease: '30s', recover: resolve(() => happened('receipt')) } as const
  const charge = leased('charge', { ...options, run: async () => 'receipt' })
  const events = await heard(operationLease.name, () => charge(mintKey()))
  const { id } = events[0] as OperationLeaseEvent
  expect(id).toMatch(/^sha256:/)
  const named = { domain: 'shop', operation: 'charge', id }
  expect(events).toMatchObject([
    { ...named, what: 'claimed' },
    { ...named, what: 'completed' },
  ])
})
