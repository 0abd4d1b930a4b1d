// Every statement that the runners send is cut at every moment in every way. The effect is there once, or the outcome
// is unknown until the next call or a person settles it.

import pg from 'pg'
import { beforeAll, describe, expect, inject, it } from 'vitest'
import { didNotHappen, type LeasedOperation, operationId } from '../../../src/idempotency/index.js'
import type { FaultActionName, FaultMoment } from '../../../src/testing/index.js'
import { until } from '../../servers/server-process.js'
import { type CutLane, openCutLanes, within } from './cut-lanes.js'
import { define, marginMs, type OperationName, type Order, storedName, tests, type Way } from './definitions.js'
import { keepTable } from './fault-table.js'
import { atOnce, openStage, recordOf, type Stage, type StagedStore, type Tried, wanted } from './stage.js'
import { isKind, kindsOf, type StatementKind, statementKinds } from './statement-kinds.js'
import { call, effectCount, takeUp } from './taking-up.js'

/** How a statement comes to be sent. */
interface Scene {
  readonly statement: StatementKind | 'opening'
  readonly operation: OperationName
  /** Who sends it. Default `call`. */
  readonly by?: 'call' | 'sweep' | 'settle' | 'lookup'
  readonly way?: Way
  /**
   * What was there: a claim whose owner is gone, or an outcome, of another process or of this one; a connection that
   * was given up while it was silent; or another transaction at work under the key, which ends in a rollback once the
   * fault has struck. Default nothing.
   */
  readonly after?: 'a dead owner' | 'an outcome' | 'its own outcome' | 'a silent connection' | 'a key in use'
  /** On a connection that is new. Default false. */
  readonly fresh?: boolean
}

const scenes: readonly Scene[] = [
  { statement: 'opening', operation: 'book', fresh: true },
  { statement: 'BEGIN', operation: 'book', fresh: true },
  { statement: 'claim', operation: 'book', fresh: true },
  { statement: 'BEGIN', operation: 'book' },
  { statement: 'limits', operation: 'book' },
  { statement: 'claim', operation: 'book' },
  { statement: 'who blocks', operation: 'book', after: 'a key in use' },
  { statement: 'body', operation: 'book' },
  { statement: 'outcome', operation: 'book' },
  { statement: 'COMMIT', operation: 'book' },
  { statement: 'COMMIT', operation: 'book', way: 'throws-final' },
  { statement: 'ROLLBACK', operation: 'book', way: 'throws-final' },
  { statement: 'read', operation: 'book', after: 'an outcome' },
  { statement: 'ROLLBACK', operation: 'book', after: 'an outcome' },
  { statement: 'read', operation: 'book', after: 'its own outcome' },
  { statement: 'opening', operation: 'charge-rerun', fresh: true },
  { statement: 'which server', operation: 'charge-rerun', fresh: true },
  { statement: 'who was left behind', operation: 'charge-resolve', after: 'a silent connection' },
  { statement: 'do standbys have it', operation: 'charge-resolve', after: 'a silent connection' },
  { statement: 'insert', operation: 'charge-resolve' },
  { statement: 'renew', operation: 'charge-resolve', way: 'renews' },
  { statement: 'complete', operation: 'charge-rerun' },
  { statement: 'complete', operation: 'charge-resolve' },
  { statement: 'complete', operation: 'charge-hold' },
  { statement: 'complete', operation: 'charge-hold', way: 'declined' },
  { statement: 'remove', operation: 'charge-hold', way: 'unsent' },
  { statement: 'lose', operation: 'charge-rerun', way: 'loses-answer' },
  { statement: 'lose', operation: 'charge-hold', way: 'loses-answer' },
  { statement: 'insert', operation: 'charge-rerun', after: 'a dead owner' },
  { statement: 'read', operation: 'charge-resolve', after: 'a dead owner' },
  { statement: 'take over', operation: 'charge-rerun', after: 'a dead owner' },
  { statement: 'take over', operation: 'charge-resolve', after: 'a dead owner' },
  { statement: 'hold back', operation: 'charge-hold', after: 'a dead owner' },
  { statement: 'due', operation: 'charge-resolve', by: 'sweep', after: 'a dead owner' },
  { statement: 'read', operation: 'charge-rerun', by: 'sweep', after: 'a dead owner' },
  { statement: 'take over', operation: 'charge-rerun', by: 'sweep', after: 'a dead owner' },
  { statement: 'complete with note', operation: 'charge-rerun', by: 'sweep', after: 'a dead owner' },
  { statement: 'remove with note', operation: 'charge-resolve', by: 'sweep', after: 'a dead owner' },
  { statement: 'hold back with note', operation: 'charge-hold', by: 'sweep', after: 'a dead owner' },
  { statement: 'read', operation: 'charge-hold', by: 'settle', after: 'a dead owner' },
  { statement: 'remove with note', operation: 'charge-hold', by: 'settle', after: 'a dead owner' },
  { statement: 'notes', operation: 'charge-hold', by: 'lookup', after: 'a dead owner' },
]
const moments: readonly FaultMoment[] = ['before-forward', 'before-answer', 'after-answers']
const actions: readonly FaultActionName[] = ['fin', 'rst', 'black-hole']

interface Cell {
  readonly scene: Scene
  readonly at: FaultMoment
  readonly action: FaultActionName
}

const cells: readonly Cell[] = scenes.flatMap((scene) =>
  actions.flatMap((action) => moments.map((at) => ({ scene, at, action }))),
)

let stage: Stage
let store: StagedStore
let lanes: readonly CutLane[]
beforeAll(async () => {
  // What is cut has leases of its own; who settles it must not lose its own on a busy machine.
  stage = await openStage(inject('postgresUrl'), 60_000)
  store = stage.stores.PostgreSQL
  lanes = await openCutLanes(store, 8)
})

/** A claim whose owner is gone, and its lease with it. */
async function leaveClaim(tried: Tried): Promise<void> {
  const { operation, suffix, intent, key } = tried
  const input = JSON.stringify({ intent, key })
  const owner = { scope: tests, token: 'dead', leaseMs: 200, input }
  const draft = { mode: 'leased', operation: storedName(operation, suffix), ...owner } as const
  const { written } = await store.db.records.insert(recordName(tried), draft, { deadline: within(60_000) })
  expect(written).toBe(true)
}

const recordName = ({ operation, suffix, key }: Tried) => operationId(storedName(operation, suffix), tests, key)

/** Lets a read fall silent, and gives it up: its connection is left behind, and nobody knows what it did. */
async function leaveSilent(lane: CutLane, tried: Tried): Promise<void> {
  // On a connection that is there: within its time the read has to be sent.
  await lane.db.lookup({ id: recordName(tried) }, { deadline: '60s' })
  const hole = lane.proxy.arm({ statement: isKind('read'), at: 'before-forward', action: 'black-hole' })
  const looking = lane.db.lookup({ id: recordName(tried) }, { deadline: '1s' })
  await expect(looking).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
  expect(hole.fired).toHaveLength(1)
}

/** Claims the key in a transaction that stays open. */
async function holdKey(tried: Tried): Promise<pg.Client> {
  if (!('postgres' in store.address)) throw new Error('only PostgreSQL has a wire')
  const client = new pg.Client({ connectionString: store.address.postgres })
  await client.connect()
  await client.query('begin')
  await client.query('insert into reprise_marker (id, claimed_at_ms) values ($1, 0)', [recordName(tried)])
  return client
}

const leaseIsOver = async (tried: Tried): Promise<boolean> => {
  const { record, nowMs } = await store.db.records.read(recordName(tried), { deadline: within(60_000) })
  return nowMs > (record?.dueAtMs ?? 0) + marginMs
}

/** What a caller is told. */
interface Said {
  readonly result?: string
  readonly said: string
}

/** What the lane's process does, and what its caller is told: `result`, or a code. */
function actor(lane: CutLane, { scene, action }: Cell, tried: Tried) {
  const hole = action === 'black-hole'
  // Behind a black hole only the end of a lease or of the call is heard of; elsewhere neither is to end meanwhile.
  const [leaseMs, limit, patienceMs] = hole ? ([500, '1200ms', 600] as const) : ([8_000, '20s', 10_000] as const)
  const { suffix } = tried
  const placeholders = ['$1', '$2', '$3'] as const
  const way = scene.way ?? 'plain'
  // Who holds a key is asked half-way through the wait for it.
  const lockWaitMs = scene.after === 'a key in use' ? 1_000 : undefined
  const shared = { sink: stage.sink.url, leaseMs, suffix, placeholders, way, patienceMs }
  const defined = define(lane.db, lockWaitMs === undefined ? shared : { ...shared, lockWaitMs })
  const { [tried.operation]: operation } = defined
  const work = async ({ intent, key }: Order): Promise<Said> => {
    if (scene.by === 'sweep') {
      await lane.db.sweep([operation as LeasedOperation<Order, string>], {
        margin: marginMs,
        baseDelay: 10,
        capDelay: 50,
        limit,
      })
      return { said: 'swept' }
    }
    if (scene.by === 'lookup') {
      await lane.db.lookup({ operation, scope: tests, key }, { deadline: limit })
      return { said: 'looked up' }
    }
    if (scene.by === 'settle') {
      const how = { reason: 'the receiver was asked', actor: 'a person', deadline: limit } as const
      await lane.db.settle({ operation, scope: tests, key }, didNotHappen(), how)
      return { said: 'settled' }
    }
    return { result: await operation({ intent, key }, { deadline: limit }), said: 'result' }
  }
  const failed = (error: { readonly code?: string; readonly message: string }): Said => ({
    said: error.code ?? error.message,
  })
  return (order: Order): Promise<Said> => work(order).catch(failed)
}

/** A cell that was run. */
interface Ran {
  readonly said: string
  readonly settled: string
}

/** Runs a cell until its fault happens: on a busy machine a short lease may end before its statement is sent. */
async function run(lane: CutLane, cell: Cell): Promise<Ran> {
  for (let tries = 0; tries < 8; tries += 1) {
    const ran = await runOnce(lane, cell)
    if (ran.struck) return ran
  }
  throw new Error(`The fault never struck: ${JSON.stringify(cell)}`)
}

/** Runs a cell: what the caller was told, how it was settled, and whether the fault struck. It is sound in any case. */
async function runOnce(lane: CutLane, cell: Cell): Promise<Ran & { readonly struck: boolean }> {
  const { scene, at, action } = cell
  const tried = wanted(scene.operation)
  const name = JSON.stringify(cell)
  if (scene.after === 'an outcome') await call(store, tried)
  if (scene.after === 'a dead owner') await leaveClaim(tried)
  const work = actor(lane, cell, tried)
  if (scene.after === 'its own outcome') await work(tried)
  if (scene.by !== undefined) await until(() => leaseIsOver(tried), 'the lease is over')
  if (scene.fresh === true) await lane.empty()
  // A connection whose backend is known sends its claim with BEGIN.
  else if (scene.operation === 'book') await work(wanted('book'))
  if (scene.after === 'a silent connection') await leaveSilent(lane, tried)
  const { statement } = scene
  const armed = lane.proxy.arm({ statement: statement === 'opening' ? 'startup' : isKind(statement), at, action })
  const holder = scene.after === 'a key in use' ? await holdKey(tried) : undefined
  const beganMs = performance.now()
  const working = work(tried)
  if (holder !== undefined) {
    await until(() => armed.fired.length > 0, 'the fault strikes', 15_000).catch(() => undefined)
    await holder.end()
  }
  const { said, result } = await working
  // Nobody hangs: not longer than the call may take, and a lease on top of it.
  expect(performance.now() - beganMs, name).toBeLessThan(60_000)
  // After the whole answer has been passed on, the caller may be told before the fault strikes.
  const fired = (): boolean => armed.fired.length > 0
  const struck = await until(fired, 'the fault strikes', 2_000).then(
    () => true,
    () => false,
  )
  armed.disarm()
  const settled = await conclude(tried, result, name)
  await lane.proxy.heal()
  return { said, settled, struck }
}

/** The same from everybody from here on: one effect and its result, or the final failure. */
async function conclude(tried: Tried, result: string | undefined, name: string): Promise<string> {
  const record = await recordOf(store, tried)
  if (record?.state === 'failed') {
    const said = [await call(store, tried), await call(store, tried)].map((told) => told.said)
    expect({ name, said, result }).toEqual({ name, said: ['OPERATION_FAILED', 'OPERATION_FAILED'], result: undefined })
    expect(await effectCount(stage, store, tried), name).toBe(tried.operation === 'book' ? 0 : 1)
    return 'replayed'
  }
  const told = result === undefined ? (['unknown'] as const) : (['committed'] as const)
  return (await takeUp(stage, store, tried, 'repeat', told, result === undefined ? [] : [result])).settled
}

// What a caller may be told whose store is silent: its own limits, or that nobody knows.
const limitsAndUnknowns: readonly string[] = [
  'BODY_TIME_LIMIT',
  'COMMIT_TIMEOUT',
  'CONNECT_TIMEOUT',
  'DEADLINE_EXCEEDED',
  'LEASE_LOST',
  'OPERATION_UNKNOWN',
  'POOL_EXHAUSTED',
  'UNKNOWN_OUTCOME',
  'UPKEEP_UNKNOWN',
]

const head = ['statement', 'operation', 'sent by', 'after', 'cut', 'the caller is told', 'settled by', 'effects']

/** Two lines of the table: connections that are closed, and those that fall silent. */
function rowsOf(scene: Scene, ran: ReadonlyMap<Cell, Ran>): string[][] {
  const { statement, operation, by = 'call', way, after = 'nothing' } = scene
  const of = (hole: boolean): Ran[] =>
    cells.flatMap((cell) =>
      cell.scene === scene && (cell.action === 'black-hole') === hole ? [ran.get(cell) as Ran] : [],
    )
  const words = (all: readonly string[]): string => [...new Set(all)].sort().join(', or ')
  const [closed, silent] = [of(false), of(true)]
  const told = words(closed.map(({ said }) => said))
  const others = silent.map(({ said }) => said).filter((said) => !closed.some((one) => one.said === said))
  expect(
    others.filter((said) => !limitsAndUnknowns.includes(said)),
    JSON.stringify(scene),
  ).toEqual([])
  // A final failure that was not stored is no outcome, and the next call may succeed.
  const [effects, later] = way === 'throws-final' ? ['0', '0, or 1 where its failure was not stored'] : ['1', '1']
  const what = [
    scene.fresh === true ? `${statement}, new connection` : statement,
    way === undefined ? operation : `${operation}, ${way}`,
    by,
    after,
  ]
  const next = operation === 'charge-hold' ? 'the next call, or a person' : 'the next call'
  return [
    [...what, 'FIN, RST', told, words(closed.map(({ settled }) => settled)), effects],
    [...what, 'black hole', 'the same, a time limit, or unknown', next, later],
  ]
}

describe('a statement of a runner', () => {
  it('cut at every moment in every way: one effect, or an unknown that is settled', { timeout: 900_000 }, async () => {
    const ran = new Map<Cell, Ran>()
    const free = [...lanes]
    await atOnce(lanes.length, cells, async (cell) => {
      const lane = free.pop() as CutLane
      ran.set(cell, await run(lane, cell))
      free.push(lane)
    })
    const sent = new Set(lanes.flatMap(({ proxy }) => proxy.statements))
    const unlisted = [...sent].filter((text) => kindsOf(text).length !== 1)
    expect(unlisted.slice(0, 3)).toEqual([])
    const cut: readonly string[] = scenes.map(({ statement }) => statement)
    expect(statementKinds.filter((kind) => !cut.includes(kind))).toEqual([])
    keepTable(
      'cuts',
      head,
      scenes.flatMap((scene) => rowsOf(scene, ran)),
    )
  })
})
