// The controlled HTTP cases on every adapter and store: some adapters side by side, the stores of one and their cases
// one after the other.

import { afterAll, afterEach, describe, vi } from 'vitest'
import { controlledHttpCases, httpCases } from '../../../src/testing/index.js'
import { tableOf } from '../../stores/conformance/cells.js'
import { type AdapterName, adapterNames } from '../subject/subject.js'
import { type PlayedOn, type StoreName, storeNames } from './stage.js'

// They wait more than they work: for leases, windows, and processes that start.
const adaptersAtOnce = 3

/** What a file has played so far, for its table. */
export interface Outcomes {
  /** Notes how a test ended that plays a case. */
  note(title: string, adapter: AdapterName, store: StoreName, hasPassed: boolean): void
}

/** Prints the table of a file after its tests: each case that it plays, on every adapter and the given stores. */
export function printedTable(what: string): Outcomes {
  // By case and column: whether all tests of it have passed.
  const outcomes = new Map<string, boolean>()
  const nameOf = (adapter: AdapterName, store: StoreName): string => `${adapter} ${store}`
  afterAll(() => {
    const columns = adapterNames.flatMap((adapter) => storeNames.map((store) => nameOf(adapter, store)))
    const ids = new Set([...outcomes.keys()].map((name) => name.split(' ')[0]))
    const played = [...httpCases, ...controlledHttpCases].filter(({ id }) => ids.has(id))
    const table = tableOf(played, columns, ({ id }, column) => {
      if (id === 'http-75' && column.endsWith(' SQLite')) return 'refused: a file cannot be stopped and started again'
      return outcomes.get(`${id} ${column}`) === true ? 'passed' : undefined
    })
    console.log(`${what}\n${table}`)
  })
  return {
    note(title, adapter, store, hasPassed) {
      const name = `${title.split(' ')[0]} ${nameOf(adapter, store)}`
      outcomes.set(name, hasPassed && outcomes.get(name) !== false)
    },
  }
}

/** Declares tests for every adapter and store. Titles start with the id of a case. */
export function onEveryAdapter(outcomes: Outcomes, declare: (on: Pick<PlayedOn, 'adapter' | 'store'>) => void): void {
  vi.setConfig({ maxConcurrency: adaptersAtOnce })
  describe.concurrent.each(adapterNames)('on %s', (adapter) => {
    describe.sequential.each(storeNames)('and %s', (store) => {
      afterEach(({ task }) => outcomes.note(task.name, adapter, store, task.result?.state === 'pass'))
      declare({ adapter, store })
    })
  })
}
