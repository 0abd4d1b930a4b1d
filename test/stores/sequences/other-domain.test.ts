// A handle of another domain: a number would be written there, and its effect here. It is refused before anything is.

import { beforeAll, describe, expect, it } from 'vitest'
import type { Sequence } from '../../../src/sequence/index.js'
import { memory } from '../../../src/stores/memory/index.js'
import { engines, type Handle, type LedgerWorld } from '../operations/worlds.js'

type Domain = LedgerWorld['db']

const opened: { readonly name: string; readonly db: Domain; orders: Sequence<Handle>; epoch: number }[] = []

describe('accept', () => {
  beforeAll(async () => {
    // Two of each engine, so that not the engine alone tells them apart.
    for (const [name, open] of [...engines, ...engines]) opened.push(await entry(name, (await open()).db))
    const inMemory: unknown = memory({ name: 'operations' })
    opened.push(await entry('memory', inMemory as Domain))
  })

  async function entry(name: string, db: Domain) {
    const orders = db.sequence('orders')
    return { name, db, orders, epoch: await orders.open('till') }
  }

  it('refuses the handle of any other domain, and takes that of its own', async () => {
    for (const own of opened) {
      const first = { producer: 'till', epoch: own.epoch, number: 1 }
      for (const other of opened) {
        if (other === own) continue
        const accepting = other.db.transact((tx) => own.orders.accept(tx, first, () => expect.unreachable()))
        await expect(accepting, `${own.name} by ${other.name}`).rejects.toMatchObject({
          code: 'ARGUMENT_INVALID',
          details: { domain: 'operations' },
        })
      }
    }
    // Nothing was written by those: the number is still the next one in each.
    for (const { db, orders, epoch } of opened) {
      const accepting = db.transact((tx) => orders.accept(tx, { producer: 'till', epoch, number: 1 }, () => 'done'))
      expect(await accepting).toEqual({ result: 'new', value: 'done' })
    }
  })
})
