// A failover during an ambiguous commit: the standby has not received the transaction, and another transaction gets its
// number.

import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mintKey } from '../../src/identity/index.js'
import { postgres } from '../../src/stores/postgres/index.js'
import { commits, type FaultPoints, faultPoints, type PostgresProxy, postgresProxy } from '../../src/testing/index.js'
import { type OptimisticOptions, UnknownCommitError } from '../../src/transaction/index.js'
import { type Postgres, startPostgres, withClient } from '../servers/postgres.js'
import { type Standby, startStandby } from '../servers/standby.js'
import { effectOf, tests } from './lanes.js'

let points: FaultPoints
beforeAll(() => {
  points = faultPoints()
})
afterAll(() => points.disarm())

/** A primary with a standby, and a proxy that follows the failover. */
interface Pair {
  readonly primary: Postgres
  readonly standby: Standby
  readonly proxy: PostgresProxy
  readonly pool: pg.Pool
  failOver(): void
  dispose(): Promise<void>
}

async function pair(): Promise<Pair> {
  const primary = await startPostgres({ fsync: false })
  await withClient(primary.url, (client) =>
    client.query('create table ledger (intent text not null, part text not null, result text not null)'),
  )
  const standby = await startStandby(primary)
  let current: Postgres = primary
  const upstream = {
    host: primary.host,
    get port() {
      return current.port
    },
  }
  const proxy = await postgresProxy({ upstream })
  const pool = new pg.Pool({ host: proxy.host, port: proxy.port, user: 'postgres', database: 'postgres' })
  return {
    primary,
    standby,
    proxy,
    pool,
    failOver() {
      current = standby.server
    },
    async dispose() {
      await proxy.close()
      await pool.end()
      await standby.dispose()
      await primary.dispose()
    },
  }
}

const effects = (server: Postgres, intent: string): Promise<{ result: string }[]> =>
  withClient(
    server.url,
    async (client) => (await client.query('select result from ledger where intent = $1', [intent])).rows,
  )

const systemOf = (server: Postgres): Promise<string> =>
  withClient(server.url, async (client) => {
    const { rows } = await client.query<{ id: string }>('select system_identifier::text as id from pg_control_system()')
    return rows[0]?.id ?? ''
  })

/**
 * COMMIT reaches only the primary, and its answer is lost. Before anybody asks, the standby is promoted and continues
 * the numbers.
 */
async function transactThroughFailover(options: OptimisticOptions) {
  const world = await pair()
  const { primary, standby, proxy, pool } = world
  const db = postgres({ pool, name: 'failover', deadline: '120s', connectionWait: '20s', bodyLimit: '30s' })
  await db.migrate()
  await standby.caughtUp()
  await standby.detach()
  const system = await systemOf(primary)
  const intent = randomUUID()
  const armed = proxy.arm({ statement: commits, at: 'before-answer', action: 'fin' })
  let onPrimary: readonly { result: string }[] = []
  const used: string[] = []
  points.at('transaction.resolving', async () => {
    onPrimary = await effects(primary, intent)
    await primary.kill9()
    await standby.promote()
    await withClient(standby.server.url, async (client) => {
      const text = 'select pg_current_xact_id()::text as xid'
      for (let n = 0; n < 20; n += 1) used.push((await client.query<{ xid: string }>(text)).rows[0]?.xid ?? '')
    })
    world.failOver()
  })
  const told = await db.transact(effectOf(intent), options).catch((error: unknown) => error)
  // The fault happened, and the commit too, on a server that is gone.
  expect(armed.fired).toHaveLength(1)
  expect(onPrimary).toHaveLength(2)
  expect(await systemOf(standby.server)).toBe(system)
  return { world, db, intent, told, used }
}

describe('failover with a transaction number that is used again', () => {
  it('without a key: the new primary says committed of somebody else, and the outcome is unknown', async () => {
    const { world, db, intent, told, used } = await transactThroughFailover({})
    try {
      expect(told).toBeInstanceOf(UnknownCommitError)
      const token = (told as UnknownCommitError).resolveToken ?? ''
      const { trace } = JSON.parse(Buffer.from(token.slice('rt1.'.length), 'base64url').toString())
      expect(used).toContain(trace.xid)
      const status = await withClient(world.standby.server.url, (client) =>
        client.query('select pg_xact_status($1::xid8) as status', [trace.xid]),
      )
      expect(status.rows).toEqual([{ status: 'committed' }])
      expect(await effects(world.standby.server, intent)).toEqual([])
      expect(await db.resolve(token, '1s')).toEqual({ outcome: 'unknown' })
    } finally {
      await world.dispose()
    }
  })

  it('with a key: the new primary has no marker, so the effect happens there, once', async () => {
    const key = { scope: tests, key: mintKey() }
    const { world, db, intent, told } = await transactThroughFailover({ content: 'none', key })
    try {
      expect(await effects(world.standby.server, intent)).toEqual([{ result: told }, { result: told }])
      expect(await db.transact(effectOf(intent), { content: 'none', key })).toBe(told)
      expect(await effects(world.standby.server, intent)).toHaveLength(2)
    } finally {
      await world.dispose()
    }
  })
})
