// What the runner tells of a transaction that did not end well: a definite error as long as there is one to be had, an
// alarm where nobody knows, and the codes of server and driver, each under its name.

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest'
import { systemClock } from '../../src/kernel/index.js'
import { type TransactionAttemptEvent, transactionAttempt } from '../../src/telemetry/index.js'
import { transactionHistoryOf, UnknownCommitError } from '../../src/transaction/index.js'
import { effectOf, type Lane, type Lanes, openLanes } from './lanes.js'
import { committing, letGo, park, parkedEffect, preparePark } from './parked.js'

let world: Lanes
let lane: Lane
let told: TransactionAttemptEvent[] = []
const note = (event: unknown): void => void told.push(event as TransactionAttemptEvent)
beforeAll(async () => {
  world = await openLanes(inject('postgresUrl'), 1, { deadline: '60s', connectionWait: '20s' })
  lane = world.lanes[0] as Lane
  await preparePark(world.raw)
  await lane.db.transact((tx) => tx.query('select 1'))
})
beforeEach(() => {
  told = []
  subscribe(transactionAttempt.name, note)
})
afterEach(async () => {
  unsubscribe(transactionAttempt.name, note)
  await letGo(world.raw)
  await lane.proxy.heal()
})

const error = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => expect.unreachable('it was to fail'),
    (reason: unknown) => reason,
  )

describe('a body that keeps the event loop busy beyond the deadline', () => {
  it('ends in a definite error: COMMIT is not sent without time for its answer', async () => {
    const commits = lane.proxy.arm({
      statement: (text) => text.endsWith('COMMIT'),
      at: 'before-forward',
      action: 'delay',
      delayMs: 1,
    })
    const late = lane.db.transact(
      async (tx) => {
        await effectOf('late')(tx)
        // Else the server's own limit may be told first.
        await tx.query('set local idle_in_transaction_session_timeout = 0')
        const endMs = systemClock.monotonicMs() + 2_000
        while (systemClock.monotonicMs() < endMs);
      },
      { deadline: '2s' },
    )
    const reason = await error(late)
    expect(reason).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(transactionHistoryOf(reason)?.attempts).toMatchObject([{ phase: 'body', ruling: { outcome: 'aborted' } }])
    expect(commits.fired).toEqual([])
    expect(await world.ledger()).toEqual([])
  })
})

describe('an outcome that stayed unknown', () => {
  it('alarms', async () => {
    await park(world.raw)
    const parked = error(lane.db.transact(parkedEffect('parked'), { deadline: '5s', attempts: 1 }))
    await committing(world.raw)
    // Nobody answers whoever asks what became of it.
    const deaf = { times: 1_000, at: 'before-forward', action: 'black-hole' } as const
    lane.proxy.arm({ ...deaf, statement: 'startup' })
    lane.proxy.arm({ ...deaf, statement: () => true })
    const reason = await parked
    expect(reason).toBeInstanceOf(UnknownCommitError)
    expect(told).toMatchObject([{ phase: 'committing', stop: 'unknown', alarm: true }])
  })
})

describe('an attempt that failed', () => {
  it('is told with its SQLSTATE, which is not the code of a driver', async () => {
    const raise = `do $$ begin raise exception 'no' using errcode = '40001'; end $$`
    await error(lane.db.transact((tx) => tx.query(raise), { attempts: 2 }))
    expect(told).toMatchObject([
      { sign: '40001', sqlState: '40001', delayMs: expect.any(Number), alarm: false },
      { sign: '40001', sqlState: '40001', stop: 'attempts', alarm: false },
    ])
    expect(told.every((event) => !('driverCode' in event))).toBe(true)
  })

  it('is told with its SQLSTATE also where the body threw another error in its place', async () => {
    const raise = `do $$ begin raise exception 'no' using errcode = '40P01'; end $$`
    const own = new Error('the body’s own')
    const body = lane.db.transact((tx) => tx.query(raise).catch(() => Promise.reject(own)), { attempts: 1 })
    expect(await error(body)).toBe(own)
    expect(told).toMatchObject([{ sqlState: '40P01' }])
    expect(transactionHistoryOf(own)?.attempts).toMatchObject([{ sqlState: '40P01' }])
  })

  it('is told with the code of the driver where the network cut it', async () => {
    const armed = lane.proxy.arm({ statement: (text) => text.includes('cut me'), at: 'before-forward', action: 'rst' })
    await lane.db.transact((tx) => tx.query(`select 'cut me'`))
    expect(armed.fired).toHaveLength(1)
    expect(told).toMatchObject([{ sign: 'connection-lost', driverCode: 'ECONNRESET' }])
    expect(told[0]).not.toHaveProperty('sqlState')
  })

  it('has no codes where the body threw on its own', async () => {
    await error(lane.db.transact(() => Promise.reject(Object.assign(new Error('declined'), { code: 'CARD_DECLINED' }))))
    expect(told).toMatchObject([{ sign: 'body-threw' }])
    expect(told[0]).not.toHaveProperty('driverCode')
  })
})
