// A heartbeat among many who want to write: it goes first, so that a claim is not lost to a queue.

import { expect, it } from 'vitest'
import { hold, leased } from '../../../src/idempotency/index.js'
import { type Key, mintKey, scope } from '../../../src/identity/index.js'
import { eventLoopTurn } from '../../../src/kernel/index.js'
import { sqlite } from '../../../src/stores/sqlite/index.js'
import { freshFile } from './files.js'

it('is written before transactions that have waited longer', async () => {
  const db = sqlite({ name: 'shop', file: freshFile() })
  await db.migrate()
  const order: string[] = []
  let free: () => void = () => undefined
  const held = new Promise<void>((resolve) => {
    free = resolve
  })
  const charge = leased('charge', {
    store: db,
    scope: () => scope('north'),
    key: (key: Key) => key,
    window: '1h',
    lease: '30s',
    recover: hold(),
    run: async (lease) => {
      const first = db.transact(() => held)
      await eventLoopTurn()
      const others = ['a', 'b'].map((name) =>
        db.transact(async () => {
          await eventLoopTurn()
          order.push(name)
        }),
      )
      await eventLoopTurn()
      const renewed = lease.renew().then(() => order.push('heartbeat'))
      await eventLoopTurn()
      expect(order).toEqual([])
      free()
      await Promise.all([first, renewed, ...others])
      return 1
    },
  })
  expect(await charge(mintKey())).toBe(1)
  expect(order).toEqual(['heartbeat', 'a', 'b'])
  await db.close()
})
