// Answers to COMMIT that are not what they seem, and COMMIT without an answer, through the runner.

import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest'
import { mintKey } from '../../src/identity/index.js'
import { type PostgresDomain, type PostgresTransaction, postgres } from '../../src/stores/postgres/index.js'
import { type FaultPoints, faultPoints } from '../../src/testing/index.js'
import { type TransactionDefaults, transactionHistoryOf, UnknownCommitError } from '../../src/transaction/index.js'
import { until } from '../servers/server-process.js'
import { effectOf, type Lanes, openLanes, tests } from './lanes.js'
import { committing, letGo, park, parkedEffect, preparePark } from './parked.js'

let world: Lanes
let points: FaultPoints
const pools: pg.Pool[] = []

beforeAll(async () => {
  world = await openLanes(inject('postgresUrl'), 1)
  await preparePark(world.raw)
  points = faultPoints()
})
afterEach(() => letGo(world.raw))
afterAll(async () => {
  points.disarm()
  await Promise.all(pools.map((pool) => pool.end()))
})

/** A domain on a pool of its own, and the connections that the pool has made. */
function domain(
  config: pg.PoolConfig = {},
  limits: Partial<TransactionDefaults> = {},
): { db: PostgresDomain<pg.PoolClient>; clients: pg.PoolClient[] } {
  const pool = new pg.Pool({ connectionString: world.url, max: 3, ...config })
  pools.push(pool)
  const clients: pg.PoolClient[] = []
  pool.on('connect', (client) => clients.push(client))
  const patient = { connectionWait: '20s', bodyLimit: '30s', lockWait: '20s' } as const
  return { db: postgres({ pool, name: 'traps', ...patient, ...limits }), clients }
}

const effects = async (intent: string): Promise<number> =>
  (await world.ledger()).filter((effect) => effect.intent === intent && effect.part === 'debit').length

const caught = async (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  )

describe('silent rollback', () => {
  it('COMMIT of a failed transaction resolves in the driver with the tag ROLLBACK; here it is an abort', async () => {
    const bare = new pg.Client(world.url)
    await bare.connect()
    await bare.query('begin')
    await bare.query('select 1/0').catch(() => undefined)
    expect((await bare.query('commit')).command).toBe('ROLLBACK')
    await bare.end()

    const intent = randomUUID()
    const { db, clients } = domain({ max: 1 })
    const error = await caught(
      db.transact(async (tx) => {
        await effectOf(intent)(tx)
        // Behind the handle's back, so that only the tag can tell.
        await clients[0]?.query('select 1/0').catch(() => undefined)
      }),
    )
    expect(error).toMatchObject({ code: 'COMMIT_ROLLED_BACK' })
    expect(transactionHistoryOf(error)?.attempts).toMatchObject([
      { phase: 'committing', ruling: { outcome: 'aborted' } },
    ])
    expect(await effects(intent)).toBe(0)
  })

  it('an error that the body swallowed ends the transaction, and the caller is told', async () => {
    const intent = randomUUID()
    const { db } = domain()
    const error = await caught(
      db.transact(async (tx) => {
        await effectOf(intent)(tx)
        await tx.query('select 1/0').catch(() => undefined)
        return 'fine'
      }),
    )
    expect(error).toMatchObject({ code: 'TRANSACTION_ABORTED', cause: { code: '22012' } })
    expect(await effects(intent)).toBe(0)
  })
})

describe('COMMIT outside of a transaction', () => {
  it('is answered COMMIT with a mere warning 25P01; here it is an alarm and no success', async () => {
    const bare = new pg.Client(world.url)
    const notices: (string | undefined)[] = []
    bare.on('notice', ({ code }) => notices.push(code))
    await bare.connect()
    expect((await bare.query('commit')).command).toBe('COMMIT')
    expect(notices).toEqual(['25P01'])
    await bare.end()

    const { db, clients } = domain({ max: 1 })
    const error = await caught(
      db.transact(async (tx) => {
        await tx.query('select 1')
        await clients[0]?.query('rollback')
      }),
    )
    expect(error).toMatchObject({ code: 'TRANSACTION_ENDED_ELSEWHERE' })
    expect(transactionHistoryOf(error)).toMatchObject({ because: 'permanent', attempts: [{ ruling: { alarm: true } }] })
  })

  it('what the body does after its transaction was ended elsewhere is refused from the next statement on', async () => {
    const [first, second] = [randomUUID(), randomUUID()]
    const { db, clients } = domain({ max: 1 })
    const error = await caught(
      db.transact(async (tx) => {
        await tx.query('select 1')
        await clients[0]?.query('rollback')
        await effectOf(first)(tx).catch(() => undefined)
        await effectOf(second)(tx)
      }),
    )
    expect(error).toMatchObject({ code: 'TRANSACTION_ENDED_ELSEWHERE' })
    expect(await effects(second)).toBe(0)
  })
})

describe('query time-out of the driver on COMMIT', () => {
  it.each(['with a key', 'without a key'])('%s: the server goes on, and the outcome is resolved', async (kind) => {
    const { db, clients } = domain({ max: 3 }, { deadline: '60s' })
    const intent = randomUUID()
    const key = { scope: tests, key: mintKey() }
    await park(world.raw)
    const seen: string[] = []
    points.at('transaction.resolving', async () => {
      // It stands still on the server, while the driver has given up.
      await committing(world.raw)
      seen.push('parked')
      setTimeout(() => letGo(world.raw).then(() => seen.push('let go')), 20)
    })
    const body = async (tx: PostgresTransaction<pg.PoolClient>): Promise<string> => {
      const made = await parkedEffect(intent)(tx)
      // For COMMIT alone, which is all that this connection still has to do: a statement may take longer.
      for (const client of clients) {
        const { connectionParameters } = client as unknown as { connectionParameters: { query_timeout: number } }
        connectionParameters.query_timeout = 250
      }
      return made
    }
    const result = await db.transact(body, kind === 'with a key' ? { key, content: 'none' } : {})
    expect(seen).toEqual(['parked', 'let go'])
    const ledger = (await world.ledger()).filter((effect) => effect.intent === intent)
    expect(ledger.map((effect) => effect.result)).toEqual([result, result])
  })
})

describe('COMMIT time-out with a parked commit', () => {
  it.each(['with a key', 'without a key'])('%s: resolution waits for it, and finds it committed', async (kind) => {
    const { db } = domain()
    await db.transact((tx) => tx.query('select 1'))
    const intent = randomUUID()
    const key = { scope: tests, key: mintKey() }
    await park(world.raw)
    const seen: number[] = []
    points.at('transaction.resolving', async () => {
      seen.push(...(await committing(world.raw)))
      setTimeout(() => letGo(world.raw), 20)
    })
    // A quarter of it is left to find out.
    const limits = { deadline: '8s' } as const
    const result = await db.transact(
      parkedEffect(intent),
      kind === 'with a key' ? { key, content: 'none', ...limits } : limits,
    )
    expect(seen).toHaveLength(1)
    const ledger = (await world.ledger()).filter((effect) => effect.intent === intent)
    expect(ledger.map((effect) => effect.result)).toEqual([result, result])
  })

  it('parked beyond the deadline: an honest unknown, and the next call with the key settles it', async () => {
    const { db } = domain({}, { deadline: '120s' })
    await db.transact((tx) => tx.query('select 1'))
    const intent = randomUUID()
    const key = { scope: tests, key: mintKey() }
    await park(world.raw)
    const error = await caught(db.transact(parkedEffect(intent), { content: 'none', key, deadline: '3s' }))
    expect(error).toBeInstanceOf(UnknownCommitError)
    expect(error).toMatchObject({ transactions: [{ ruling: { sign: 'commit-timeout' }, resolved: 'unknown' }] })
    expect(await committing(world.raw)).toHaveLength(1)
    expect(await effects(intent)).toBe(0)

    const again = db.transact(parkedEffect(intent), { content: 'none', key })
    const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like 'INSERT INTO%marker%'`
    await until(async () => (await world.raw.query(waiting)).rowCount === 1, 'the next call waits for the key')
    await letGo(world.raw)
    const ledger = async () => (await world.ledger()).filter((effect) => effect.intent === intent)
    const result = await again
    expect((await ledger()).map((effect) => effect.result)).toEqual([result, result])
    expect(await db.resolve((error as UnknownCommitError).resolveToken ?? '')).toEqual({
      outcome: 'committed',
      value: result,
    })
  })
})
