import { rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  commits,
  type FaultActionName,
  type FaultMoment,
  type PostgresProxy,
  type ProxyFault,
  postgresProxy,
} from '../../src/testing/index.js'
import { selfSigned } from '../retry/certificate.js'
import { createDatabase, type FreshDatabase } from '../servers/fresh-database.js'
import { ownedByServer, type Postgres, serverFolder, startPostgres } from '../servers/postgres.js'
import { freePort, until } from '../servers/server-process.js'

let server: Postgres
let database: FreshDatabase
let direct: pg.Client
let proxy: PostgresProxy
let clients: pg.Client[] = []

beforeAll(async () => {
  server = await startPostgres({ fsync: false })
  database = await createDatabase(server.url)
  direct = new pg.Client(database.url)
  await direct.connect()
  await direct.query('create table effect (id int primary key)')
})
afterAll(async () => {
  await direct.end()
  await server.dispose()
})
beforeEach(async () => {
  proxy = await postgresProxy({ upstream: server })
  await direct.query('truncate effect')
})
afterEach(async () => {
  for (const client of clients) client.end().catch(() => undefined)
  clients = []
  await proxy.close()
  expect(proxy.connections).toEqual([])
})

async function through(options: pg.ClientConfig = {}): Promise<pg.Client> {
  const client = new pg.Client({
    host: proxy.host,
    port: proxy.port,
    user: 'postgres',
    database: database.name,
    ...options,
  })
  client.on('error', () => undefined)
  await client.connect()
  clients.push(client)
  return client
}

const rows = async (): Promise<number> => (await direct.query('select count(*)::int as n from effect')).rows[0].n

/** Sessions of this database with an open transaction, apart from the one that asks. */
const openTransactions = async (): Promise<number> => {
  const text = `select count(*)::int as n from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null`
  return (await direct.query(text)).rows[0].n
}
const sessions = async (): Promise<number> => {
  const text = `select count(*)::int as n from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`
  return (await direct.query(text)).rows[0].n
}

/**
 * Runs BEGIN, INSERT, COMMIT and returns what the client saw of the COMMIT. If that should be nothing, it waits for a
 * while.
 */
async function insertAndCommit(client: pg.Client, expected?: string): Promise<string> {
  await client.query('begin')
  await client.query('insert into effect values (1)')
  const seen = client.query('commit').then(
    (result) => result.command,
    (error) => error.code ?? error.message,
  )
  return heard(seen, expected)
}

/** What was heard of, or `nothing`: soon where that is expected, else only when nobody can be that busy. */
const heard = (seen: Promise<string>, expected: string | undefined): Promise<string> =>
  Promise.race([seen, wait(expected === 'nothing' ? 300 : 20_000, 'nothing', { ref: false })])

const outcome = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'fine',
    (error) => error.code ?? error.message,
  )

const lost = 'Connection terminated unexpectedly'

interface Expected {
  /** What pg says. */
  readonly client: string
  /** Rows in the end. */
  readonly rows: 0 | 1
  /** Whether the transaction is still open on the server when the client has heard. */
  readonly open?: boolean
}

// Every moment × every action: a missing cell is a type error.
const cells: Record<FaultMoment, Record<Exclude<FaultActionName, 'late'>, Expected>> = {
  'before-forward': {
    fin: { client: lost, rows: 0 },
    rst: { client: 'ECONNRESET', rows: 0 },
    'black-hole': { client: 'nothing', rows: 0, open: true },
    'half-open': { client: lost, rows: 0, open: true },
    delay: { client: 'COMMIT', rows: 1 },
  },
  'after-forward': {
    fin: { client: lost, rows: 1 },
    rst: { client: 'ECONNRESET', rows: 1 },
    'black-hole': { client: 'nothing', rows: 1 },
    'half-open': { client: lost, rows: 1 },
    delay: { client: 'COMMIT', rows: 1 },
  },
  'before-answer': {
    fin: { client: lost, rows: 1 },
    rst: { client: 'ECONNRESET', rows: 1 },
    'black-hole': { client: 'nothing', rows: 1 },
    'half-open': { client: lost, rows: 1 },
    delay: { client: 'COMMIT', rows: 1 },
  },
  'between-answers': {
    fin: { client: lost, rows: 1 },
    rst: { client: 'ECONNRESET', rows: 1 },
    'black-hole': { client: 'nothing', rows: 1 },
    'half-open': { client: lost, rows: 1 },
    delay: { client: 'COMMIT', rows: 1 },
  },
  'after-answers': {
    fin: { client: 'COMMIT', rows: 1 },
    rst: { client: 'COMMIT', rows: 1 },
    'black-hole': { client: 'COMMIT', rows: 1 },
    'half-open': { client: 'COMMIT', rows: 1 },
    delay: { client: 'COMMIT', rows: 1 },
  },
}
const matrix = (Object.keys(cells) as FaultMoment[]).flatMap((at) =>
  (Object.keys(cells[at]) as (keyof (typeof cells)[FaultMoment])[]).map((action) => ({
    at,
    action,
    ...cells[at][action],
  })),
)

/** Actions that leave the server's side open, and what the proxy says of the connection then. */
const parted: Readonly<Record<string, string>> = { 'black-hole': 'black-hole', 'half-open': 'kept' }

describe('a COMMIT struck by', () => {
  it.each(matrix)('$action $at: the client sees $client, the server has $rows', async (cell) => {
    const client = await through()
    const armed = proxy.arm({ statement: commits, at: cell.at, action: cell.action, delayMs: 50 })
    expect(await insertAndCommit(client, cell.client)).toBe(cell.client)
    await armed.first
    expect(armed.fired).toHaveLength(1)
    expect(proxy.fired).toMatchObject([{ at: cell.at, action: cell.action, texts: ['commit'], connection: 1 }])
    await until(async () => (await openTransactions()) > 0 === (cell.open ?? false), 'the server has noticed, or not')
    expect(await rows()).toBe(cell.rows)
    if (cell.action in parted) {
      expect(proxy.connections).toMatchObject([{ state: parted[cell.action] }])
      expect(await sessions()).toBe(1)
    }
    await proxy.heal()
    await until(async () => (await openTransactions()) === 0, 'nothing is left open')
    expect(await rows()).toBe(cell.rows)
  })

  it('late delivery: the client is told at once, the row appears afterwards', async () => {
    const client = await through()
    const armed = proxy.arm({ statement: commits, at: 'before-forward', action: 'late', delayMs: 2_000 })
    expect(await insertAndCommit(client)).toBe(lost)
    expect(await rows()).toBe(0)
    expect(await openTransactions()).toBe(1)
    await armed.delivered
    await until(async () => (await openTransactions()) === 0, 'the server is through')
    expect(await rows()).toBe(1)
    await until(async () => (await sessions()) === 0, 'the session has ended')
  })

  it('late delivery that nobody awaits: heal does', async () => {
    const client = await through()
    proxy.arm({ statement: commits, at: 'before-forward', action: 'late', delayMs: 200 })
    expect(await insertAndCommit(client)).toBe(lost)
    await proxy.heal()
    expect(await rows()).toBe(1)
  })

  it('a fault keeps the bytes of its moment', async () => {
    const client = await through()
    proxy.arm({ statement: commits, at: 'before-forward', action: 'fin' })
    await insertAndCommit(client)
    const other = await through()
    proxy.arm({ statement: commits, at: 'between-answers', action: 'fin' })
    await insertAndCommit(other)
    const [before, between] = proxy.fired
    // Q, length, the text and its zero byte; then C, length, the tag and its zero byte.
    expect((between?.bytesToServer ?? 0) - (before?.bytesToServer ?? 0)).toBe(1 + 4 + 'commit'.length + 1)
    expect((between?.bytesToClient ?? 0) - (before?.bytesToClient ?? 0)).toBe(1 + 4 + 'COMMIT'.length + 1)
    expect(between?.atMs).toBeGreaterThan(before?.atMs ?? 0)
  })
})

describe('the server side of a cut', () => {
  const cut = async (fault: Pick<ProxyFault, 'action' | 'server'>): Promise<void> => {
    const client = await through()
    proxy.arm({ statement: commits, at: 'before-forward', ...fault })
    await insertAndCommit(client)
  }

  it.each(['close', 'reset'] as const)('%s: the session ends', async (side) => {
    await cut({ action: 'fin', server: side })
    await until(async () => (await sessions()) === 0, 'the session has ended')
  })

  it('keep: the transaction holds its locks until heal', async () => {
    await cut({ action: 'rst', server: 'keep' })
    await direct.query(`set lock_timeout = '200ms'`)
    await expect(direct.query('insert into effect values (1)')).rejects.toMatchObject({ code: '55P03' })
    await direct.query('reset lock_timeout')
    expect(proxy.connections).toMatchObject([{ id: 1, state: 'kept' }])
    await proxy.heal()
    await direct.query('insert into effect values (1)')
  })
})

describe('statements are found', () => {
  it('in the extended protocol, with and without a name, also the second time', async () => {
    const client = await through()
    await client.query({ text: 'insert into effect values ($1)', values: [1] })
    const named = { name: 'put', text: 'insert into effect values ($1)' }
    await client.query({ ...named, values: [2] })
    const armed = proxy.arm({ statement: (text) => text.startsWith('insert'), at: 'before-forward', action: 'fin' })
    expect(await outcome(client.query({ ...named, values: [3] }))).toBe(lost)
    expect(armed.fired).toMatchObject([{ texts: ['insert into effect values ($1)'] }])
    expect(await rows()).toBe(2)
  })

  it.each([
    ['after-forward', 1],
    ['before-answer', 1],
    ['between-answers', 1],
  ] as const)('in the extended protocol, %s', async (at, count) => {
    const client = await through()
    const armed = proxy.arm({ statement: (text) => text.startsWith('insert'), at, action: 'fin' })
    expect(await outcome(client.query('insert into effect values ($1)', [1]))).toBe(lost)
    await until(async () => (await rows()) === count, 'the server is through')
    expect(armed.fired).toHaveLength(1)
  })

  it('in a text of several', async () => {
    const client = await through()
    proxy.arm({ statement: commits, at: 'between-answers', action: 'fin' })
    expect(await outcome(client.query('begin; insert into effect values (1); commit'))).toBe(lost)
    expect(await rows()).toBe(1)
  })

  it('by their number, until there are none left: every cut of every statement', async () => {
    const seen: string[] = []
    for (let n = 1; ; n += 1) {
      const client = await through()
      const armed = proxy.arm({ statement: n, at: 'before-forward', action: 'rst' })
      await direct.query('truncate effect')
      await outcome(insertAndCommit(client))
      armed.disarm()
      if (armed.fired.length === 0) break
      seen.push(armed.fired[0]?.texts.join() ?? '')
      await until(async () => (await openTransactions()) === 0, 'the server has noticed')
      expect(await rows()).toBe(0)
    }
    expect(seen).toEqual(['begin', 'insert into effect values (1)', 'commit'])
    expect(await rows()).toBe(1)
  })

  it('by their place among the chosen ones, several times', async () => {
    const armed = proxy.arm({ statement: commits, nth: 2, times: 2, at: 'after-answers', action: 'fin' })
    for (let n = 1; n <= 4; n += 1) await (await through()).query('begin; commit')
    expect(armed.fired.map((fired) => fired.connection)).toEqual([2, 3])
  })

  it('in a pipeline, each with its own answers', async () => {
    const client = await through({ pipeline: true } as pg.ClientConfig)
    const armed = proxy.arm({ statement: (text) => text.includes('(2)'), at: 'between-answers', action: 'fin' })
    const texts = [1, 2, 3].map((n) => `insert into effect values (${n})`)
    expect(await Promise.all(texts.map((text) => outcome(client.query(text))))).toEqual(['fine', lost, lost])
    expect(armed.fired).toHaveLength(1)
    await until(async () => (await sessions()) === 0, 'the server is through')
    expect(await rows()).toBeGreaterThanOrEqual(2)
  })
})

describe('what no fault chooses passes unchanged', () => {
  it('large rows and parameters, errors, notices, and a copy of the traffic', async () => {
    const client = await through()
    const large = 'ä'.repeat(1_500_000)
    expect((await client.query('select $1::text as t', [large])).rows).toEqual([{ t: large }])
    const many = await client.query('select n from generate_series(1, 50000) as n')
    expect(many.rows).toHaveLength(50_000)
    await expect(client.query('select 1/0')).rejects.toMatchObject({ code: '22012' })
    const notices: unknown[] = []
    client.on('notice', (notice) => notices.push(notice.message))
    await client.query(`do $$ begin raise notice 'hello'; end $$`)
    expect(notices).toEqual(['hello'])
    expect(proxy.statements).toHaveLength(4)
    expect(proxy.fired).toEqual([])
  })

  it('requests for encryption: refused by the proxy, or passed to a server that refuses', async () => {
    const refused = await through({ ssl: false })
    expect((await refused.query('select 1 as n')).rows).toEqual([{ n: 1 }])
    await expect(through({ ssl: { rejectUnauthorized: false } })).rejects.toThrow('does not support SSL')
    const passing = await postgresProxy({ upstream: server, encryption: 'pass' })
    try {
      await expect(through({ port: passing.port, ssl: { rejectUnauthorized: false } })).rejects.toThrow(
        'does not support SSL',
      )
      const client = new pg.Client({ host: passing.host, port: passing.port, user: 'postgres' })
      await client.connect()
      expect((await client.query('select 1 as n')).rows).toEqual([{ n: 1 }])
      await client.end()
    } finally {
      await passing.close()
    }
  })

  it('requests to cancel', async () => {
    const client = await through()
    const running = outcome(client.query('select pg_sleep(30)'))
    const { processID, secretKey } = client as unknown as { processID: number; secretKey: number }
    const active = `select 1 from pg_stat_activity where pid = $1 and state = 'active'`
    await until(async () => (await direct.query(active, [processID])).rowCount === 1, 'the query runs')
    const request = Buffer.alloc(16)
    for (const [index, word] of [16, 80_877_102, processID, secretKey].entries()) request.writeInt32BE(word, index * 4)
    connect(proxy.port, proxy.host).end(request)
    expect(await running).toBe('57014')
  })

  it('an encrypted connection: nothing in it can be struck, everything passes', async () => {
    const { key, cert } = selfSigned()
    const folder = serverFolder()
    const files = { ssl_key_file: join(folder, 'key'), ssl_cert_file: join(folder, 'cert') }
    writeFileSync(files.ssl_key_file, key, { mode: 0o600 })
    writeFileSync(files.ssl_cert_file, cert)
    for (const path of Object.values(files)) ownedByServer(path)
    const encrypted = await startPostgres({ fsync: false, settings: { ssl: 'on', ...files } })
    const passing = await postgresProxy({ upstream: encrypted, encryption: 'pass' })
    try {
      passing.arm({ statement: () => true, at: 'before-forward', action: 'rst' })
      const options = { host: passing.host, port: passing.port, user: 'postgres', ssl: { rejectUnauthorized: false } }
      const client = new pg.Client(options)
      await client.connect()
      const text = 'select ssl from pg_stat_ssl where pid = pg_backend_pid()'
      expect((await client.query(text)).rows).toEqual([{ ssl: true }])
      await client.end()
      expect(passing.fired).toEqual([])
    } finally {
      await passing.close()
      await encrypted.dispose()
      rmSync(folder, { recursive: true })
    }
  })
})

describe('the opening of a connection struck by', () => {
  const opening = (expected = 'fine'): Promise<string> => heard(outcome(through()), expected)

  it.each([
    ['fin', 'before-forward', lost],
    ['rst', 'before-forward', 'ECONNRESET'],
    ['black-hole', 'before-forward', 'nothing'],
    ['black-hole', 'after-forward', 'nothing'],
    ['fin', 'before-answer', lost],
    ['fin', 'between-answers', lost],
    ['delay', 'before-forward', 'fine'],
  ] as const)('%s %s', async (action, at, seen) => {
    const armed = proxy.arm({ statement: 'startup', nth: 2, at, action, delayMs: 50 })
    const byNumber = proxy.arm({ statement: 1, at: 'before-forward', action: 'rst' })
    expect(await opening()).toBe('fine')
    expect(await opening(seen)).toBe(seen)
    await armed.first
    expect(armed.fired).toMatchObject([{ connection: 2, texts: [] }])
    expect(byNumber.fired).toEqual([])
    expect(await opening()).toBe('fine')
  })
})

it('a server that is not there resets the client, as the server would', async () => {
  const port = await freePort()
  const nowhere = await postgresProxy({ upstream: { host: '127.0.0.1', port } })
  expect(await outcome(new pg.Client({ host: nowhere.host, port: nowhere.port, user: 'postgres' }).connect())).toBe(
    'ECONNRESET',
  )
  await nowhere.close()
})
