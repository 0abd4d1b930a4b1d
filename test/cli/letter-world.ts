// Dead letters in a file, for commands to work on.

import { consume } from '../../src/messaging/index.js'
import { type StoreWorld, withStoreWorld } from './store-world.js'

/** What a test gets. */
export interface LetterWorld extends StoreWorld {
  /** Lets the consumer `receipts` work; what it has handled so far. */
  consumed(): Promise<readonly string[]>
}

/** Runs a test with dead letters of the messages `m-1`, `m-2`, …, each of a key of its own, with one behind it. */
export async function withLetters(count: number, test: (world: LetterWorld) => Promise<void>): Promise<void> {
  await withStoreWorld(async (world) => {
    const { db } = world
    const handled: string[] = []
    const bad = new Set(Array.from({ length: count }, (_, index) => `m-${index + 1}`))
    const receipts = consume(db, {
      name: 'receipts',
      from: db,
      handle: (_tx, { id }) => {
        if (bad.has(id)) throw new TypeError('it has no currency')
        handled.push(id)
      },
    })
    const consumed = async (): Promise<readonly string[]> => {
      await receipts.drain()
      return [...handled]
    }
    await consumed()
    for (const id of bad) {
      const placed = { type: 'order.placed', subject: `order of ${id}` }
      await db.transact((tx) =>
        tx.emit([
          { ...placed, id, data: { secret: 4711 } },
          { ...placed, id: `${id}-next`, data: {} },
        ]),
      )
    }
    await consumed()
    bad.clear()
    await test({ ...world, consumed })
  })
}
