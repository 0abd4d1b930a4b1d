// The controlled HTTP cases on every adapter: some adapters side by side, the cases of one after the other. `npm test`
// plays what takes long on one of the stores for each adapter, the stores in turn, and test:matrix on the other one.

import { afterAll, afterEach, describe, vi } from 'vitest'
import { controlledHttpCases, httpCases } from '../../../src/testing/index.js'
import { tableOf } from '../../stores/conformance/cells.js'
import { type AdapterName, adapterNames } from '../subject/subject.js'
import { type PlayedOn, type StoreName, sayWhatIsLeft, storeInTurn, storeNames } from './stage.js'

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
    const isOfAll = (id: string | undefined) => id === 'http-75'
    const isWhole = (column: string) => [...ids].every((id) => isOfAll(id) || outcomes.has(`${id} ${column}`))
    sayWhatIsLeft(columns.filter((column) => !isWhole(column)))
  })
  return {
    note(title, adapter, store, hasPassed) {
      const name = `${title.split(' ')[0]} ${nameOf(adapter, store)}`
      outcomes.set(name, hasPassed && outcomes.get(name) !== false)
    },
  }
}

/** Declares tests for every adapter and store. Titles start with the id of a case. */
export function onEveryAdapter(outcomes: Outcomes, declare: Declare): void {
  declareOn(outcomes, declare, () => storeNames)
}

/** The same for what takes long: on the store whose turn it is. */
export function onStoresInTurn(outcomes: Outcomes, declare: Declare): void {
  declareOn(outcomes, declare, (adapter) => [storeInTurn(adapter)])
}

type Declare = (on: Pick<PlayedOn, 'adapter' | 'store'>) => void

function declareOn(outcomes: Outcomes, declare: Declare, stores: (adapter: AdapterName) => readonly StoreName[]): void {
  vi.setConfig({ maxConcurrency: adaptersAtOnce })
  describe.concurrent.each(adapterNames)('on %s', (adapter) => {
    describe.sequential.each(stores(adapter))('and %s', (store) => {
      afterEach(({ task }) => outcomes.note(task.name, adapter, store, task.result?.state === 'pass'))
      declare({ adapter, store })
    })
  })
}
