// Every other statement of a transaction with a key, cut at every moment; then the statements of the resolver itself,
// after COMMIT was cut.

import { beforeAll, describe, expect, inject, it } from 'vitest'
import {
  checkEffects,
  commits,
  type FaultActionName,
  type FaultMoment,
  type IntentRecord,
  type ProxyFault,
} from '../../src/testing/index.js'
import { until } from '../servers/server-process.js'
import { inLanes, type Lane, type Lanes, openLanes, parts, Tried, table } from './lanes.js'

const moments: readonly FaultMoment[] = [
  'before-forward',
  'after-forward',
  'before-answer',
  'between-answers',
  'after-answers',
]
const actions: readonly Exclude<FaultActionName, 'late'>[] = ['fin', 'rst', 'half-open', 'black-hole', 'delay']

const begins = (text: string): boolean => text.startsWith('BEGIN') && !text.includes('marker')
// The outcome is an INSERT too, which updates.
const claims = (text: string): boolean => text.startsWith('INSERT INTO') && /marker.* DO NOTHING/.test(text)
// On a connection that was used before it leaves in one write with BEGIN, and a cut hits both.
const claimsWithBegin = (text: string): boolean => claims(text)
const reads = (text: string): boolean => text.startsWith('SELECT') && text.includes('marker')
const works = (text: string): boolean => text.includes('into ledger')
const rollsBack = (text: string): boolean => text === 'ROLLBACK'

interface Counted {
  readonly name: string
  runs: number
  fired: number
  /** Calls until it was done. */
  calls: number
  unknown: number
}

let world: Lanes
beforeAll(async () => {
  const limits = { lockWait: '2s', connectionWait: '400ms', bodyLimit: '400ms' } as const
  world = await openLanes(inject('postgresUrl'), 8, limits)
})

async function judged(intents: readonly IntentRecord[]): Promise<void> {
  const ids = new Set(intents.map(({ id }) => id))
  const effects = (await world.ledger()).filter(({ intent }) => ids.has(intent))
  const { findings, endedAs } = checkEffects({ intents, effects, parts, healed: true })
  expect(findings).toEqual([])
  expect(endedAs).toEqual({ committed: intents.length, aborted: 0, unknown: 0 })
}

function print(title: string, counts: readonly Counted[]): void {
  const rows = counts.map(({ name, runs, fired, calls, unknown }) => [name, runs, fired, calls, unknown])
  console.log([title, table(['cut', 'runs', 'fired', 'calls', 'unknown calls'], rows), ''].join('\n'))
}

/** For each choice of a statement one line, over all moments and actions. */
function cutsOf<Choice extends ProxyFault['statement']>(choices: Readonly<Record<string, Choice>>) {
  return Object.entries(choices).flatMap(([name, statement]) =>
    actions.map((action) => {
      const counted: Counted = { name: `${name} ${action}`, runs: 0, fired: 0, calls: 0, unknown: 0 }
      return moments.map((at) => ({ counted, fault: { statement, at, action, delayMs: 30 } satisfies ProxyFault }))
    }),
  )
}

describe('a statement before COMMIT, cut in every way', () => {
  const statements = {
    opening: 'startup',
    'BEGIN alone': begins,
    'claim alone': claims,
    'BEGIN with its claim': claimsWithBegin,
    'first statement of the body': works,
  } as const
  // On a connection that is new, its backend is asked for first, and the claim comes after.
  const onNewConnection: ReadonlySet<ProxyFault['statement']> = new Set(['startup', begins, claims])

  const leavesOpen: ReadonlySet<ProxyFault['action']> = new Set(['black-hole', 'half-open'])

  it('aborts and is repeated: one effect, and never an unknown', async () => {
    const cuts = cutsOf<ProxyFault['statement']>(statements).flat()
    const last = actions.map((action) => {
      const counted: Counted = {
        name: `second statement of the body ${action}`,
        runs: 0,
        fired: 0,
        calls: 0,
        unknown: 0,
      }
      const fault = { statement: works, nth: 2, action, delayMs: 30 }
      return moments.map((at) => ({ counted, fault: { ...fault, at } }))
    })
    const all: { readonly counted: Counted; readonly fault: ProxyFault }[] = [...cuts, ...last.flat()]
    const intents: IntentRecord[] = []
    await inLanes(world.lanes, all, async (lane, { counted, fault }) => {
      const tried = new Tried(lane, true)
      if (onNewConnection.has(fault.statement)) await emptied(lane.pool)
      const armed = lane.proxy.arm(fault)
      for (let calls = 0; calls < 5 && armed.fired.length === 0; calls += 1) {
        if ((await tried.call(lane.db, '2.5s')) === 'committed')
          await until(() => armed.fired.length > 0, 'the fault strikes')
      }
      armed.disarm()
      // If a cut leaves the old transaction open, the key is locked until the server gives up on it: the next call
      // waits.
      if (tried.last !== 'committed') await tried.settle(lane.db)
      counted.runs += 1
      counted.fired += armed.fired.length
      counted.calls += tried.verdicts.length
      // A cut behind the answer to the last statement is met by COMMIT, which is another matter.
      if (fault.nth !== 2 || fault.at !== 'after-answers') {
        counted.unknown += tried.verdicts.filter((verdict) => verdict === 'unknown').length
        // A call that waited for such a key may reach its own COMMIT at the very end of its time, and learn from the
        // resolver that it succeeded.
        const waited = leavesOpen.has(fault.action)
        const unclear = lane.resolved.filter(({ outcome }) => !(waited && outcome === 'committed'))
        expect(unclear, `${counted.name} ${fault.at}`).toEqual([])
      }
      intents.push(tried.record())
      await lane.proxy.heal()
    })
    const counts = [...new Set(all.map(({ counted }) => counted))]
    print('Statements before COMMIT', counts)
    await judged(intents)
    expect(counts.filter(({ runs, fired, unknown }) => fired !== runs || unknown > 0)).toEqual([])
  })
})

/** Ends the idle connections, so that the next call opens one. */
async function emptied(pool: Lanes['lanes'][number]['pool']): Promise<void> {
  const clients = await Promise.all(Array.from({ length: pool.idleCount }, () => pool.connect()))
  for (const client of clients) client.release(true)
  await until(() => pool.totalCount === 0, 'the pool is empty')
}

describe('the resolver’s own statements, cut in every way', () => {
  const statements = {
    opening: 'startup',
    BEGIN: begins,
    closing: claims,
    reading: reads,
    ROLLBACK: rollsBack,
  } as const
  const first = { committed: 'after-forward', aborted: 'before-forward' } as const

  /**
   * Cuts a COMMIT and a statement of its resolver, then makes one more call if needed. Returns how often the second
   * fault happened.
   */
  async function cutTwice(lane: Lane, at: FaultMoment, fault: ProxyFault, limitSeconds: number, name: string) {
    const tried = new Tried(lane, true)
    await emptied(lane.pool)
    const commit = lane.proxy.arm({ statement: commits, at, action: 'fin' })
    const { statement } = fault
    const second =
      statement === 'startup'
        ? commit.first.then(() => lane.proxy.arm(fault))
        : lane.proxy.arm({
            ...fault,
            statement: (text) => commit.fired.length > 0 && (statement as (text: string) => boolean)(text),
          })
    const beganMs = performance.now()
    let calls = 0
    for (; calls < 5 && commit.fired.length === 0; calls += 1) await tried.call(lane.db, `${limitSeconds}s`)
    const tookMs = performance.now() - beganMs
    const armed = await second
    // Behind the whole answer it may strike after the call has ended; that there was nothing to strike is no finding.
    await until(() => armed.fired.length > 0, 'the second fault strikes', 1_000).catch(() => undefined)
    armed.disarm()
    expect(lane.resolved.length, name).toBeGreaterThan(0)
    // Whatever becomes of the resolver’s connection, the caller is answered in time.
    expect(tookMs, name).toBeLessThan(calls * limitSeconds * 1_000 + 15_000)
    if (tried.last !== 'committed') await tried.settle(lane.db)
    await lane.proxy.heal()
    return { tried, fired: armed.fired.length }
  }

  it.each(Object.entries(first))('after a COMMIT that was %s: one effect', async (truth, at) => {
    const cuts = cutsOf<ProxyFault['statement']>(statements)
      .flat()
      // Of a transaction that is dead nothing is read.
      .filter(({ fault }) => truth === 'committed' || fault.statement !== reads)
    const intents: IntentRecord[] = []
    await inLanes(world.lanes, cuts, async (lane, { counted, fault }) => {
      // On a busy machine the time for resolving may be over before the statement is sent: then it gets more time.
      for (const limitSeconds of [1, 2, 4, 8]) {
        const { tried, fired } = await cutTwice(lane, at, fault, limitSeconds, counted.name)
        intents.push(tried.record())
        counted.calls += tried.verdicts.length
        counted.unknown += tried.verdicts.filter((verdict) => verdict === 'unknown').length
        counted.fired += fired
        if (fired > 0) break
      }
      counted.runs += 1
    })
    const counts = [...new Set(cuts.map(({ counted }) => counted))]
    print(`Statements of the resolver, after a COMMIT that was ${truth}`, counts)
    await judged(intents)
    expect(counts.filter(({ runs, fired }) => fired !== runs)).toEqual([])
  })
})
