// The store in memory against a plain model: drawn transactions with savepoints, some of which fail.

import fc from 'fast-check'
import { expect } from 'vitest'
import { type MemoryDomain, memory } from '../../../src/stores/memory/index.js'
import { property } from '../../property.js'
import { drawnCase, inModel, inStore, type Model, rowsOf, unlessExpected } from '../transaction-model.js'

async function contents(db: MemoryDomain): Promise<(readonly [number, unknown])[]> {
  const found: (readonly [number, unknown])[] = []
  for (const id of [0, 1, 2, 3, 4]) {
    const row = await db.transact((tx) => tx.readRow('player', { id }), { readOnly: true })
    if (row !== undefined) found.push([id, row['team']])
  }
  return found
}

property(
  'commits, rolls back and undoes exactly as the model does',
  [fc.array(drawnCase, { maxLength: 5 })],
  async (cases) => {
    const db = memory({ name: 'model' })
    db.table('player', { unique: [['id']] })
    const model: Model = new Map()
    for (const drawn of cases) {
      await unlessExpected(db.transact((tx) => inStore(tx, drawn)))
      inModel(model, drawn)
      expect(await contents(db)).toEqual(rowsOf(model))
    }
  },
  { cases: 2_000 },
)
