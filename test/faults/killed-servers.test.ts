// COMMIT in which a backend, its neighbour or the whole server is killed, before and after its record was written.
//
// A replica that does not exist parks COMMIT after its record; a deferred trigger parks it before.

import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mintKey } from '../../src/identity/index.js'
import { type PostgresDomain, type PostgresTransaction, postgres } from '../../src/stores/postgres/index.js'
import { type FaultPoints, faultPoints } from '../../src/testing/index.js'
import { UnknownCommitError } from '../../src/transaction/index.js'
import { type Postgres, startPostgres, withClient } from '../servers/postgres.js'
import { until } from '../servers/server-process.js'
import { effectOf, tests } from './lanes.js'
import { committing, park, parkedEffect, preparePark } from './parked.js'

let server: Postgres
let points: FaultPoints
const notices: string[] = []
const pools: pg.Pool[] = []
/** COMMIT waits for a replica. */
let replicated: PostgresDomain<pg.PoolClient>
/** COMMIT does not. */
let local: PostgresDomain<pg.PoolClient>

function domain(synchronousCommit: 'on' | 'local'): PostgresDomain<pg.PoolClient> {
  const pool = new pg.Pool({ connectionString: server.url, options: `-c synchronous_commit=${synchronousCommit}` })
  pools.push(pool)
  pool.on('connect', (client) => {
    client.on('notice', ({ code }) => notices.push(code ?? ''))
  })
  return postgres({ pool, name: synchronousCommit, deadline: '60s', bodyLimit: '20s', connectionWait: '10s' })
}

beforeAll(async () => {
  server = await startPostgres({
    fsync: false,
    settings: {
      synchronous_standby_names: 'nosuch',
      synchronous_commit: 'local',
      restart_after_crash: 'on',
      // Nobody but COMMIT writes the log to disk, so that a crash before it leaves nothing of a transaction.
      wal_writer_delay: '10s',
      autovacuum: 'off',
    },
  })
  replicated = domain('on')
  local = domain('local')
  await local.migrate()
  await withClient(server.url, async (client) => {
    await client.query('create table ledger (intent text not null, part text not null, result text not null)')
    await preparePark(client)
  })
  points = faultPoints()
})
afterAll(async () => {
  points.disarm()
  await Promise.all(pools.map((pool) => pool.end()))
  await server.dispose()
})

/** The results that the ledger holds for an intent, one for each part. */
const resultsOf = (intent: string): Promise<string[]> =>
  withClient(server.url, async (client) => {
    const { rows } = await client.query<{ result: string }>('select result from ledger where intent = $1', [intent])
    return rows.map(({ result }) => result)
  })

/** The backend whose COMMIT has written its record and waits for a replica. */
async function waitingForReplica(): Promise<number> {
  const text = `select pid from pg_stat_activity where wait_event = 'SyncRep' and query like '%COMMIT'`
  let pid = 0
  await withClient(server.url, (client) =>
    until(async () => {
      pid = (await client.query<{ pid: number }>(text)).rows[0]?.pid ?? 0
      return pid > 0
    }, 'COMMIT waits for a replica'),
  )
  return pid
}

const keyings = ['with a key', 'without a key'] as const

/** A transaction whose COMMIT stands still where it is told to, and what is done to it then. */
async function during(
  place: 'before its record' | 'after its record',
  keying: (typeof keyings)[number],
  strike: (pid: number) => unknown,
  limits: { readonly deadline?: '8s' } = {},
): Promise<{ readonly intent: string; readonly result: string; readonly runs: number; readonly resolutions: number }> {
  const intent = randomUUID()
  const before = points.count('transaction.resolving')
  let runs = 0
  const effect = place === 'before its record' ? parkedEffect(intent) : effectOf(intent)
  const body = (tx: PostgresTransaction<pg.PoolClient>): Promise<string> => {
    runs += 1
    return effect(tx)
  }
  const options =
    keying === 'with a key' ? ({ key: { scope: tests, key: mintKey() }, content: 'none', ...limits } as const) : limits
  const holder = new pg.Client(server.url)
  holder.on('error', () => undefined)
  await holder.connect()
  if (place === 'before its record') await park(holder)
  const calling = (place === 'before its record' ? local : replicated).transact(body, options)
  const [pid = 0] = place === 'before its record' ? await committing(holder) : [await waitingForReplica()]
  notices.length = 0
  // Heard of early, since it may fail while the strike goes on.
  const told = calling.finally(() => holder.end().catch(() => undefined))
  told.catch(() => undefined)
  await strike(pid)
  const result = await told
  return { intent, result, runs, resolutions: points.count('transaction.resolving') - before }
}

const query = (text: string, values: unknown[]): Promise<unknown> =>
  withClient(server.url, (client) => client.query(text, values))

describe('COMMIT that waits for a replica', () => {
  it('cancelled: a success that only this server has, with a warning', async () => {
    const { intent, result, runs, resolutions } = await during('after its record', 'with a key', (pid) =>
      query('select pg_cancel_backend($1)', [pid]),
    )
    expect([runs, resolutions]).toEqual([1, 0])
    expect(notices).toContain('01000')
    expect(await resultsOf(intent)).toEqual([result, result])
  })

  const terminate = (pid: number): unknown => query('select pg_terminate_backend($1)', [pid])

  it('terminated, with a key: 57P01 as a warning, resolved as committed', async () => {
    const { intent, result, runs, resolutions } = await during('after its record', 'with a key', terminate)
    expect([runs, resolutions]).toEqual([1, 1])
    expect(notices).toContain('57P01')
    expect(await resultsOf(intent)).toEqual([result, result])
  })

  it('terminated, without a key: 57P01 as a warning, and unknown, since no standby has it', async () => {
    // The server is asked until the deadline.
    const told = during('after its record', 'without a key', terminate, { deadline: '8s' })
    await expect(told).rejects.toBeInstanceOf(UnknownCommitError)
    expect(notices).toContain('57P01')
  })
})

describe('57P02, which says that the transaction was rolled back', () => {
  const killSibling = async (): Promise<void> => {
    const sibling = new pg.Client(server.url)
    sibling.on('error', () => undefined)
    await sibling.connect()
    const { rows } = await sibling.query<{ pid: number }>('select pg_backend_pid() as pid')
    server.signalBackend(rows[0]?.pid ?? 0, 'SIGKILL')
  }

  it('a sibling killed -9 after the record, with a key: committed', async () => {
    const { intent, result, runs, resolutions } = await during('after its record', 'with a key', killSibling)
    expect([runs, resolutions]).toEqual([1, 1])
    expect(notices).toContain('57P02')
    expect(await resultsOf(intent)).toEqual([result, result])
  })

  it('a sibling killed -9 after the record, without a key: an honest unknown', async () => {
    await expect(during('after its record', 'without a key', killSibling)).rejects.toBeInstanceOf(UnknownCommitError)
    expect(notices).toContain('57P02')
  })
})

const killed = {
  'our own backend': (pid: number) => server.signalBackend(pid, 'SIGKILL'),
  'the server': async () => {
    const { pid } = server
    await server.kill9()
    await server.restart()
    expect(server.pid).not.toBe(pid)
  },
}

describe.each(Object.entries(killed))('%s killed -9 during COMMIT', (_, kill) => {
  it('before the record: aborted, and the body runs again', async () => {
    const { intent, result, runs, resolutions } = await during('before its record', 'with a key', kill)
    expect([runs, resolutions]).toEqual([2, 1])
    expect(await resultsOf(intent)).toEqual([result, result])
  })

  it('after the record: committed', async () => {
    const { intent, result, runs, resolutions } = await during('after its record', 'with a key', kill)
    expect([runs, resolutions]).toEqual([1, 1])
    expect(await resultsOf(intent)).toEqual([result, result])
  })

  it('after the record, without a key: an honest unknown', async () => {
    await expect(during('after its record', 'without a key', kill)).rejects.toBeInstanceOf(UnknownCommitError)
  })
})

describe('a transaction number that is used again after a crash', () => {
  it('says committed of somebody else, on the same timeline: without a key the outcome is unknown', async () => {
    const used: string[] = []
    // Sometimes something else flushes the log or takes the number first. That is not the case under test, so it is
    // tried again.
    for (let round = 1; ; round += 1) {
      await accepting()
      used.length = 0
      points.at('transaction.resolving', async () => {
        await withClient(await accepting(), async (client) => {
          const text = 'select pg_current_xact_id()::text as xid'
          for (let n = 0; n < 20 * round; n += 1)
            used.push((await client.query<{ xid: string }>(text)).rows[0]?.xid ?? '')
        })
      })
      let xid = ''
      const told = during('before its record', 'without a key', async (pid) => {
        const text = 'select backend_xid::text as xid from pg_stat_activity where pid = $1'
        const { rows } = await withClient(server.url, (client) => client.query<{ xid: string }>(text, [pid]))
        xid = rows[0]?.xid ?? ''
        server.signalBackend(pid, 'SIGKILL')
      })
      const outcome = await told.then(
        () => 'repeated',
        (error: unknown) => error,
      )
      if (!used.includes(xid) && round < 8) continue
      // The lie: the number of the lost transaction is that of a committed one.
      expect(used).toContain(xid)
      expect(outcome).toMatchObject({ transactions: [{ phase: 'committing', resolved: 'unknown' }] })
      const { rows } = await withClient(server.url, (client) => client.query(`select pg_xact_status('${xid}')`))
      expect(rows).toEqual([{ pg_xact_status: 'committed' }])
      return
    }
  })
})

/** The address of the server, once it takes connections again. */
async function accepting(): Promise<string> {
  await until(
    () =>
      withClient(server.url, (client) => client.query('select 1')).then(
        () => true,
        () => false,
      ),
    'the server takes connections',
  )
  return server.url
}
