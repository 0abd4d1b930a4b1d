// Leased claims on a store that has no connection to spare, or is locked: they are given up as atomic ones are, with
// the same code and long before the deadline.

import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { leasedRoute, reply } from '../../../src/http/core/index.js'
import { hold, leased, type Operations } from '../../../src/idempotency/index.js'
import { type Key, mintKey } from '../../../src/identity/index.js'
import { systemClock } from '../../../src/kernel/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { gate } from '../../../src/testing/conformance/gate.js'
import { transactionHistoryOf } from '../../../src/transaction/index.js'
import { send, usual } from '../../http/route-world.js'
import { createDatabase } from '../../servers/fresh-database.js'
import { libsqlStack } from '../callback/orms.js'
import { freshFile, itemStore, stranger } from '../sqlite/files.js'
import { identity, type Order } from './worlds.js'

const order = (key: Key = mintKey()): Order => ({ key, amount: 5 })
const wait = '300ms'

interface Ended {
  readonly code: unknown
  readonly certain: unknown
  readonly tookMs: number
}

async function ending(work: () => Promise<unknown>): Promise<Ended> {
  const sinceMs = systemClock.monotonicMs()
  const error: { code?: unknown; details?: { certain?: unknown } } = await work().then(
    () => ({ code: 'fulfilled' }),
    (thrown) => thrown,
  )
  return { code: error.code, certain: error.details?.certain, tookMs: systemClock.monotonicMs() - sinceMs }
}

/** The same intent in both modes, as a function and as a route, and how often any of them ran. */
function operationsOn(db: Operations<never> & Parameters<typeof leasedRoute>[0]) {
  let runs = 0
  const run = () => {
    runs += 1
    return runs
  }
  const rest = { ...identity, wait } as const
  const route = leasedRoute(db, { ...usual, lease: '30s', recover: hold(), wait }, () => reply(201, { run: run() }))
  return {
    runs: () => runs,
    atomic: db.operation('pay', { ...rest, run }),
    leased: leased<Order, number>('charge', { ...rest, store: db, lease: '30s', recover: hold(), run }),
    route,
  }
}

/** Both modes and the route end in this way while the store is kept; afterwards all of them work. */
async function alike(
  operations: ReturnType<typeof operationsOn>,
  expected: Omit<Ended, 'tookMs'>,
  letGo: () => unknown,
): Promise<void> {
  const one = order()
  const ended = await ending(() => operations.leased(one, { deadline: '30s' }))
  expect(ended).toMatchObject(expected)
  expect(ended.tookMs).toBeGreaterThan(250)
  expect(ended.tookMs).toBeLessThan(25_000)
  expect(await ending(() => operations.atomic(order(), { deadline: '30s' }))).toMatchObject(expected)
  const key = mintKey() as string
  expect(await send(operations.route, { key })).toMatchObject({
    status: 503,
    problem: 'store-unavailable',
    headers: { 'retry-after': expect.stringMatching(/^\d+$/) },
  })
  expect(operations.runs()).toBe(0)
  await letGo()
  expect(await operations.leased(one)).toBe(1)
  expect(await send(operations.route, { key })).toMatchObject({ status: 201, text: '{"run":2}' })
}

describe('PostgreSQL', () => {
  let pool: pg.Pool
  beforeAll(async () => {
    const database = await createDatabase(inject('postgresUrl'))
    pool = new pg.Pool({ connectionString: database.url, max: 1 })
    afterAll(async () => {
      await pool.end()
      await database.drop()
    })
  })

  it('says POOL_EXHAUSTED after the wait for a connection, and 503', async () => {
    const db = postgres({ name: 'full', pool, connectionWait: '300ms' })
    await postgres({ name: 'maker', pool, connectionWait: '60s' }).migrate()
    const operations = operationsOn(db as never)
    const taken = await pool.connect()
    await alike(operations, { code: 'POOL_EXHAUSTED', certain: undefined }, () => taken.release())
  })
})

it('PostgreSQL says who has locked the tables, also where the last attempts were too short to ask', async () => {
  const database = await createDatabase(inject('postgresUrl'))
  const pool = new pg.Pool({ connectionString: database.url, max: 2 })
  const other = new pg.Client({ connectionString: database.url, application_name: 'a stranger' })
  await other.connect()
  const db = postgres({ name: 'locked', pool, lockWait: '20s', connectionWait: '20s' })
  await db.migrate()
  await Promise.all([1, 2].map(() => db.transact((tx) => tx.query('select pg_sleep(0.1)'))))
  const pay = db.operation('pay', { ...identity, wait: '3s', run: () => 1 })
  await other.query('begin; lock table reprise_marker in access exclusive mode')
  const error: unknown = await pay(order(), { deadline: '60s' }).catch((thrown: unknown) => thrown)
  const blockers = [{ application: 'a stranger', state: 'idle in transaction' }]
  expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', details: { blockers: 1 }, blockers, cause: { code: '55P03' } })
  const attempts = transactionHistoryOf(error)?.attempts ?? []
  expect(attempts.length).toBeGreaterThan(1)
  expect(attempts.at(-1)?.error).toBe(error)
  await Promise.all([other.end(), pool.end()])
  await database.drop()
})

describe('SQLite', () => {
  it('says at the end of its wait that somebody writes, and 503, while another process has the file', async () => {
    const file = freshFile()
    const operations = operationsOn((await itemStore(file)) as never)
    const other = stranger(file)
    other.exec('BEGIN IMMEDIATE')
    await alike(operations, { code: 'OPERATION_IN_FLIGHT', certain: false }, () => other.exec('COMMIT'))
  })

  it('says POOL_EXHAUSTED, and 503, while a transaction of this process has it', async () => {
    const db = await itemStore(freshFile(), { connectionWait: '300ms', bodyLimit: '60s', deadline: '2m' })
    const operations = operationsOn(db as never)
    const inside = gate(2)
    const writing = db.transact(() => inside.arrive())
    await inside.waiting(1)
    await alike(operations, { code: 'POOL_EXHAUSTED', certain: undefined }, async () => {
      await inside.arrive()
      await writing
    })
  })

  it('refuses a duplicate that would rather be refused while the claim of the first one waits for the file', async () => {
    const file = freshFile()
    const db = await itemStore(file)
    const other = stranger(file)
    const options = { ...identity, store: db, lease: '30s', recover: hold(), duplicates: 'refuse' } as const
    const charge = leased<Order, number>('charge', { ...options, wait: '20s', run: () => 1 })
    other.exec('BEGIN IMMEDIATE')
    const one = order()
    const first = charge(one, { deadline: '30s' })
    const second = await ending(() => charge(one))
    expect(second).toMatchObject({ code: 'OPERATION_IN_FLIGHT' })
    expect(second.tookMs).toBeLessThan(18_000)
    other.exec('COMMIT')
    expect(await first).toBe(1)
    // Those that come while a finished key is looked up are given its outcome.
    expect(await Promise.all([charge(one), charge(one), charge(one)])).toEqual([1, 1, 1])
  })

  it('says so through a callback too', async () => {
    const file = freshFile()
    const other = stranger(file)
    const { db, close } = libsqlStack(file, 1)
    await (await itemStore(file)).close()
    const operations = operationsOn(db as never)
    other.exec('BEGIN IMMEDIATE')
    await alike(operations, { code: 'OPERATION_IN_FLIGHT', certain: false }, () => other.exec('COMMIT'))
    await close()
  })
})
