// The store in memory under the conformance suite.

import { memory } from '../../../src/stores/memory/index.js'
import type { OpenWorld } from './store-under-test.js'

/** A fresh store in memory. */
export async function memoryWorld(): Promise<OpenWorld> {
  const db = memory({ name: 'memory' })
  db.table('effects', { unique: [['number']] })
  db.table('items', { unique: [['id']] })
  db.table('commands', { unique: [['command']] })
  let effects = 0
  return {
    db,
    connections: 1,
    second: async () => db,
    async effect(tx, intent) {
      await tx.insertOnce('effects', { number: ++effects, intent }, ['number'])
    },
    async offend(tx) {
      await tx.updateRows('nowhere', { id: 'x' }, { amount: 1 })
    },
    effectsOf: async (intent) => db.rows('effects').filter((row) => row['intent'] === intent).length,
    putRecord: async (id, record) => db.putRecord(id, record),
    item: async (id) => db.rows('items').find((row) => row['id'] === id),
    async putItem({ id, state = 'new', amount = 0 }) {
      const item = { id, state, amount, version: 0, last_command: null, token: null }
      await db.transact((tx) => tx.insertOnce('items', item, ['id']))
    },
    close: () => db.close(),
  }
}
