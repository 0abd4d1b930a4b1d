// Why a server refuses: a client reads only that the store is not available, and whoever runs the server reads the
// reason, once a minute for each kind, as a warning of the process or in a log of their own.

import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'libsql'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { atomicRoute, leasedRoute, type RefusalCause, type Route, reply } from '../../../src/http/core/index.js'
import { hold } from '../../../src/idempotency/index.js'
import { eventLoopTurn } from '../../../src/kernel/index.js'
import { type PostgresDomain, postgres } from '../../../src/stores/postgres/index.js'
import { type SqliteHandle, sqlite } from '../../../src/stores/sqlite/index.js'
import { manualClock } from '../../../src/testing/index.js'
import { type Native, send, usual } from '../../http/route-world.js'
import { type Postgres, startPostgres, withClient } from '../../servers/postgres.js'
import { freshFile } from '../sqlite/files.js'

let server: Postgres
beforeAll(async () => {
  server = await startPostgres({ fsync: false })
  // The first line that fits a connection counts.
  const rules = join(server.dataFolder, 'pg_hba.conf')
  const before = readFileSync(rules, 'utf8')
  writeFileSync(rules, 'host all shop all scram-sha-256\n')
  appendFileSync(rules, before)
  await withClient(server.url, async (client) => {
    await client.query("create role shop login password 'right'")
    await client.query('grant create on schema public to shop')
    await client.query('select pg_reload_conf()')
  })
  return () => server.dispose()
})

const pools: pg.Pool[] = []
afterAll(() => Promise.all(pools.map((pool) => pool.end())))

function shopWith(password: string, deadline: '2s' | '60s'): PostgresDomain<pg.PoolClient> {
  const { host, port } = server
  const pool = new pg.Pool({ host, port, user: 'shop', password, database: 'postgres', max: 2 })
  pool.on('error', () => undefined)
  pools.push(pool)
  return postgres({ pool, name: 'shop', deadline, connectionWait: '20s' })
}

const handler = () => reply(201)

async function toldTwice(route: Route<Native>): Promise<void> {
  for (const _ of ['first', 'again']) {
    expect(await send(route)).toMatchObject({ status: 503, problem: 'store-unavailable' })
  }
}

it('a wrong password is told, and not to the client', async () => {
  const causes: RefusalCause[] = []
  const db = shopWith('wrong', '60s')
  const log = (cause: RefusalCause): void => void causes.push(cause)
  await toldTwice(atomicRoute(db, { ...usual, log }, handler))
  expect(causes).toHaveLength(1)
  expect(causes[0]).toMatchObject({ route: 'charges', domain: 'shop', problem: 'store-unavailable', status: 503 })
  expect(causes[0]?.message).toMatch(/28P01.*password authentication failed for user "shop"/)
  expect(causes[0]?.message).not.toContain('wrong')
})

it('a stopped server is told by both modes, and a process that has no log gets a warning', async () => {
  const causes: RefusalCause[] = []
  const log = (cause: RefusalCause): void => void causes.push(cause)
  const warnings: (Error & { readonly code?: string })[] = []
  const hear = (warning: Error): void => void warnings.push(warning)
  process.on('warning', hear)
  try {
    await shopWith('right', '60s').migrate()
    const db = shopWith('right', '2s')
    await db.transact((tx) => tx.query('select 1'), { deadline: '60s' })
    const [atomic, leased, silent] = [
      atomicRoute(db, { ...usual, name: 'atomic', log }, handler),
      leasedRoute(db, { ...usual, name: 'leased', log: (cause) => log(cause), recover: hold() }, handler),
      atomicRoute(db, { ...usual, name: 'silent' }, handler),
    ]
    expect((await send(atomic)).status).toBe(201)
    await server.stop('fast')
    for (const route of [atomic, leased, silent]) {
      const { status, problem } = await send(route)
      expect([status, problem]).toEqual([503, expect.stringMatching(/store-unavailable|deadline-exceeded/)])
    }
    await eventLoopTurn()
    for (const route of ['atomic', 'leased']) {
      const [told] = causes.filter((cause) => cause.route === route)
      expect(told?.message).toMatch(/ECONNREFUSED|57P0|onnection terminated/)
    }
    const ours = warnings.filter(({ name }) => name === 'RepriseWarning')
    expect(ours.length).toBeGreaterThan(0)
    expect(ours[0]?.message).toMatch(/The route silent in the domain shop refuses with 503/)
    expect(ours[0]?.code).toMatch(/^REPRISE_(STORE_UNAVAILABLE|DEADLINE_EXCEEDED)$/)
  } finally {
    process.off('warning', hear)
    await server.restart()
  }
})

it('a file that is no database is told', async () => {
  const file = freshFile()
  writeFileSync(file, 'this is not a database, and long enough to be taken for one'.repeat(100))
  const causes: RefusalCause[] = []
  const db = sqlite({ name: 'shop', open: () => new Database(file) as unknown as SqliteHandle, deadline: '60s' })
  const route = atomicRoute(db, { ...usual, log: (cause) => void causes.push(cause) }, handler)
  const { status } = await send(route)
  expect(status).toBe(503)
  expect(causes[0]?.message).toMatch(/not a database/)
  await db.close()
})

it('tells the same again after a minute, and a log that throws changes no answer', async () => {
  const clock = manualClock({ wallMs: 1_750_000_000_000 })
  const { host, port } = server
  const pool = new pg.Pool({ host, port, user: 'shop', password: 'wrong', database: 'postgres', max: 2 })
  pools.push(pool)
  const db = postgres({ pool, name: 'slow', clock })
  let told = 0
  const log = (): never => {
    told += 1
    throw new Error('no log today')
  }
  const route = atomicRoute(db, { ...usual, log }, handler)
  await toldTwice(route)
  expect(told).toBe(1)
  await clock.advance(61_000)
  await toldTwice(route)
  expect(told).toBe(2)
})
