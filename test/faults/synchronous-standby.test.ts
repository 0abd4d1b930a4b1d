// A synchronous standby that goes away: COMMIT has written its record on the primary and waits. Whoever ends the wait
// leaves a commit that a failover loses.

import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hold, leased } from '../../src/idempotency/index.js'
import { mintKey } from '../../src/identity/index.js'
import { postgres } from '../../src/stores/postgres/index.js'
import { postgresProxy } from '../../src/testing/index.js'
import { transactionHistoryOf, UnknownCommitError } from '../../src/transaction/index.js'
import { type Postgres, startPostgres, withClient } from '../servers/postgres.js'
import { until } from '../servers/server-process.js'
import { startStandby } from '../servers/standby.js'
import { identity, type Order } from '../stores/operations/worlds.js'

const settings = { synchronous_commit: 'on', wal_level: 'replica' }

let server: Postgres
let raw: pg.Client
beforeAll(async () => {
  server = await startPostgres({ fsync: false, settings })
  await withClient(server.url, (client) => client.query('create table item (id text primary key)'))
  raw = new pg.Client(server.url)
  await raw.connect()
  await raw.query("set synchronous_commit = 'local'")
})
afterAll(async () => {
  await raw.end()
  await server.dispose()
})

/** Names a standby that COMMIT waits for; none with an empty name. What waits goes on then. */
async function waitFor(name: string): Promise<void> {
  await raw.query(`alter system set synchronous_standby_names = '${name}'`)
  await raw.query('select pg_reload_conf()')
  const shown = async () => (await raw.query('show synchronous_standby_names')).rows[0].synchronous_standby_names
  await until(async () => (await shown()) === name, 'the setting is read')
}

async function waiters(): Promise<number[]> {
  const { rows } = await raw.query("select pid from pg_stat_activity where wait_event = 'SyncRep' order by pid")
  return rows.map(({ pid }) => pid)
}

/** A migrated domain, from before COMMIT begins to wait. */
async function migrated(max: number) {
  await waitFor('')
  const pool = new pg.Pool({ connectionString: server.url, max, application_name: 'pool' })
  const db = postgres({ pool, name: 'standby', deadline: '4s', connectionWait: '1s' })
  await db.migrate()
  return { pool, db }
}

const insert = (id: string) => async (tx: { query(text: string, values: string[]): Promise<unknown> }) => {
  await tx.query('insert into item values ($1)', [id])
  return id
}

describe('a COMMIT without a key that waits for a standby', () => {
  it('is not ended by us: it is unknown, and known when the standby is back', async () => {
    const { pool, db } = await migrated(4)
    await waitFor('nosuch')
    const told = await db.transact(insert('patient')).catch((error: unknown) => error)
    expect(told).toBeInstanceOf(UnknownCommitError)
    // The fault happened, and still does.
    expect(await waiters()).toHaveLength(1)
    const token = (told as UnknownCommitError).resolveToken ?? ''
    expect(await db.resolve(token, '1s')).toEqual({ outcome: 'unknown' })
    expect(await waiters()).toHaveLength(1)
    await waitFor('')
    expect(await db.resolve(token, '120s')).toEqual({ outcome: 'committed' })
    await pool.end()
  })

  it('and is ended by an operator is not called committed before a standby has it', async () => {
    const { pool, db } = await migrated(4)
    await waitFor('nosuch')
    const told = await db.transact(insert('ended')).catch((error: unknown) => error)
    const token = (told as UnknownCommitError).resolveToken ?? ''
    for (const pid of await waiters()) await raw.query('select pg_terminate_backend($1)', [pid])
    await until(async () => (await raw.query("select 1 from item where id = 'ended'")).rowCount === 1, 'it is visible')
    expect(await db.resolve(token, '1s')).toEqual({ outcome: 'unknown' })
    await waitFor('')
    expect(await db.resolve(token, '120s')).toEqual({ outcome: 'committed' })
    await pool.end()
  })

  it('is not told as a success that the promoted standby lacks', async () => {
    const primary = await startPostgres({ fsync: false, settings })
    const pool = new pg.Pool({ connectionString: primary.url })
    const db = postgres({ pool, name: 'promoted', deadline: '60s', connectionWait: '20s', bodyLimit: '30s' })
    await db.migrate()
    await withClient(primary.url, (client) => client.query('create table item (id text primary key)'))
    const standby = await startStandby(primary)
    try {
      await withClient(primary.url, async (client) => {
        await client.query("alter system set synchronous_standby_names = 'standby'")
        await client.query('select pg_reload_conf()')
        const read = "select 1 from pg_stat_replication where application_name = 'standby' and sync_state = 'sync'"
        await until(async () => (await client.query(read)).rowCount === 1, 'COMMIT waits for the standby')
      })
      expect(await db.transact(insert('before'))).toBe('before')
      await standby.detach()
      const told = await db.transact(insert('lost'), { deadline: '4s' }).catch((error: unknown) => error)
      expect(told).toBeInstanceOf(UnknownCommitError)
      await primary.kill9()
      await standby.promote()
      const rows = await withClient(
        standby.server.url,
        async (client) => (await client.query('select id from item')).rows,
      )
      expect(rows).toEqual([{ id: 'before' }])
    } finally {
      await pool.end()
      await standby.dispose()
      await primary.dispose()
    }
  })
})

describe('COMMITs that nobody waits for any more', () => {
  it('leaves no more backends behind than the pool has places, and says so fast', async () => {
    const max = 4
    const { pool, db } = await migrated(max)
    await waitFor('nosuch')
    const codes: unknown[] = []
    let most = 0
    let ended = false
    const counting = (async () => {
      while (!ended) {
        most = Math.max(most, (await waiters()).length)
      }
    })()
    const call = async (id: string): Promise<void> => {
      const error = await db.transact(insert(id)).catch((thrown: { code?: unknown }) => thrown)
      if (typeof error === 'string') return
      codes.push(error.code)
      // At once: it is not tried again until the deadline.
      if (error.code === 'COMMITS_UNANSWERED') expect(transactionHistoryOf(error)?.attempts).toHaveLength(1)
    }
    for (let round = 0; round < 4; round += 1) {
      await Promise.all(Array.from({ length: 2 * max }, (_, n) => call(`${round}/${n}`)))
    }
    ended = true
    await counting
    expect(most).toBeGreaterThan(1)
    expect(most).toBeLessThanOrEqual(max)
    // Beside them there is one at most, that looks whether they are gone.
    const ofPool = async () => (await server.backends()).filter(({ applicationName }) => applicationName === 'pool')
    expect((await ofPool()).length).toBeLessThanOrEqual(max + 1)
    expect(codes).toContain('COMMITS_UNANSWERED')
    // They count no longer than they are there.
    await waitFor('')
    await until(async () => (await waiters()).length === 0, 'all commits are through')
    const patient = { deadline: '120s', connectionWait: '60s', bodyLimit: '60s' } as const
    const after = await Promise.all(
      Array.from({ length: 2 * max }, (_, n) => db.transact(insert(`after ${n}`), patient)),
    )
    expect(after).toHaveLength(2 * max)
    await pool.end()
  })
})

describe('a leased claim whose wait is cancelled by an administrator', () => {
  it('has its effect only when the standby has the claim', async () => {
    const { pool, db } = await migrated(6)
    let runs = 0
    const charge = leased<Order, number>('charge', {
      ...identity,
      store: db,
      lease: '60s',
      recover: hold(),
      run: async () => {
        runs += 1
        return runs
      },
    })
    await waitFor('nosuch')
    const charging = charge({ key: mintKey(), amount: 5 }, { deadline: '120s' })
    const cancelled = new Set<number>()
    // The claim, and then whatever waits in its place.
    for (let round = 1; round <= 3; round += 1) {
      await until(async () => (await waiters()).some((pid) => round > 1 || !cancelled.has(pid)), 'something waits')
      for (const pid of await waiters()) {
        cancelled.add(pid)
        await raw.query('select pg_cancel_backend($1)', [pid])
      }
    }
    const claims = "select state from reprise_marker where operation = 'charge'"
    await until(async () => (await raw.query(claims)).rowCount === 1, 'the primary has the claim')
    await until(async () => (await waiters()).length > 0, 'somebody waits for the standby')
    expect(runs).toBe(0)
    await waitFor('')
    expect(await charging).toBe(1)
    await pool.end()
  })
})

describe('a pool that reaches two primaries', () => {
  it('does not write to an old primary that came back', async () => {
    const primary = await startPostgres({ fsync: false, settings })
    let port = primary.port
    const upstream = {
      host: primary.host,
      get port() {
        return port
      },
    }
    const proxy = await postgresProxy({ upstream })
    const pool = new pg.Pool({ host: proxy.host, port: proxy.port, user: 'postgres', database: 'postgres', max: 3 })
    const db = postgres({ pool, name: 'two', deadline: '60s', connectionWait: '20s', bodyLimit: '30s' })
    await db.migrate()
    await withClient(primary.url, (client) => client.query('create table item (id text primary key)'))
    const standby = await startStandby(primary)
    const count = async (at: Postgres): Promise<number> =>
      withClient(at.url, async (client) => Number((await client.query('select count(*) from item')).rows[0].count))
    try {
      // A connection to the primary that stays in the pool.
      await db.transact(insert('first'))
      expect(pool.idleCount).toBe(1)
      await standby.caughtUp()
      await standby.detach()
      await standby.promote()
      // Two at a time, so that one of them needs a new connection, which finds the new primary.
      port = standby.server.port
      await Promise.all([db.transact(insert('a')), db.transact(insert('b'))])
      const old = await count(primary)
      const fresh = await count(standby.server)
      expect(fresh).toBeGreaterThan(1)
      // From here on the old one is reached by nothing: not by its connection, nor by new ones.
      for (let n = 0; n < 6; n += 1) await Promise.all([db.transact(insert(`c${n}`)), db.transact(insert(`d${n}`))])
      expect([await count(primary), await count(standby.server)]).toEqual([old, fresh + 12])
      port = primary.port
      for (const client of await standby.server.backends()) {
        await withClient(standby.server.url, (raw) => raw.query('select pg_terminate_backend($1)', [client.pid]))
      }
      // Whenever the deadline comes, it says what was wrong: an attempt that it cuts is not the first.
      await expect(db.transact(insert('late'), { deadline: '5s' })).rejects.toMatchObject({ code: 'TIMELINE_PASSED' })
      const charge = leased<Order, number>('charge', {
        ...identity,
        store: db,
        lease: '60s',
        recover: hold(),
        run: async () => 1,
      })
      // It says so at once; the time is for a new connection on a busy machine.
      await expect(charge({ key: mintKey(), amount: 5 }, { deadline: '60s' })).rejects.toMatchObject({
        code: 'TIMELINE_PASSED',
      })
      expect(await count(primary)).toBe(old)
      port = standby.server.port
      expect(await db.transact(insert('found again'))).toBe('found again')
    } finally {
      await pool.end()
      await proxy.close()
      await standby.dispose()
      await primary.dispose()
    }
  })
})
