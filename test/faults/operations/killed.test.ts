// A process is killed with SIGKILL at every fault point of both runners, on both stores. Another process continues, and
// the effect is there once.

import { beforeAll, describe, expect, inject, it } from 'vitest'
import { leasedFaultPoints, operationFaultPoints } from '../../../src/idempotency/index.js'
import { type ArmedFault, commits, killAt, type PostgresProxy, postgresProxy } from '../../../src/testing/index.js'
import { transactionFaultPoints } from '../../../src/transaction/index.js'
import type { OperationName, Way } from './definitions.js'
import { joinStores, keepTable } from './fault-table.js'
import {
  atOnce,
  openStage,
  recordOf,
  type Stage,
  type StagedStore,
  type StoreName,
  storeNames,
  wanted,
} from './stage.js'
import { effectCount, type TakenUpBy, takeUp } from './taking-up.js'

/** One cell. */
interface Cell {
  readonly store: StoreName
  readonly operation: OperationName
  readonly point: string
  readonly by: TakenUpBy
}

/** A cell that was run. */
interface Ran extends Cell {
  readonly left: string
  readonly said: string
  readonly settled: string
}

const atomicPoints = [...transactionFaultPoints, ...operationFaultPoints]
const charges = ['charge-rerun', 'charge-resolve', 'charge-hold'] as const
const onlyAsking: ReadonlySet<string> = new Set(['leased.asking', 'leased.asked'])
// Whoever dies here leaves nothing for a sweep.
const nothingLeft: ReadonlySet<string> = new Set(['leased.claiming', 'leased.completed', 'leased.released'])
const resolving: ReadonlySet<string> = new Set(['transaction.resolving', 'transaction.resolved'])

const cells: readonly Cell[] = storeNames.flatMap((store) => [
  ...atomicPoints.map((point) => ({ store, operation: 'book', point, by: 'repeat' }) as const),
  ...charges.flatMap((operation) =>
    leasedFaultPoints
      .filter((point) => operation === 'charge-resolve' || !onlyAsking.has(point))
      .flatMap((point) => {
        const takers = nothingLeft.has(point) ? (['repeat'] as const) : (['repeat', 'sweep'] as const)
        return takers.map((by) => ({ store, operation, point, by }))
      }),
  ),
])

/** What makes a process reach a point. */
const ways: Readonly<Record<string, Way>> = {
  'operation.failing': 'throws-final',
  'leased.renewing': 'renews',
  'leased.renewed': 'renews',
  'leased.before-release': 'unsent',
  'leased.released': 'unsent',
  'leased.before-lose': 'loses-answer',
  'leased.unknown': 'loses-answer',
}

let stage: Stage
let proxy: PostgresProxy
beforeAll(async () => {
  // Only the processes that are killed need a claim that ends soon. This one takes up what they left: on a busy machine
  // it would lose a short lease itself, and find nothing to settle.
  stage = await openStage(inject('postgresUrl'), 60_000)
  const { hostname, port } = new URL(inject('postgresUrl'))
  proxy = await postgresProxy({ upstream: { host: hostname, port: Number(port) } })
  return () => proxy.close()
})

/** An address of the store behind the proxy, whose first COMMIT is cut. */
function cutCommit({ address }: StagedStore): { readonly address: StagedStore['address']; readonly cut?: ArmedFault } {
  if (!('postgres' in address)) return { address }
  const url = new URL(address.postgres)
  url.port = String(proxy.port)
  return {
    address: { postgres: url.href },
    cut: proxy.arm({ statement: commits, at: 'before-answer', action: 'fin' }),
  }
}

/** Runs a cell until its process dies there: a machine that is busy may lose a lease before, and the next is longer. */
async function run(cell: Cell): Promise<Ran> {
  for (let leaseMs = 1_000; leaseMs <= 64_000; leaseMs *= 2) {
    const ran = await runOnce(cell, leaseMs)
    if (ran !== undefined) return ran
  }
  throw new Error(`The lease was lost each time: ${JSON.stringify(cell)}`)
}

async function runOnce(cell: Cell, leaseMs: number): Promise<Ran | undefined> {
  const store = stage.stores[cell.store]
  const tried = wanted(cell.operation)
  const { point } = cell
  const told: 'unknown'[] = ['unknown']
  if (onlyAsking.has(point)) {
    // Somebody asks only after somebody else has left something.
    const first = await stage.run(store, tried, { fault: killAt('leased.after-effect'), leaseMs }).end
    if (first.signal === null && first.ended.some((end) => 'lost' in end)) return undefined
    expect(first.signal).toBe('SIGKILL')
    told.push('unknown')
  }
  const { address, cut } = resolving.has(point) ? cutCommit(store) : { address: store.address, cut: undefined }
  const { signal, stderr, ended } = await stage.run(store, tried, {
    store: address,
    leaseMs,
    fault: killAt(point),
    way: ways[point] ?? 'plain',
    // The record is looked at without a transaction by a second call.
    calls: point === 'operation.looked' ? 2 : 1,
    losesCommit: resolving.has(point),
  }).end
  if (signal === null && ended.some((end) => 'lost' in end)) return undefined
  // It came to this point, and no further.
  expect({ cell, signal, stderr }).toEqual({ cell, signal: 'SIGKILL', stderr: `reprise-fault ${point}:1=kill\n` })
  expect(ended).toHaveLength(point === 'operation.looked' ? 1 : 0)
  if (cut !== undefined) expect(cut.fired).toHaveLength(1)
  const record = (await recordOf(store, tried))?.state ?? 'none'
  const left = `${record}, ${await effectCount(stage, store, tried)}`
  return { ...cell, left, ...(await takeUp(stage, store, tried, cell.by, told)) }
}

describe('the process killed -9', () => {
  it('at every fault point of both runners: the effect is there once, after another process took it up', {
    timeout: 900_000,
  }, async () => {
    const ran = new Map<Cell, Ran>()
    // Cells behind the proxy one after the other, so that each meets its own cut.
    const behindProxy = cells.filter(({ store, point }) => store === 'PostgreSQL' && resolving.has(point))
    const rest = cells.filter((cell) => !behindProxy.includes(cell))
    const work = async (cell: Cell): Promise<void> => void ran.set(cell, await run(cell))
    await Promise.all([atOnce(1, behindProxy, work), atOnce(8, rest, work)])
    expect(ran.size).toBe(cells.length)
    const rows = cells.map((cell) => {
      const { operation, point, store, by, left, said, settled } = ran.get(cell) as Ran
      return [`\`${point}\``, operation, store, left, by, said, settled, '1']
    })
    const head = [
      'killed at',
      'operation',
      'store',
      'left: record, effects',
      'taken up by',
      'said',
      'settled by',
      'effects',
    ]
    keepTable('killed', head, joinStores(rows, 2))
  })
})
