// BEGIN on a connection that was dropped on the way: no answer and no error arrives. It is sent on another connection
// long before the deadline.

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest'
import { type TransactionAttemptEvent, transactionAttempt } from '../../src/telemetry/index.js'
import type { FaultMoment } from '../../src/testing/index.js'
import { until } from '../servers/server-process.js'
import { effectOf, type Lane, type Lanes, openLanes, Tried, tests } from './lanes.js'

let world: Lanes
let lane: Lane
let failures: TransactionAttemptEvent[] = []
const note = (event: unknown): void => void failures.push(event as TransactionAttemptEvent)
beforeAll(async () => {
  world = await openLanes(inject('postgresUrl'), 1, {
    connectionWait: '2s',
    lockWait: '200ms',
    attempts: 3,
    deadline: '12s',
  })
  lane = world.lanes[0] as Lane
})
beforeEach(async () => {
  await world.raw.query('truncate ledger')
  // A connection that was used before lies idle in the pool: on it BEGIN goes out together with the claim.
  await lane.db.transact((tx) => tx.query('select 1'))
  failures = []
  subscribe(transactionAttempt.name, note)
})
afterEach(async () => {
  unsubscribe(transactionAttempt.name, note)
  await lane.proxy.heal()
})

const begins = (text: string): boolean => text.startsWith('BEGIN')
const unanswered = { phase: 'connecting', outcome: 'aborted', help: 'transient', sign: 'CONNECT_TIMEOUT' }

/** How many transactions of the lane are open on the server. */
async function open(): Promise<number> {
  const text = `select 1 from pg_stat_activity where application_name = $1 and xact_start is not null`
  return (await world.raw.query(text, [lane.name])).rowCount ?? 0
}

describe('a BEGIN that is swallowed', () => {
  it.each<[FaultMoment, number]>([
    ['before-forward', 0],
    ['after-forward', 1],
  ])('%s is sent again on another connection', async (at, left) => {
    const armed = lane.proxy.arm({ statement: begins, at, action: 'black-hole' })
    const attempts: number[] = []
    await lane.db.transact(async (tx) => {
      attempts.push(tx.attempt)
      await effectOf('plain')(tx)
    })
    expect(armed.fired).toHaveLength(1)
    // It goes out with the first statement of the body, so that the body has begun.
    expect(attempts).toEqual([1, 2])
    expect(failures).toMatchObject([unanswered])
    expect(await world.ledger()).toHaveLength(2)
    // It wrote nothing, so what may be left of it on the server is in nobody's way.
    await until(async () => (await open()) === left, 'nothing else is open')
  })

  it('before a body that may run only once is sent again on another connection, and the body runs once', async () => {
    const armed = lane.proxy.arm({ statement: begins, at: 'before-forward', action: 'black-hole' })
    const attempts: number[] = []
    await lane.db.transact(
      async (tx) => {
        attempts.push(tx.attempt)
        await effectOf('once')(tx)
      },
      { attempts: 1 },
    )
    expect(armed.fired).toHaveLength(1)
    expect(attempts).toEqual([2])
    expect(failures).toMatchObject([unanswered])
    expect(await world.ledger()).toHaveLength(2)
  })

  it('with the claim of a key is sent again too', async () => {
    const armed = lane.proxy.arm({ statement: begins, at: 'before-forward', action: 'black-hole' })
    const tried = new Tried(lane, true)
    expect(await tried.call(lane.db, '12s')).toBe('committed')
    expect(armed.fired).toHaveLength(1)
    expect(armed.fired[0]?.texts.join()).toContain('reprise_marker')
    expect(failures).toMatchObject([unanswered])
    expect(await world.ledger()).toHaveLength(2)
  })

  it('with a claim that arrived has its key until the server gives it up: refused, never done twice, and the next call does it', async () => {
    const armed = lane.proxy.arm({ statement: begins, at: 'after-forward', action: 'black-hole' })
    const tried = new Tried(lane, true)
    expect(await tried.call(lane.db, '12s')).toBe('aborted')
    expect(armed.fired).toHaveLength(1)
    const [first, ...others] = failures
    expect(first).toMatchObject(unanswered)
    const signs = others.map(({ sign }) => sign)
    expect(signs).toContain('55P03')
    // On a busy machine a BEGIN that waits for the key may be given up before the server refuses it.
    expect(signs.filter((sign) => sign !== '55P03' && sign !== 'CONNECT_TIMEOUT')).toEqual([])
    expect(await world.ledger()).toEqual([])
    await lane.proxy.heal()
    await until(async () => (await open()) === 0, 'the server has given it up')
    expect(
      await lane.db.transact(effectOf(tried.id), { content: 'none', key: { scope: tests, key: tried.minted } }),
    ).toBeTypeOf('string')
    expect(await world.ledger()).toHaveLength(2)
  })
})
