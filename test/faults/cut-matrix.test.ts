// The cut matrix: COMMIT hit by every fault at every moment, in a transaction with a key, and its effects counted in a
// ledger.

import type { PoolClient } from 'pg'
import { beforeAll, describe, expect, inject, it } from 'vitest'
import type { Engine } from '../../src/atomicity/index.js'
import { systemClock } from '../../src/kernel/index.js'
import { connectionsOf } from '../../src/stores/postgres/connection/connections.js'
import { postgresEngine } from '../../src/stores/postgres/engine.js'
import type { PostgresTransaction } from '../../src/stores/postgres/index.js'
import { postgresSchema } from '../../src/stores/postgres/migrations.js'
import { type CheckReport, checkEffects, commits, type IntentRecord } from '../../src/testing/index.js'
import { type Domain, domainOf, UnknownCommitError } from '../../src/transaction/index.js'
import { type Cell, cells, lateOnlyBefore, refusedCells, type Struck, strike } from './commit-cells.js'
import { inLanes, type Lane, type Lanes, openLanes, parts, table } from './lanes.js'

const rounds = 14
const leastAmbiguous = 500

/** What became of all intents of one cell. */
interface Tally {
  readonly cell: Cell
  runs: number
  /** How often the fault happened, to a COMMIT. */
  fired: number
  /** How many intents made the runner resolve. */
  ambiguous: number
  readonly found: { committed: number; aborted: number; unknown: number }
  /** Calls that ended with an honest unknown. */
  unknownCalls: number
}

let world: Lanes
beforeAll(async () => {
  world = await openLanes(inject('postgresUrl'), 8, { lockWait: '2s', connectionWait: '20s' })
})

const tallyOf = (cell: Cell): Tally => ({
  cell,
  runs: 0,
  fired: 0,
  ambiguous: 0,
  found: { committed: 0, aborted: 0, unknown: 0 },
  unknownCalls: 0,
})

function count(tally: Tally, { tried, fired, resolved }: Struck): void {
  tally.runs += 1
  tally.fired += fired
  if (fired > 0 && resolved.length > 0) tally.ambiguous += 1
  for (const { outcome } of resolved) tally.found[outcome] += 1
  tally.unknownCalls += tried.verdicts.filter((verdict) => verdict === 'unknown').length
}

function print(title: string, tallies: readonly Tally[]): void {
  const head = ['cell', 'runs', 'fired', 'ambiguous', 'committed', 'aborted', 'unknown', 'unknown calls']
  const rows = tallies.map(({ cell, runs, fired, ambiguous, found, unknownCalls }) => {
    return [cell.name, runs, fired, ambiguous, found.committed, found.aborted, found.unknown, unknownCalls]
  })
  const refused = refusedCells.map(({ name }) => `${name}: refused, ${lateOnlyBefore}`)
  console.log([title, table(head, rows), ...refused, ''].join('\n'))
}

const sum = (tallies: readonly Tally[], of: 'runs' | 'fired' | 'ambiguous'): number =>
  tallies.reduce((total, tally) => total + tally[of], 0)

/** Every fault happened, and those that leave the outcome open made the runner look. */
function expectStruck(tallies: readonly Tally[]): void {
  expect(tallies.filter(({ runs, fired }) => fired !== runs).map(({ cell }) => cell.name)).toEqual([])
  const always = tallies.filter(({ cell }) => cell.ambiguous === 'always')
  expect(always.filter(({ runs, ambiguous }) => ambiguous !== runs).map(({ cell }) => cell.name)).toEqual([])
  const never = tallies.filter(({ cell }) => cell.ambiguous === 'never')
  // A machine that stands still for most of a second makes an ambiguous commit of any.
  expect(sum(never, 'ambiguous')).toBeLessThanOrEqual(sum(never, 'runs') * 0.05)
}

/** What the checker says of these intents. */
async function judge(intents: readonly IntentRecord[]): Promise<CheckReport> {
  const ids = new Set(intents.map(({ id }) => id))
  const effects = (await world.ledger()).filter(({ intent }) => ids.has(intent))
  return checkEffects({ intents, effects, parts, healed: true })
}

describe('COMMIT, cut in every way', () => {
  it('refuses the cells that cannot be', () => {
    const [lane] = world.lanes
    for (const { fault } of refusedCells) {
      expect(() => lane?.proxy.arm({ statement: commits, ...fault })).toThrow('Only what has not been forwarded')
    }
  })

  it('with a key: one effect and its result, or an honest unknown that the next call settles', {
    timeout: 900_000,
  }, async () => {
    const tallies = cells.map(tallyOf)
    const intents: IntentRecord[] = []
    const work = Array.from({ length: rounds }, () => tallies).flat()
    await inLanes(world.lanes, work, async (lane, tally) => {
      const struck = await strike(lane, tally.cell, {
        keyed: true,
        call: (tried, deadline) => tried.call(lane.db, deadline),
        async settle(tried) {
          if (tried.last !== 'committed') await tried.settle(lane.db)
          intents.push(tried.record())
        },
      })
      count(tally, struck)
    })
    print('COMMIT of a transaction with a key', tallies)
    const { findings, endedAs, unknownCalls } = await judge(intents)
    console.log(
      `${intents.length} intents, ${sum(tallies, 'ambiguous')} ambiguous commits, ${unknownCalls} unknown calls`,
    )
    expect(findings).toEqual([])
    expect(endedAs).toEqual({ committed: intents.length, aborted: 0, unknown: 0 })
    expect(intents.every(({ results }) => new Set(results).size === 1)).toBe(true)
    expectStruck(tallies)
    expect(sum(tallies, 'ambiguous')).toBeGreaterThanOrEqual(leastAmbiguous)
    // The run would prove little if it had met one truth alone.
    for (const outcome of ['committed', 'aborted'] as const)
      expect(
        tallies.reduce((total, { found }) => total + found[outcome], 0),
        outcome,
      ).toBeGreaterThan(50)
  })

  it('with a key and two callers at once: one effect, and the same result for both', async () => {
    const tallies = cells.filter(({ ambiguous }) => ambiguous === 'always').map(tallyOf)
    const intents: IntentRecord[] = []
    await inLanes(world.lanes, tallies, async (lane, tally) => {
      const struck = await strike(lane, tally.cell, {
        keyed: true,
        // Whoever comes first is struck; the other one waits for the key, and so does the resolver.
        call: (tried, deadline) => Promise.all([tried.call(lane.db, deadline), tried.call(lane.db, deadline)]),
        async settle(tried) {
          if (tried.verdicts.some((verdict) => verdict !== 'committed')) await tried.settle(lane.db)
          intents.push(tried.record())
        },
      })
      count(tally, struck)
    })
    const { findings, endedAs } = await judge(intents)
    expect(findings).toEqual([])
    expect(endedAs).toEqual({ committed: intents.length, aborted: 0, unknown: 0 })
    expect(
      tallies.filter(({ fired, ambiguous }) => fired !== 1 || ambiguous !== 1).map(({ cell }) => cell.name),
    ).toEqual([])
  })

  it('without a key: the server is asked for the transaction, and what stays unknown is settled by its token', async () => {
    const tallies = cells.map(tallyOf)
    const intents: IntentRecord[] = []
    await inLanes(world.lanes, [...tallies, ...tallies], async (lane, tally) => {
      const struck = await strike(lane, tally.cell, {
        keyed: false,
        call: (tried, deadline) => tried.call(lane.db, deadline),
        async settle(tried) {
          if (tried.error instanceof UnknownCommitError && tried.last === 'unknown') {
            const { outcome } = await lane.db.resolve(tried.error.resolveToken ?? '', '120s')
            tried.verdicts.splice(-1, 1, outcome)
          }
          if (tried.last === 'aborted') await tried.settle(lane.db)
          intents.push(tried.record())
        },
      })
      count(tally, struck)
    })
    print('COMMIT of a transaction without a key', tallies)
    const { findings, endedAs } = await judge(intents)
    expect(findings).toEqual([])
    expect(endedAs).toEqual({ committed: intents.length, aborted: 0, unknown: 0 })
    expectStruck(tallies)
  })
})

/** What a runner would do in place of closing the transaction first. */
type Guess = (lane: Lane) => Promise<'committed' | 'aborted'>

const guesses: Record<'blind retry' | 'look for the row, then retry', Guess> = {
  'blind retry': async () => 'aborted',
  'look for the row, then retry': async (lane) => {
    const { rowCount } = await lane.pool.query('select 1 from ledger where intent = $1', [lane.intent])
    return (rowCount ?? 0) > 0 ? 'committed' : 'aborted'
  },
}

/** The same runner on the same engine; the resolver alone is another. */
function guessing(lane: Lane, guess: Guess): Domain<PostgresTransaction<PoolClient>> {
  const engine: Engine<PostgresTransaction<PoolClient>> = postgresEngine({
    name: lane.name,
    connections: connectionsOf(lane.pool, systemClock),
    schema: postgresSchema(),
    clock: systemClock,
    bind: (client) => client as unknown as PoolClient,
  })
  return domainOf({ ...engine, resolve: () => guess(lane) })
}

describe('the same cells without a key, with the resolver replaced by a guess', () => {
  it.each(Object.entries(guesses))('%s: duplicates, and the checker names them', async (name, guess) => {
    const struck = cells.filter(({ ambiguous }) => ambiguous === 'always')
    const tallies = struck.map(tallyOf)
    const intents: IntentRecord[] = []
    const domains = new Map(world.lanes.map((lane) => [lane, guessing(lane, guess)]))
    await inLanes(world.lanes, [...tallies, ...tallies], async (lane, tally) => {
      const db = domains.get(lane) ?? lane.db
      const struck = await strike(lane, tally.cell, {
        keyed: false,
        call: (tried, deadline) => tried.call(db, deadline),
        async settle(tried) {
          // On a busy machine the short deadline may end before the guess; it is made all the same.
          if (tried.last === 'unknown') tried.verdicts.splice(-1, 1, await guess(lane))
          if (tried.last === 'aborted') await tried.settle(db)
          intents.push(tried.record())
        },
      })
      count(tally, struck)
    })
    const { findings, endedAs } = await judge(intents)
    const duplicates = findings.filter(({ kind }) => kind === 'duplicate')
    const ambiguous = sum(tallies, 'ambiguous')
    // A key would prevent a second effect whatever was guessed, so this uses calls without one.
    console.log(
      `${name}, transactions without a key: ${duplicates.length} duplicates in ${ambiguous} ambiguous commits`,
    )
    expect(tallies.filter(({ runs, fired }) => fired !== runs).map(({ cell }) => cell.name)).toEqual([])
    expect(duplicates.length).toBeGreaterThan(0)
    expect(endedAs.committed).toBe(intents.length)
  })
})
