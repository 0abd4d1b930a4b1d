// The budget that all transactions of a domain share, on a real server: contention does not use it up, and what fails
// again and again is held to it.

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { mintKey, scope } from '../../../src/identity/index.js'
import { constantDelay } from '../../../src/retry/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import type { TransactionAttemptEvent } from '../../../src/telemetry/index.js'
import { gate } from '../../../src/testing/conformance/gate.js'
import { transactionHistoryOf } from '../../../src/transaction/index.js'
import { patient, postgresWorld, type World } from './world.js'

let world: World
const failures: TransactionAttemptEvent[] = []
const heard = (event: unknown): void => void failures.push(event as TransactionAttemptEvent)
beforeAll(async () => {
  world = await postgresWorld({ max: 18 })
  await world.raw.query(`insert into item (id) values ('hot'), ('key')`)
})
beforeEach(() => {
  failures.length = 0
  subscribe('reprise.transaction.attempt', heard)
})
afterEach(() => void unsubscribe('reprise.transaction.attempt', heard))

const conflict = `do 'begin raise exception using errcode = ''40001'', message = ''could not serialize access''; end'`
const rejection = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'fulfilled',
    (error: unknown) => error,
  )

it.each(['repeatable-read', 'serializable'] as const)('lets 16 writers of one row end: %s', async (isolation) => {
  // Only the budget and the deadline may end them: by chance one in a hundred has more than eight conflicts.
  const db = postgres({ pool: world.pool, name: 'hot', attempts: 50, ...patient })
  await world.raw.query(`update item set amount = 0 where id = 'hot'`)
  const writer = async (): Promise<void> => {
    for (let round = 0; round < 10; round += 1) {
      await db.transact(
        async (tx) => {
          const { rows } = await tx.query<{ amount: number }>(`select amount from item where id = 'hot'`)
          await tx.query(`update item set amount = $1 where id = 'hot'`, [Number(rows[0]?.amount) + 1])
        },
        { isolation },
      )
    }
  }
  await Promise.all(Array.from({ length: 16 }, writer))
  const { rows } = await world.raw.query(`select amount from item where id = 'hot'`)
  expect(rows).toEqual([{ amount: 160 }])
  // They did meet.
  expect(failures.filter(({ sign }) => sign === '40001').length).toBeGreaterThan(10)
  expect(failures.filter(({ stop }) => stop !== undefined)).toEqual([])
})

it('holds many callers that fail without end to the budget, transactions and operations alike, until some commit', async () => {
  const db = postgres({
    pool: world.pool,
    name: 'livelock',
    backoff: constantDelay(1),
    ...patient,
  })
  const shop = scope('budget')
  let bodies = 0
  const failing = async (tx: { query(text: string): Promise<unknown> }): Promise<number> => {
    bodies += 1
    await tx.query(conflict)
    return 1
  }
  const pay = db.operation('pay', { scope: () => shop, key: () => mintKey(), window: '24h', run: failing })
  const errors = await Promise.all(
    Array.from({ length: 200 }, (_, number) => rejection(number % 2 === 0 ? db.transact(failing) : pay({}))),
  )
  expect(errors.filter((error) => (error as { code?: unknown }).code === '40001')).toHaveLength(200)
  // 8 each would be 1,600. The first of each, and 500 more.
  expect(bodies).toBeGreaterThanOrEqual(600)
  expect(bodies).toBeLessThanOrEqual(700)
  // Spent for all: one body each from here on, whichever way it comes.
  for (const call of [() => db.transact(failing), () => pay({})]) {
    bodies = 0
    expect(transactionHistoryOf(await rejection(call()))).toMatchObject({ because: 'budget' })
    expect(bodies).toBe(1)
  }
  expect(await db.doctor()).toContainEqual(expect.objectContaining({ code: 'BUDGET_SPENT', severity: 'risk' }))
  bodies = 0
  await rejection(db.transact(failing, { budget: false }))
  expect(bodies).toBe(8)
  while (db.budget?.full === false) await db.transact(() => 1)
  bodies = 0
  await rejection(db.transact(failing))
  expect(bodies).toBe(8)
  expect((await db.doctor()).map(({ code }) => code)).not.toContain('BUDGET_SPENT')
})

it('is switched off by a word, and the doctor says so', async () => {
  const db = postgres({ pool: world.pool, name: 'unlimited', budget: false })
  expect(db.budget).toBeUndefined()
  expect(await db.doctor()).toContainEqual(expect.objectContaining({ code: 'BUDGET_NONE', severity: 'risk' }))
})

it('is not spent by duplicates that wait for a key that another process works for', async () => {
  const { pool } = world
  const ours = postgres({ pool, name: 'duplicates', ...patient, backoff: constantDelay(1) })
  const theirs = postgres({ pool, name: 'duplicates', ...patient })
  const key = { scope: scope('budget'), key: mintKey() }
  const works = gate(2)
  const holding = theirs.transact(() => works.arrive(), { key, content: 'none' })
  await works.waiting(1)
  const duplicate = ours.transact(() => 'never', { key, content: 'none', lockWait: '50ms' })
  await expect(duplicate).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' })
  works.open()
  await holding
  expect(failures).toHaveLength(8)
  expect(ours.budget?.full).toBe(true)
})
