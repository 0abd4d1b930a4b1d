// Every conformance case on every store and driver, and the table of what was run and what was refused.

import { subscribe } from 'node:diagnostics_channel'
import Libsql from 'libsql'
import { afterAll, describe, expect, inject, it } from 'vitest'
import type { SqliteHandle } from '../../../src/stores/sqlite/index.js'
import type { TransactionSharedEvent } from '../../../src/telemetry/index.js'
import {
  emitCases,
  keyCases,
  messageCases,
  operationCases,
  recordCases,
  rowCases,
  sequenceCases,
  transactionCases,
} from '../../../src/testing/index.js'
import { MissingServer } from '../../servers/missing.js'
import { pgStack, typeormStack } from '../callback/orms.js'
import { callbackWorld, sqliteCallbackWorld } from './callback-world.js'
import { type CellOutcome, tableOf } from './cells.js'
import { memoryWorld } from './memory-world.js'
import { inAnotherProcess } from './other-process.js'
import { postgresWorld } from './postgres-world.js'
import { isSociable, sqliteWorld } from './sqlite-world.js'
import { inThisProcess, type StoreUnderTest } from './store-under-test.js'

const inCompany = 'sqlite, in company'
let sharedCommits = 0
subscribe('reprise.transaction.shared', (event) => {
  const { members, outcome } = event as TransactionSharedEvent
  if (members > 1 && outcome === 'committed') sharedCommits += 1
})

const libsql = (file: string) => new Libsql(file) as unknown as SqliteHandle
const stores: readonly StoreUnderTest[] = [
  inThisProcess('memory', memoryWorld),
  inThisProcess('sqlite (libsql)', () => sqliteWorld(libsql)),
  inThisProcess(inCompany, (subject) => sqliteWorld(libsql, { inCompany: isSociable(subject) })),
  inAnotherProcess('node:sqlite'),
  inAnotherProcess('better-sqlite3'),
  inThisProcess('postgres (pg)', () => postgresWorld(inject('postgresUrl'))),
  inThisProcess('callback (typeorm)', () => callbackWorld(inject('postgresUrl'), typeormStack)),
  inThisProcess('callback (libsql)', sqliteCallbackWorld),
  inThisProcess('callback (pg)', () =>
    callbackWorld(inject('postgresUrl'), async (url, defaults) => pgStack(url, defaults)),
  ),
]
const cases = [
  ...transactionCases,
  ...keyCases,
  ...rowCases,
  ...recordCases,
  ...operationCases,
  ...sequenceCases,
  ...messageCases,
  ...emitCases,
]
const outcomes = new Map<string, CellOutcome>()

for (const store of stores) {
  describe(store.name, () => {
    for (const subject of cases) {
      it(`${subject.id} ${subject.title}`, async () => {
        const cell = `${subject.id} ${store.name}`
        outcomes.set(cell, 'FAILED')
        const outcome = await store.run(subject).catch((error) => {
          if (error instanceof MissingServer) outcomes.set(cell, 'skipped')
          throw error
        })
        outcomes.set(cell, outcome)
      })
    }
  })
}

it('runs or refuses every cell', () => {
  const ended = [...outcomes.values()].filter((outcome) => outcome !== 'FAILED')
  expect(ended).toHaveLength(cases.length * stores.length)
})

it('saw COMMITs shared by those in company', () => {
  const ran = [...outcomes.keys()].some((cell) => cell.endsWith(inCompany))
  if (ran) expect(sharedCommits).toBeGreaterThan(10)
})

afterAll(() => {
  const names = stores.map(({ name }) => name)
  const table = tableOf(cases, names, ({ id }, store) => outcomes.get(`${id} ${store}`))
  const elsewhere = stores.flatMap(({ name, about }) => (about === undefined ? [] : [`${name}: ${about()}`]))
  console.log([table, ...elsewhere].join('\n'))
})
