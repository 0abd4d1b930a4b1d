// A transaction without a key whose COMMIT was cut: its effect is read by a natural key, once the server says that it
// has ended, and not before.

import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest'
import { type PostgresTransaction, postgres } from '../../src/stores/postgres/index.js'
import { UnknownCommitError } from '../../src/transaction/index.js'
import { type Lane, type Lanes, openLanes } from './lanes.js'

let world: Lanes
let lane: Lane
const pools: pg.Pool[] = []
beforeAll(async () => {
  world = await openLanes(inject('postgresUrl'), 1, { deadline: '60s', connectionWait: '20s', bodyLimit: '30s' })
  lane = world.lanes[0] as Lane
  await world.raw.query('create table payment (number text primary key, amount int not null)')
  await lane.db.transact((tx) => tx.query('select 1'))
})
afterAll(() => Promise.all(pools.map((pool) => pool.end())))

type Tx = PostgresTransaction<pg.PoolClient>
let [number, runs, asked] = ['', 0, 0]
beforeEach(() => {
  ;[number, runs, asked] = [randomUUID(), 0, 0]
})
const pay = async (tx: Tx) => {
  runs += 1
  await tx.query('insert into payment values ($1, $2)', [number, 100])
  return { amount: 100, by: 'the body' }
}
const found = async (tx: Tx) => {
  asked += 1
  const { rows } = await tx.query<{ amount: number }>('select amount from payment where number = $1', [number])
  return rows[0] === undefined ? undefined : { amount: rows[0].amount, by: 'the row' }
}
const commits = (text: string): boolean => text.endsWith('COMMIT')
const payments = async (): Promise<number | null> =>
  (await world.raw.query('select 1 from payment where number = $1', [number])).rowCount

describe('a COMMIT that was cut', () => {
  it('before it arrived: nothing is found, and the body runs again', async () => {
    const armed = lane.proxy.arm({ statement: commits, at: 'before-forward', action: 'rst' })
    expect(await lane.db.transact(pay, { found })).toEqual({ amount: 100, by: 'the body' })
    expect([armed.fired.length, runs, asked, await payments()]).toEqual([1, 2, 1, 1])
  })

  it('after it arrived: the server says that it committed, and nothing is read', async () => {
    const armed = lane.proxy.arm({ statement: commits, at: 'before-answer', action: 'rst' })
    expect(await lane.db.transact(pay, { found })).toEqual({ amount: 100, by: 'the body' })
    expect([armed.fired.length, runs, asked, await payments()]).toEqual([1, 1, 0, 1])
  })

  it('where nothing proves that it ended, is unknown, and nothing is read', async () => {
    const pool = new pg.Pool({ ...lane.pool.options, max: 2 })
    pools.push(pool)
    const db = postgres({ pool, name: 'untraced', resolvesUnkeyed: false, deadline: '20s', connectionWait: '10s' })
    // The first transaction of a connection is traced all the same.
    await db.transact((tx) => tx.query('select 1'))
    const armed = lane.proxy.arm({ statement: commits, at: 'before-answer', action: 'rst' })
    await expect(db.transact(pay, { found })).rejects.toBeInstanceOf(UnknownCommitError)
    expect([armed.fired.length, runs, asked, await payments()]).toEqual([1, 1, 0, 1])
  })
})
