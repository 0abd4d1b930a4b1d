// Every conformance case on every store and driver that runs on this Node, and the table of what was run and what was refused.

import Libsql from 'libsql'
import { afterAll, describe, expect, inject, it } from 'vitest'
import type { SqliteHandle } from '../../../src/stores/sqlite/index.js'
import {
  type CaseOutcome,
  keyCases,
  rowCases,
  runConformanceCase,
  transactionCases,
} from '../../../src/testing/index.js'
import { tableOf } from './cells.js'
import { memoryWorld } from './memory-world.js'
import { postgresWorld } from './postgres-world.js'
import { sqliteWorld } from './sqlite-world.js'
import type { StoreUnderTest } from './store-under-test.js'

const stores: readonly StoreUnderTest[] = [
  { name: 'memory', open: memoryWorld },
  { name: 'sqlite (libsql)', open: () => sqliteWorld((file) => new Libsql(file) as unknown as SqliteHandle) },
  { name: 'postgres (pg)', open: () => postgresWorld(inject('postgresUrl')) },
]
const cases = [...transactionCases, ...keyCases, ...rowCases]
const outcomes = new Map<string, CaseOutcome>()

for (const store of stores) {
  describe(store.name, () => {
    for (const subject of cases) {
      it(`${subject.id} ${subject.title}`, async () => {
        const world = await store.open()
        try {
          outcomes.set(`${subject.id} ${store.name}`, await runConformanceCase(subject, world))
        } finally {
          await world.close()
        }
      })
    }
  })
}

it('runs or refuses every cell', () => {
  expect(outcomes.size).toBe(cases.length * stores.length)
})

afterAll(() => {
  const names = stores.map(({ name }) => name)
  console.log(tableOf(cases, names, ({ id }, store) => outcomes.get(`${id} ${store}`)))
})
