// A process is stopped until its lease is over, while another one takes over and completes. When it continues it can
// write nothing, and a replay has the new owner's result.

import { beforeAll, describe, expect, inject, it } from 'vitest'
import { didNotHappen, happened } from '../../../src/idempotency/index.js'
import { checkEffects, faultEnvironment } from '../../../src/testing/index.js'
import { until } from '../../servers/server-process.js'
import { type OperationName, tests, type Way } from './definitions.js'
import { joinStores, keepTable } from './fault-table.js'
import { atOnce, openStage, recordOf, type Stage, type StoreName, stateOf, storeNames, wanted } from './stage.js'
import { call } from './taking-up.js'

/** What the zombie is about to do when it is stopped. */
interface Verb {
  readonly verb: string
  readonly point: string
  readonly way: Way
}

const verbs: readonly Verb[] = [
  { verb: 'complete', point: 'leased.before-complete', way: 'plain' },
  { verb: 'fail', point: 'leased.before-complete', way: 'declined' },
  { verb: 'release', point: 'leased.before-release', way: 'unsent' },
  { verb: 'lose', point: 'leased.before-lose', way: 'loses-answer' },
  { verb: 'renew', point: 'leased.renewing', way: 'renews' },
]

/** One cell. */
interface Cell extends Verb {
  /** Who notices: the zombie by its own clock, or the store, since the clock stood still with the process. */
  readonly refusedBy: 'its own clock' | 'the store'
  readonly store: StoreName
  readonly operation: Exclude<OperationName, 'book'>
}

const operations = ['charge-rerun', 'charge-resolve', 'charge-hold'] as const
const cells: readonly Cell[] = storeNames.flatMap((store) =>
  operations.flatMap((operation) =>
    verbs.flatMap((verb) =>
      // Its own clock tells it before anything is recovered: one recovery shows it.
      (operation === 'charge-resolve' ? (['its own clock', 'the store'] as const) : (['the store'] as const)).map(
        (refusedBy) => ({ store, operation, ...verb, refusedBy }),
      ),
    ),
  ),
)

let stage: Stage
beforeAll(async () => {
  // Only those who are stopped need a claim that ends soon; who takes over must not lose its own.
  stage = await openStage(inject('postgresUrl'), 60_000)
})

/** Runs a cell until its process stands still: a machine that is busy may lose a lease before, and the next is longer. */
async function run(cell: Cell): Promise<readonly string[]> {
  for (let leaseMs = 1_000; leaseMs <= 64_000; leaseMs *= 2) {
    const row = await runOnce(cell, leaseMs)
    if (row !== undefined) return row
  }
  throw new Error(`The lease was lost each time: ${JSON.stringify(cell)}`)
}

async function runOnce(cell: Cell, leaseMs: number): Promise<readonly string[] | undefined> {
  const store = stage.stores[cell.store]
  const tried = wanted(cell.operation)
  const fault = faultEnvironment(cell.point, 'stop')
  const clockStandsStill = cell.refusedBy === 'the store'
  const zombie = stage.run(store, tried, { fault, way: cell.way, clockStandsStill, leaseMs })
  const reached = (): boolean => zombie.said.stderr.includes(`${cell.point}:1=stop`)
  await until(() => reached() || zombie.child.exitCode !== null, 'the point is reached')
  if (!reached() && (await zombie.end).ended.some((end) => 'lost' in end)) return undefined
  expect(reached()).toBe(true)
  await until(() => stateOf(zombie) === 'T', 'the process is stopped')
  const stopped = await recordOf(store, tried)
  expect(stopped).toMatchObject({ state: 'claimed', claims: 1 })
  // The new owner waits for the end of the lease, and completes; with hold() a person does.
  let owner = await call(store, tried)
  const took = owner.said
  if (owner.result === undefined) {
    const [effect] = stage.sink.of(tried.intent).effects
    const which = { operation: store.operationOf(tried), scope: tests, key: tried.key }
    const found = effect === undefined ? didNotHappen() : happened(effect)
    await store.db.settle(which, found, { reason: 'the receiver was asked', actor: 'a person' })
    owner = await call(store, tried)
  }
  const before = await recordOf(store, tried)
  expect(before).toMatchObject({ state: 'succeeded', value: JSON.stringify(owner.result) })
  expect(before?.token).not.toBe(stopped?.token)
  expect(stateOf(zombie)).toBe('T')
  zombie.child.kill('SIGCONT')
  const { signal, ended } = await zombie.end
  const refused = before?.because === 'settled' ? 'settled' : 'taken-over'
  const lost = clockStandsStill ? refused : 'not-renewed'
  expect({ cell, signal, ended }).toEqual({ cell, signal: null, ended: [{ error: 'LEASE_LOST', lost }] })
  // Version, token, fence, times, value: nothing of it was touched.
  expect(await recordOf(store, tried)).toEqual(before)
  const replay = await call(store, tried)
  const results = [owner.result ?? owner.said, replay.result ?? replay.said]
  const { intent, key } = tried
  const effects = stage.sink.of(intent).effects.map((result) => ({ intent, result }))
  const intents = [{ id: intent, key, verdicts: ['unknown', 'committed', 'committed'] as const, results }]
  expect(checkEffects({ intents, effects, healed: true }).findings, JSON.stringify(cell)).toEqual([])
  const settled = took === 'result' ? 'the new owner' : 'a person, then the new owner'
  return [
    `${cell.verb}, at \`${cell.point}\``,
    cell.operation,
    cell.store,
    cell.refusedBy,
    'LEASE_LOST',
    'untouched',
    settled,
    '1',
  ]
}

describe('a process that stands still past its lease', () => {
  it('can neither complete, fail, release, lose nor renew when it goes on', { timeout: 900_000 }, async () => {
    const ran = new Map<Cell, readonly string[]>()
    await atOnce(6, cells, async (cell) => void ran.set(cell, await run(cell)))
    const rows = cells.map((cell) => ran.get(cell) ?? [])
    const head = [
      'the zombie wants to',
      'operation',
      'store',
      'refused by',
      'it is told',
      'the record',
      'completed by',
      'effects',
    ]
    keepTable('zombies', head, joinStores(rows, 2))
  })
})
