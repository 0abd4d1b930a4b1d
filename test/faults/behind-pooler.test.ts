// COMMIT cut between the application and a pooler that assigns connections per transaction: keys and resolution work
// there too.

import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { checkEffects, commits, type IntentRecord } from '../../src/testing/index.js'
import { UnknownCommitError } from '../../src/transaction/index.js'
import { type Pgbouncer, startPgbouncer } from '../servers/pgbouncer.js'
import { until } from '../servers/server-process.js'
import { type Cell, callLimit, cells } from './commit-cells.js'
import { inLanes, type Lane, type Lanes, openLanes, parts, Tried } from './lanes.js'

let bouncer: Pgbouncer
let world: Lanes
beforeAll(async () => {
  const { hostname, port } = new URL(inject('postgresUrl'))
  // Fewer connections than lanes use, so that a lane meets other backends than its own.
  bouncer = await startPgbouncer({
    mode: 'transaction',
    upstream: { host: hostname, port: Number(port) },
    poolSize: 6,
  })
  world = await openLanes(inject('postgresUrl'), 4, { lockWait: '2s', connectionWait: '800ms' }, bouncer)
})
// After the lanes, which close first because they were opened last.
afterAll(() => bouncer.dispose())

/** Calls until the fault has struck a COMMIT, and tells how many it has struck. */
async function strike(lane: Lane, { fault }: Cell, tried: Tried): Promise<number> {
  const armed = lane.proxy.arm({ statement: commits, ...fault })
  for (let calls = 0; calls < 5 && armed.fired.length === 0; calls += 1) {
    const verdict = await tried.call(lane.db, callLimit)
    if (verdict === 'committed') await until(() => armed.fired.length > 0, 'the fault strikes', 5_000)
  }
  armed.disarm()
  return armed.fired.length
}

it.each([
  ['with a key: one effect, settled by the next call at the latest', true],
  ['without a key: the server is asked through the pooler, and a token settles the rest', false],
])('%s', { timeout: 120_000 }, async (_, keyed) => {
  const intents: IntentRecord[] = []
  const missed: string[] = []
  let ambiguous = 0
  const lanesOf = new Map<string, Set<string>>()
  await inLanes(world.lanes, cells, async (lane, cell) => {
    const tried = new Tried(lane, keyed)
    if ((await strike(lane, cell, tried)) === 0) missed.push(cell.name)
    if (lane.resolved.length > 0) ambiguous += 1
    if (keyed && tried.last !== 'committed') await tried.call(lane.db, '10s')
    await lane.proxy.heal()
    if (tried.error instanceof UnknownCommitError && tried.last === 'unknown') {
      const { outcome } = await lane.db.resolve(tried.error.resolveToken ?? '', '10s')
      tried.verdicts.push(outcome)
    }
    const { rows } = await lane.db.transact((tx) => tx.query<{ pid: string }>('select pg_backend_pid()::text as pid'))
    const pid = rows[0]?.pid ?? ''
    lanesOf.set(pid, (lanesOf.get(pid) ?? new Set()).add(lane.name))
    intents.push(tried.record())
  })
  const ids = new Set(intents.map(({ id }) => id))
  const effects = (await world.ledger()).filter(({ intent }) => ids.has(intent))
  const { findings, endedAs } = checkEffects({ intents, effects, parts, healed: true })
  expect(findings).toEqual([])
  expect(missed).toEqual([])
  expect(endedAs.unknown).toBe(0)
  if (keyed) expect(endedAs.committed).toBe(cells.length)
  expect(ambiguous).toBeGreaterThanOrEqual(cells.filter((cell) => cell.ambiguous === 'always').length)
  // There was a pooler: without one, no backend serves two lanes.
  expect([...lanesOf.values()].some(({ size }) => size > 1)).toBe(true)
})
