import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { findPgbouncer } from '../../tools/servers.mjs'
import { freshDatabase } from '../servers/fresh-database.js'
import { demandServer } from '../servers/missing.js'
import { startPgbouncer } from '../servers/pgbouncer.js'
import { type Postgres, startPostgres, withClient } from '../servers/postgres.js'
import { until } from '../servers/server-process.js'
import { startStandby } from '../servers/standby.js'

const execute = promisify(execFile)

describe('a PostgreSQL of our own', () => {
  let server: Postgres
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.dispose())
  const one = <Row extends object>(text: string): Promise<Row> =>
    withClient(server.url, async (client) => (await client.query(text)).rows[0])

  it('listens on the loopback interface, with fsync on and under the pid we started', async () => {
    const row = await one<{ data: string; fsync: string; address: string }>(
      `select current_setting('data_directory') as data, current_setting('fsync') as fsync, host(inet_server_addr()) as address`,
    )
    expect(row).toEqual({ data: server.dataFolder, fsync: 'on', address: '127.0.0.1' })
    expect(server.log()).toContain('ready to accept connections')
  })

  it.each(['fast', 'immediate'] as const)(
    'keeps what was committed over a stop (%s) and a start on the same port',
    async (mode) => {
      await one(`create table kept_${mode} (n int)`)
      await one(`insert into kept_${mode} values (1)`)
      const { pid, port } = server
      await server.stop(mode)
      await expect(one('select 1')).rejects.toThrow()
      await server.restart()
      expect(server.pid).not.toBe(pid)
      expect(server.port).toBe(port)
      expect(await one(`select n from kept_${mode}`)).toEqual({ n: 1 })
    },
  )

  it('comes back after kill -9 of the postmaster', async () => {
    await one('create table survived (n int)')
    await one('insert into survived values (1)')
    await server.kill9()
    await server.restart()
    expect(await one('select n from survived')).toEqual({ n: 1 })
    expect(server.log()).toContain('was not properly shut down')
  })

  it('shows its backends and ends one of them, but no stranger', async () => {
    await withClient(server.url, async (client) => {
      const { pid } = (await client.query('select pg_backend_pid() as pid')).rows[0]
      expect((await server.backends()).map((backend) => backend.pid)).toContain(pid)
      let ended = false
      client.on('error', () => {
        ended = true
      })
      server.signalBackend(pid, 'SIGTERM')
      await until(() => ended, 'the client hears of it')
    })
    expect(() => server.signalBackend(process.pid, 'SIGTERM')).toThrow('no backend')
  })
})

it('a setting that the server refuses ends the start, and the error shows the log', async () => {
  demandServer('PostgreSQL')
  await expect(startPostgres({ settings: { max_connections: 'many' } })).rejects.toThrow(/max_connections/)
})

it('the shared server gives each file a database of its own', async () => {
  const database = await freshDatabase()
  const { name } = await withClient(
    database.url,
    async (c) => (await c.query('select current_database() as name')).rows[0],
  )
  expect(name).toBe(database.name)
  await database.drop()
  const left = await withClient(inject('postgresUrl'), (c) =>
    c.query('select 1 from pg_database where datname = $1', [name]),
  )
  expect(left.rowCount).toBe(0)
})

describe('a standby', () => {
  it('follows, lets go, and becomes a primary of another timeline without what it did not get', async () => {
    const primary = await startPostgres()
    const standby = await startStandby(primary)
    try {
      await withClient(primary.url, (c) => c.query('create table t (n int); insert into t values (1)'))
      await standby.caughtUp()
      const rows = (url: string): Promise<number[]> =>
        withClient(url, async (c) => (await c.query('select n from t order by n')).rows.map((row) => row.n))
      expect(await rows(standby.server.url)).toEqual([1])
      await standby.detach()
      await withClient(primary.url, (c) => c.query('insert into t values (2)'))
      await standby.promote()
      await withClient(standby.server.url, (c) => c.query('insert into t values (3)'))
      expect(await rows(standby.server.url)).toEqual([1, 3])
      const timeline = `select substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as id`
      const of = (url: string) => withClient(url, async (c) => (await c.query(timeline)).rows[0].id)
      expect([await of(primary.url), await of(standby.server.url)]).toEqual(['00000001', '00000002'])
    } finally {
      await standby.dispose()
      await primary.dispose()
    }
  })
})

describe('PgBouncer', () => {
  it.each(['transaction', 'statement'] as const)('pools by %s', async (mode) => {
    const shared = new URL(inject('postgresUrl'))
    const database = await freshDatabase()
    const pooler = await startPgbouncer({ mode, upstream: { host: shared.hostname, port: Number(shared.port) } })
    try {
      await withClient(pooler.url(database.name), async (client) => {
        expect((await client.query('select current_database() as name')).rows[0].name).toBe(database.name)
        const begun = client.query('begin')
        if (mode === 'statement') await expect(begun).rejects.toThrow()
        else await expect(begun).resolves.toMatchObject({ command: 'BEGIN' })
      })
    } finally {
      await pooler.dispose()
    }
  })

  it('keeps the prepared statements of its clients apart from version 1.21 on, and not before', async () => {
    demandServer('PostgreSQL')
    demandServer('PgBouncer')
    const shared = new URL(inject('postgresUrl'))
    const { stdout } = await execute(findPgbouncer() ?? '', ['--version'])
    const [major = 0, minor = 0] = /PgBouncer (\d+)\.(\d+)/.exec(stdout)?.slice(1).map(Number) ?? []
    const knows = major > 1 || minor >= 21
    const upstream = { host: shared.hostname, port: Number(shared.port) }
    const settings = knows ? { max_prepared_statements: '100' } : {}
    const pooler = await startPgbouncer({ mode: 'transaction', upstream, poolSize: 1, settings })
    try {
      // Two clients on the one backend, with different statements of the same name.
      const answers = ['one', 'two'].map((text) =>
        withClient(pooler.url('postgres'), async (client) => {
          const { rows } = await client.query({ name: 'same', text: `select '${text}' as text` })
          return rows[0].text
        }),
      )
      const [first, second] = await Promise.allSettled(answers)
      const values = [first, second].flatMap((end) => (end?.status === 'fulfilled' ? [end.value] : []))
      expect(values).toHaveLength(knows ? 2 : 1)
      if (knows) expect(values).toEqual(['one', 'two'])
    } finally {
      await pooler.dispose()
    }
  })
})
