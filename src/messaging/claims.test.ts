import { describe, expect, it } from 'vitest'
import { RepriseError, seededRandom } from '../kernel/index.js'
import { type MemoryDomain, memory } from '../stores/memory/index.js'
import { type ManualClock, manualClock } from '../testing/index.js'
import { Claims, isSetUp } from './claims.js'
import type { ClaimedLane, LaneEnd } from './lanes.js'

const reader = { name: 'out', kind: 'relay', reads: 'outbox' } as const
const parked = (lane: ClaimedLane): LaneEnd['then'] => ({
  is: 'park',
  letter: { message: lane.messages[0] as ClaimedLane['messages'][number], code: 'C', reason: 'r', history: '[]' },
})

/** Claims of a store whose ends a test can refuse, and which can be away. */
async function world(...keys: readonly string[]) {
  const clock = manualClock()
  const db = memory({ name: 'shop', clock })
  let refuses = (_end: LaneEnd): boolean => false
  let isAway = false
  const calls: number[] = []
  const answered = <Result>(work: () => Promise<Result>): Promise<Result> =>
    isAway ? Promise.reject(new Error('away')) : work()
  const { messages } = db
  const store = {
    ...messages,
    extend: (...given: Parameters<typeof messages.extend>) => answered(() => messages.extend(...given)),
    end: (...given: Parameters<typeof messages.end>) =>
      answered(() => {
        calls.push(given[0].length)
        return given[0].some(refuses) ? Promise.reject(new Error('refused')) : messages.end(...given)
      }),
  }
  const claims = claimsOf(store, clock, 1)
  for (const key of keys) await db.transact((tx) => tx.emit({ type: 't', id: `${key}1`, key, data: {} }))
  await claims.register(new AbortController().signal)
  return {
    db,
    clock,
    claims,
    calls,
    refuse(which: typeof refuses): void {
      refuses = which
    },
    away(is: boolean): void {
      isAway = is
    },
  }
}

function claimsOf(store: MemoryDomain['messages'], clock: ManualClock, seed: number): Claims {
  const settings = { reader, leaseMs: 1_000, storeLimitMs: 1_000, crashes: 2, clock, random: seededRandom(seed) }
  return new Claims(store, settings)
}

const states = (db: MemoryDomain): unknown =>
  Object.fromEntries(db.rows('reprise_lane').map(({ key, state, owner }) => [key, [state, owner === null]]))

describe('what is owed', () => {
  it('is written in one call, and each is told', async () => {
    const { claims, calls, db } = await world('a', 'b')
    const { lanes } = await claims.claim(10, 10)
    const told: unknown[] = []
    for (const lane of lanes) claims.owe(lane, lane.messages[0]?.place, { is: 'free' }, (is) => told.push(is))
    await claims.pay()
    await claims.pay()
    expect([calls, told, states(db)]).toEqual([[2], [true, true], { a: [0, true], b: [0, true] }])
  })

  it('stays owed while the store is away, for however long', async () => {
    const { claims, away, db, clock } = await world('a', 'b')
    const { lanes } = await claims.claim(10, 10)
    for (const lane of lanes) claims.owe(lane, undefined, parked(lane))
    away(true)
    for (let tries = 0; tries < 10; tries += 1) await expect(claims.pay()).rejects.toThrow('away')
    away(false)
    await clock.advance('1h')
    await claims.pay()
    expect(states(db)).toEqual({ a: [2, true], b: [2, true] })
  })

  it('is written beside an end that the store refuses, which is given up after a few tries', async () => {
    const { claims, refuse, db } = await world('a', 'b', 'c')
    const { lanes } = await claims.claim(10, 10)
    const told: Record<string, boolean> = {}
    for (const lane of lanes) {
      claims.owe(lane, undefined, parked(lane), (isWritten) => {
        told[lane.key] = isWritten
      })
    }
    refuse(({ key }) => key === 'b')
    await expect(claims.pay()).rejects.toThrow('refused')
    expect(told).toEqual({ a: true, c: true })
    expect(states(db)).toEqual({ a: [2, true], b: [1, false], c: [2, true] })
    // Others may have been in its way, so that it is tried again, and each time is told.
    await expect(claims.pay()).rejects.toThrow('refused')
    await expect(claims.pay()).rejects.toThrow('refused')
    expect(told).toEqual({ a: true, b: false, c: true })
    await claims.pay()
  })
})

describe('the lanes of a claim', () => {
  it('are all given back where it cannot be written that some are', async () => {
    const { claims, away, db, clock } = await world('a', 'b')
    await claims.claim(10, 10)
    await clock.advance(1_001)
    const { lanes } = await claims.claim(10, 10)
    expect(lanes.map(({ claims: times }) => times)).toEqual([2, 2])
    away(true)
    await expect(claims.sorted(lanes)).rejects.toThrow('away')
    away(false)
    await claims.pay()
    expect(states(db)).toEqual({ a: [1, true], b: [1, true] })
    const next = await claims.sorted((await claims.claim(10, 10)).lanes)
    expect([next.kept.length, next.released.length, next.alone?.claims]).toEqual([1, 1, 1])
  })

  it('that begin alone are noted in the store; those of others are not', async () => {
    const { claims, db, clock } = await world('a')
    const [lane] = (await claims.claim(1, 1)).lanes as [ClaimedLane]
    expect(await claims.beginAlone(lane)).toBe(true)
    expect(JSON.parse(String(db.rows('reprise_lane')[0]?.['history']))).toMatchObject([{ what: 'alone', times: 1 }])
    await clock.advance(1_001)
    const [taken] = (await claimsOf(db.messages, clock, 2).claim(1, 1)).lanes
    expect(taken?.claims).toBe(2)
    expect(await claims.beginAlone(lane)).toBe(false)
  })
})

it('tells what no pause mends from what one may', () => {
  expect(isSetUp(new RepriseError('STORE_CLOSED', 'closed'))).toBe(true)
  expect(isSetUp(new RepriseError('STORE_UNREACHABLE', 'away'))).toBe(false)
  expect(isSetUp(new Error('of a driver'))).toBe(false)
})

it('looks for what was emitted before it was known again soon, and then less and less often', async () => {
  const clock = manualClock()
  const { messages } = memory({ name: 'shop', clock })
  const atMs: number[] = []
  const register = async (...given: Parameters<typeof messages.register>): Promise<boolean> => {
    atMs.push(clock.monotonicMs())
    return messages.register(...given)
  }
  const claims = claimsOf({ ...messages, register }, clock, 1)
  const { signal } = new AbortController()
  for (let steps = 0; steps < 2_000; steps += 1) {
    await claims.register(signal)
    await clock.advance(100)
  }
  const gapsMs = atMs.slice(1).map((ms, place) => ms - (atMs[place] as number))
  expect(gapsMs).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000])
})
