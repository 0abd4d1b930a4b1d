// Outcomes that recovery finds and the store cannot keep whole: whoever asked has them in hand and gets them, a repeat
// is refused, and nothing runs again.

import { describe, expect, it } from 'vitest'
import { happened, leased, type Operations, resolve } from '../../../src/idempotency/index.js'
import { mintKey } from '../../../src/identity/index.js'
import { memory } from '../../../src/stores/memory/index.js'
import { itemStore } from '../sqlite/files.js'
import { identity, type Order } from './worlds.js'

type Store = Parameters<typeof leased>[1]['store'] & Operations<never>
const large = 'x'.repeat(2_000)
const date = new Date(0)

const stores: readonly (readonly [string, () => Promise<Store>])[] = [
  ['memory', async () => memory({ name: 'shop' }) as unknown as Store],
  ['SQLite', async () => (await itemStore()) as unknown as Store],
]

describe.each(stores)('on %s', (_name, open) => {
  async function charging(found: unknown) {
    const db = await open()
    let runs = 0
    const charge = leased<Order, unknown>('charge', {
      ...identity,
      store: db,
      lease: '30s',
      largestOutcome: 1_000,
      lookAfter: 0,
      recover: resolve(() => happened(found)),
      run: (lease) => {
        runs += 1
        return lease.effect('send', () => Promise.reject(new Error('maybe sent')))
      },
    })
    const order = { key: mintKey(), amount: 5 }
    await expect(charge(order)).rejects.toMatchObject({ code: 'OPERATION_UNKNOWN' })
    return { db, charge, order, runs: () => runs }
  }

  it.each([
    [
      'larger than what is kept',
      large,
      'OUTCOME_TOO_LARGE',
      'The operation is done, and its outcome was too large to keep.',
    ],
    [
      'none that JSON has',
      date,
      'OUTCOME_UNREADABLE',
      'The operation is done; its outcome was none that could be stored.',
    ],
  ] as const)('the caller who asked gets a value that is %s', async (_what, value, code, message) => {
    const { charge, order, runs } = await charging(value)
    expect(await charge.outcome(order)).toEqual({ outcome: 'succeeded', value, replayed: true })
    await expect(charge(order)).rejects.toMatchObject({ code, message, details: { outcome: 'succeeded' } })
    expect(runs()).toBe(1)
  })

  it('a sweep that is told of such a value keeps that it is done', async () => {
    const { db, charge, order, runs } = await charging(large)
    expect(await db.sweep([charge])).toMatchObject({ taken: 1 })
    await expect(charge(order)).rejects.toMatchObject({ code: 'OUTCOME_TOO_LARGE' })
    expect(runs()).toBe(1)
  })
})
