// COMMIT cut between the application and a pooler that assigns connections per transaction: keys and resolution work
// there too.

import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { checkEffects, type IntentRecord } from '../../src/testing/index.js'
import { UnknownCommitError } from '../../src/transaction/index.js'
import { type Pgbouncer, startPgbouncer } from '../servers/pgbouncer.js'
import { cells, strike } from './commit-cells.js'
import { inLanes, type Lanes, openLanes, parts } from './lanes.js'

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
  world = await openLanes(inject('postgresUrl'), 4, { lockWait: '2s', connectionWait: '20s' }, bouncer)
})
// After the lanes, which close first because they were opened last.
afterAll(() => bouncer.dispose())

it.each([
  ['with a key: one effect, settled by the next call at the latest', true],
  ['without a key: the server is asked through the pooler, and a token settles the rest', false],
])('%s', async (_, keyed) => {
  const intents: IntentRecord[] = []
  const missed: string[] = []
  let ambiguous = 0
  const lanesOf = new Map<string, Set<string>>()
  await inLanes(world.lanes, cells, async (lane, cell) => {
    const { fired, resolved } = await strike(lane, cell, {
      keyed,
      call: (tried, deadline) => tried.call(lane.db, deadline),
      async settle(tried) {
        if (keyed && tried.last !== 'committed') await tried.settle(lane.db)
        await lane.proxy.heal()
        if (tried.error instanceof UnknownCommitError && tried.last === 'unknown') {
          const { outcome } = await lane.db.resolve(tried.error.resolveToken ?? '', '120s')
          tried.verdicts.push(outcome)
        }
        intents.push(tried.record())
      },
    })
    if (fired === 0) missed.push(cell.name)
    if (resolved.length > 0) ambiguous += 1
    const { rows } = await lane.db.transact((tx) => tx.query<{ pid: string }>('select pg_backend_pid()::text as pid'))
    const pid = rows[0]?.pid ?? ''
    lanesOf.set(pid, (lanesOf.get(pid) ?? new Set()).add(lane.name))
  })
  const ids = new Set(intents.map(({ id }) => id))
  const effects = (await world.ledger()).filter(({ intent }) => ids.has(intent))
  const { findings, endedAs } = checkEffects({ intents, effects, parts, healed: true })
  expect(findings).toEqual([])
  expect(missed).toEqual([])
  expect(endedAs.unknown).toBe(0)
  if (keyed) expect(endedAs.committed).toBe(intents.length)
  expect(ambiguous).toBeGreaterThanOrEqual(cells.filter((cell) => cell.ambiguous === 'always').length)
  // There was a pooler: without one, no backend serves two lanes.
  expect([...lanesOf.values()].some(({ size }) => size > 1)).toBe(true)
})
