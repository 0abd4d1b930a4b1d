// A store of five methods and a manifest passes every conformance case for which records are enough. What it cannot do
// is skipped for no other reason than its manifest, and atomic operations on it do not compile.

import { afterAll, expect, it } from 'vitest'
import type { RecordStore } from '../../../src/atomicity/index.js'
import { operationDomain } from '../../../src/idempotency/domain.js'
import { lookup, operationsOf, purge, settle, sweep } from '../../../src/idempotency/index.js'
import { RepriseError } from '../../../src/kernel/index.js'
import {
  type CaseOutcome,
  type ConformanceStore,
  leasedOperationCases,
  leasedRecordCases,
  type RecordWorld,
  runConformanceCase,
} from '../../../src/testing/index.js'
import { PlainMap, plainMapStore } from './plain-map-store.js'

/** The store with the upkeep of its operations, as a user calls it. */
function upkept(store: RecordStore): ConformanceStore {
  return {
    ...store,
    lookup: (which, call) => lookup({ ...which, store }, call),
    settle: (which, settlement, options) => settle({ ...which, store }, settlement, options),
    sweep: (operations, options) => sweep({ ...options, operations, store }),
    purge: (options) => purge({ ...options, store }),
  }
}

function plainMapWorld(): RecordWorld {
  const server = new PlainMap()
  return {
    db: upkept(plainMapStore(server)),
    async second({ clock } = {}) {
      const store = plainMapStore(server)
      // Only the cases about stopped processes have a clock of their own; a user needs no such line.
      if (clock !== undefined) operationDomain(store, { clock })
      return upkept(store)
    },
    putRecord: async (id, record) => void server.records.set(id, record),
  }
}

const outcomes = new Map<string, CaseOutcome>()

it.each([...leasedRecordCases, ...leasedOperationCases])('$id $title', async (subject) => {
  outcomes.set(subject.id, await runConformanceCase(subject, plainMapWorld()))
})

afterAll(() => {
  const skipped = [...outcomes].filter(([, outcome]) => outcome !== 'passed').map(([id]) => id)
  expect(skipped).toEqual(['store.record.08', 'store.record.15', 'store.record.16', 'store.record.18'])
})

it('has no atomic operations: a definition of one does not compile', () => {
  const store = plainMapStore(new PlainMap())
  // @ts-expect-error A store of records has no transactions, so nothing on it can commit marker and effect together.
  expect(() => store.operation('pay', { run: async () => 1 })).toThrow(TypeError)
  // @ts-expect-error Nor has it an engine that operations could run their transactions on.
  expect(() => operationsOf(store).operation('pay', { run: async () => 1 })).toThrow(RepriseError)
})
