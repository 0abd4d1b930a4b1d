// The store in memory under the conformance suite.

import type { Match } from '../../../src/atomicity/index.js'
import type { MemoryHandle } from '../../../src/stores/memory/handle.js'
import { memory } from '../../../src/stores/memory/index.js'
import type { OutboxRow } from '../../../src/testing/index.js'
import type { OpenWorld } from './store-under-test.js'

const memoryKeys = {
  head: ['key'],
  message: ['source', 'id'],
  reader: ['name'],
  lane: ['reader', 'key'],
} as const
const laneDefaults = {
  epoch: 0,
  number: 0,
  known_epoch: 0,
  known_number: 0,
  state: 0,
  due_at_ms: 0,
  owner: null,
  attempt: 0,
  claims: 0,
  failures: 0,
  history: '',
}

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
    outboxRows: async (table) => db.rows(`reprise_${table}`) as readonly OutboxRow[],
    async putOutboxRow(table, row) {
      const defaults = table === 'lane' ? laneDefaults : {}
      await db.transact((tx) => tx.upsert(`reprise_${table}`, { ...defaults, ...row }, memoryKeys[table]))
    },
    async emptyOutboxRows(table) {
      for (const row of db.rows(`reprise_${table}`)) {
        await db.transact((tx) => (tx as MemoryHandle).removeRows(`reprise_${table}`, row as Match))
      }
    },
    close: () => db.close(),
  }
}
