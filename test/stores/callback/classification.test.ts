// Every row of the classification table of callback domains, with the error it is about: of a real server, of SQLite,
// or in the shape that an ORM gives it.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Libsql from 'libsql'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Phase, rulingOf } from '../../../src/atomicity/index.js'
import { mintKey } from '../../../src/identity/index.js'
import { callbackClassification, callbackSignsOf } from '../../../src/stores/callback/index.js'
import { type SqliteHandle, sqlite } from '../../../src/stores/sqlite/index.js'
import { transactionHistoryOf } from '../../../src/transaction/index.js'
import { until } from '../postgres/world.js'
import { libsqlStack, type More, pgStack } from './orms.js'
import { callbackWorld, caught, tests, type World } from './world.js'

let world: World
const folder = mkdtempSync(join(tmpdir(), 'reprise-'))
const file = join(folder, 'classification.db')
afterAll(() => rmSync(folder, { recursive: true }))
beforeAll(async () => {
  world = await callbackWorld()
  const maker = sqlite({ name: 'maker', open: () => new Libsql(file) as unknown as SqliteHandle })
  await maker.migrate()
  await maker.transact((tx) => tx.query('create table item (id text primary key)'))
  await maker.close()
})

type Trigger = () => Promise<unknown>
const once = { attempts: 1 } as const
const stackWith = (more: More<pg.PoolClient> = {}) => world.keep(pgStack(world.url, more))

/** A body that fails through the ORM's handle, unseen. */
const inBody =
  (work: (client: pg.PoolClient) => Promise<unknown>): Trigger =>
  () =>
    stackWith().db.transact((tx) => work(tx.db), once)

const raising = (code: string): Trigger =>
  inBody((client) => client.query(`do $$ begin raise exception using errcode = '${code}'; end $$`))

const coded = (code: string): Error => Object.assign(new Error('in the shape of Prisma'), { code })
const thrown = (code: string): Trigger => inBody(() => Promise.reject(coded(code)))
const atBegin = (code: string): Trigger => {
  const transaction = () => Promise.reject(coded(code))
  return () => stackWith({ transaction }).db.transact(() => 1, once)
}

const triggers: Readonly<Record<string, Trigger>> = {
  'triggers 40001 through a callback': raising('40001'),
  'triggers 40P01 through a callback': raising('40P01'),
  'triggers P2034 through a callback': thrown('P2034'),
  'triggers 55P03 through a callback': raising('55P03'),
  async 'triggers SQLITE_BUSY* through a callback'() {
    const { db } = world.keep(libsqlStack(file, 1))
    const stranger = new Libsql(file)
    stranger.exec('BEGIN IMMEDIATE')
    try {
      return await db.transact(() => 1, { ...once, lockWait: '20ms' })
    } finally {
      stranger.exec('ROLLBACK')
      stranger.close()
    }
  },
  'triggers 23* through a callback': inBody((client) => client.query('insert into payment values (null, null)')),
  'triggers SQLITE_CONSTRAINT* through a callback': () =>
    world.keep(libsqlStack(file, 1)).db.transact((tx) => {
      for (const _ of [1, 2]) tx.db.prepare('insert into item values (?)').run('a')
    }, once),
  'triggers P2002 through a callback': thrown('P2002'),
  'triggers 25P02 through a callback': inBody(async (client) => {
    await client.query('select 1/0').catch(() => undefined)
    await client.query('select 1')
  }),
  'triggers 25P03 through a callback': raising('25P03'),
  'triggers 57014 through a callback': inBody((client) =>
    client.query('set local statement_timeout = 5; select pg_sleep(5)'),
  ),
  'triggers 57P* through a callback': inBody((client) => client.query('select pg_terminate_backend(pg_backend_pid())')),
  'triggers 08* through a callback': raising('08006'),
  'triggers 53300 through a callback': raising('53300'),
  'triggers connection-lost through a callback': inBody(async (client) => {
    const { connection } = client as unknown as { connection: { stream: { destroy(): void } } }
    connection.stream.destroy()
    await client.query('select 1')
  }),
  'triggers P1017 through a callback': thrown('P1017'),
  'triggers P2024 through a callback': atBegin('P2024'),
  'triggers P2028 through a callback': thrown('P2028'),
  async 'triggers POOL_EXHAUSTED through a callback'() {
    const { db, pool } = stackWith({ connections: 1 })
    const client = await pool.connect()
    try {
      return await db.transact(() => 1, { ...once, connectionWait: '20ms' })
    } finally {
      client.release()
    }
  },
  async 'triggers QUEUE_FULL through a callback'() {
    const { db } = stackWith({ connections: 1, queue: 0 })
    let finish: () => void = () => undefined
    const holder = db.transact(
      () =>
        new Promise<void>((resolve) => {
          finish = resolve
        }),
    )
    const refused = await caught(db.transact(() => 1, once))
    await until('the holder is inside', () => finish.length === 1)
    finish()
    await holder
    throw refused
  },
  async 'triggers STORE_CLOSED through a callback'() {
    const { db } = stackWith()
    await db.close()
    return db.transact(() => 1, once)
  },
  'triggers TRANSACTION_ABORTED through a callback': inBody((client) =>
    client.query('select 1/0').catch(() => undefined),
  ),
  'triggers MARKER_INVALID through a callback': () =>
    stackWith().db.transact((tx) => tx.db.query('delete from reprise_marker').then(() => 1), {
      content: 'none',
      ...once,
      key: { scope: tests, key: mintKey() },
    }),
  'triggers TRANSACTION_ENDED_ELSEWHERE through a callback': inBody((client) => client.query('commit')),
}

describe('the classification table of callback domains', () => {
  it.each(Object.entries(triggers))('%s', async (title, trigger) => {
    const error = await caught(trigger() as Promise<unknown>)
    const [attempt] = transactionHistoryOf(error)?.attempts ?? []
    const row = callbackClassification.find(({ evidence }) => 'triggered' in evidence && evidence.triggered === title)
    const phase = (attempt?.phase === 'waiting' ? 'connecting' : attempt?.phase) as Exclude<Phase, 'waiting' | 'done'>
    const word = row?.[phase]
    expect(word, `a ruling while ${phase}`).toBeDefined()
    const { sign: _, ...wanted } = rulingOf(word ?? 'halt', '')
    expect(attempt?.ruling).toMatchObject(row?.blocked ? { ...wanted, blocked: true } : wanted)
    if (row?.first && (error as Error).cause !== undefined) {
      expect(error).toMatchObject({ code: row.sign })
      return
    }
    expect(attempt?.ruling.sign.startsWith(row?.sign.replace('*', '') ?? '?')).toBe(true)
  })

  it('has a trigger for every row', () => {
    expect(Object.keys(triggers).toSorted()).toEqual(
      callbackClassification.map(({ sign }) => `triggers ${sign} through a callback`).toSorted(),
    )
  })
})

describe('errors of ORMs', () => {
  it.each([
    ['as they are', { code: '40001' }],
    ['of TypeORM', { name: 'QueryFailedError', driverError: { code: '40001' } }],
    ['of Sequelize', { original: { code: '40001' }, parent: { code: '40001' } }],
    ['of Prisma', { code: 'P2010', meta: { code: '40001' } }],
    ['of Prisma 7', { code: 'P2034', meta: { driverAdapterError: { cause: { originalCode: '40001' } } } }],
    ['with a cause', { cause: { cause: { code: '40001' } } }],
  ])('show the code of the engine %s', (_what, error) => {
    expect(callbackSignsOf(error)).toContain('40001')
  })

  it('that are none show nothing, and neither do endless ones', () => {
    const round: { code: string; cause?: unknown } = { code: 'A' }
    round.cause = round
    expect(callbackSignsOf(round)[0]).toBe('A')
    for (const odd of [undefined, null, 'text', 7, {}]) expect(callbackSignsOf(odd)).toEqual([])
  })

  it('are ruled upon by the domain where it says so', async () => {
    const { db } = stackWith({
      classify: (error) => ((error as { code?: string }).code === 'MINE' ? 'repeat' : undefined),
    })
    let runs = 0
    const result = await db.transact(async (tx) => {
      runs += 1
      if (runs === 1) await tx.query('select 1').then(() => Promise.reject(coded('MINE')))
      return runs
    })
    expect(result).toBe(2)
  })

  it('of the network are the body’s own, unless an ORM wrapped them', async () => {
    const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET' })
    const attemptsOf = async (error: unknown) => {
      const ended = await caught(stackWith().db.transact(() => Promise.reject(error), { attempts: 2 }))
      return transactionHistoryOf(ended)?.attempts.length
    }
    expect(await attemptsOf(reset)).toBe(1)
    expect(await attemptsOf(Object.assign(new Error('query failed'), { driverError: reset }))).toBe(2)
  })
})
