// Lock time-outs that repeat, each for one of the usual causes, and what the error and the event say of it.

import { randomUUID } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import pg from 'pg'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Blocker, RecordDraft } from '../../../src/atomicity/index.js'
import type { StoredKey } from '../../../src/identity/index.js'
import { type Clock, systemClock } from '../../../src/kernel/index.js'
import { LockTimeoutError, type PostgresDomain, postgres } from '../../../src/stores/postgres/index.js'
import { type TransactionAttemptEvent, transactionAttempt } from '../../../src/telemetry/index.js'
import { begun, postgresWorld, until, untilWaiting, type World, warm } from './world.js'

let world: World
beforeAll(async () => {
  world = await postgresWorld()
  await world.raw.query(`insert into item (id) values ('a-secret'), ('b-secret'), ('c-secret'), ('d-secret')`)
})

const ending: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end()
})

type Db = PostgresDomain<pg.PoolClient>

/** A domain that has seen no time-out yet, and the statements that its connections send. */
async function domain({ config = {}, sends = (text) => text }: Domain = {}): Promise<{ db: Db; texts: string[] }> {
  const pool = new pg.Pool({ connectionString: world.url, max: 4, ...config })
  const texts: string[] = []
  pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...values: unknown[]) => unknown
    const sending = (first: unknown, ...others: unknown[]): unknown => {
      if (typeof first !== 'string') return query(first, ...others)
      texts.push(first)
      const sent = sends(first)
      return sent === first ? query(first, ...others) : query(sent)
    }
    Object.assign(client, { query: sending })
  })
  ending.push(() => pool.end())
  // Whoever is asked beside the one who waits need not be connected first.
  await warm(pool)
  return { db: postgres({ pool, name: 'shop', clock: asksEarly }), texts }
}
// Who holds a lock is asked half-way through the wait for it: here after a third of it, so that most of the
// wait is left for the answer of a busy machine.
const lockWaitMs = 900 // less than the second after which the server looks for deadlocks
const asksEarly: Clock = {
  ...systemClock,
  setTimer: (delayMs, fire, options) =>
    systemClock.setTimer(delayMs === lockWaitMs / 2 ? lockWaitMs / 3 : delayMs, fire, options),
}
interface Domain {
  readonly config?: pg.PoolConfig
  /** What is sent in place of a statement. */
  readonly sends?: (text: string) => string
}

/** Another program, with a transaction open. */
async function stranger(...statements: string[]): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: world.url })
  client.on('error', () => undefined)
  await client.connect()
  ending.push(() => client.end())
  for (const text of statements) await client.query(text)
  return client
}

/** Waits until a session's transaction is a long one, and answers with the session's number. */
async function untilLong(session: { query(text: string): Promise<{ rows: unknown[] }> }): Promise<string> {
  const text =
    "select pid, clock_timestamp() - xact_start > interval '1 s' as long from pg_stat_activity where pid = pg_backend_pid()"
  const look = async () => (await session.query(text)).rows[0] as { pid: number; long: boolean }
  await until('its transaction is long', async () => (await look()).long)
  return String((await look()).pid)
}

const touch = (id: string) => `update item set amount = amount + 1 where id = '${id}-secret'`
const isLook = (text: string) => text.startsWith('BEGIN READ ONLY; SET LOCAL statement_timeout')

/** Runs a transaction into lock time-outs, and answers with what it failed with, and what was told meanwhile. */
async function timedOut(db: Db, body: string | ((tx: { query(text: string): unknown }) => unknown), attempts = 2) {
  const events: TransactionAttemptEvent[] = []
  const note = (message: unknown) => events.push(message as TransactionAttemptEvent)
  subscribe(transactionAttempt.name, note)
  const run = async (tx: { query(text: string): unknown }): Promise<void> => {
    await (typeof body === 'string' ? tx.query(body) : body(tx))
  }
  const error = await db.transact(run, { attempts, lockWait: lockWaitMs, deadline: '120s' }).catch((reason) => reason)
  unsubscribe(transactionAttempt.name, note)
  expect(error).toBeInstanceOf(LockTimeoutError)
  const { evidence, blockers, message } = error as LockTimeoutError
  // Whatever it says, it has no statement and no value of one.
  expect(JSON.stringify([evidence, events, message])).not.toMatch(/secret|update/)
  return { evidence, blockers, message, events, causes: [...new Set(evidence.map(({ cause }) => cause))] }
}

describe('repeated lock time-outs name', () => {
  it('a long transaction', async () => {
    const holder = await stranger('begin', touch('a'))
    const session = await untilLong(holder)
    const { evidence, message, events } = await timedOut((await domain()).db, touch('a'))
    const said = new RegExp(
      `^The transaction of session ${session} has been open for \\d{4,} ms, idle for \\d+ ms of it\\.$`,
    )
    expect(evidence).toContainEqual({ cause: 'long-transaction', sentence: expect.stringMatching(said) })
    expect(message).toContain('There is evidence for: long-transaction')
    // The event of the second time-out has it, that of the first has not.
    expect(events.map((event) => event.evidence)).toEqual([undefined, evidence])
  })

  it('a missing index', async () => {
    await world.raw.query(
      'create table big as select n as id, n % 100 as owner, 0 as amount from generate_series(1, 4000) n',
    )
    const pay = 'update big set amount = amount + 1 where owner = 7'
    // A session that ends tells the server at once what it has read.
    const others = await stranger(pay, pay, pay)
    await others.end()
    const read = `select coalesce(sum(seq_scan), 0) >= 3 as enough from pg_stat_user_tables where relname = 'big'`
    await until('it is counted', async () => (await world.raw.query(read)).rows[0].enough)
    await stranger('begin', pay)
    const { evidence, causes } = await timedOut((await domain()).db, pay)
    expect(causes).toContain('missing-index')
    expect(evidence.find(({ cause }) => cause === 'missing-index')?.sentence).toMatch(
      /^Table big, .* in full, (3[5-9]|4\d)\d\d rows each, and 0 times by an index\.$/,
    )
  })

  it('locks that are taken in another order', async () => {
    // It does not look for deadlocks itself, however long we take to come.
    const other = await stranger(`set deadlock_timeout = '60s'`)
    let waiting: Promise<unknown> = Promise.resolve()
    const { evidence } = await timedOut((await domain()).db, async (tx) => {
      await waiting
      for (const text of ['rollback', 'begin', touch('b')]) await other.query(text)
      await tx.query(touch('a'))
      waiting = other.query(touch('a'))
      await untilWaiting(world.raw)
      await tx.query(touch('b'))
    })
    const said = /^Session \d+ waits for a lock of session \d+, which waits behind it\.$/
    expect(evidence).toContainEqual({ cause: 'lock-order', sentence: expect.stringMatching(said) })
    await waiting
  })

  it('the deadlocks that the server cut before', async () => {
    const { db } = await domain()
    let met = 0
    const crossing = (first: string, second: string) =>
      db.transact(
        async (tx) => {
          await tx.query(touch(first))
          met += 1
          await until('both have one', () => met >= 2)
          await tx.query(touch(second))
        },
        { lockWait: '60s', deadline: '120s' },
      )
    await Promise.all([crossing('a', 'b'), crossing('b', 'a')])
    // One of the two ran again: there was a deadlock. On a busy machine it may be faster than the other one, and meet it
    // once more.
    expect(met).toBeGreaterThan(2)
    await stranger('begin', touch('a'))
    const { evidence } = await timedOut(db, touch('a'))
    const sentence = `The server cut ${met - 2} deadlock(s) of this domain within a minute.`
    expect(evidence).toContainEqual({ cause: 'lock-order', sentence })
  })

  it('a batch beside the traffic: many rows', async () => {
    await stranger('begin', 'update item set amount = 0')
    for (const id of ['b', 'c']) {
      const other = await stranger('begin')
      other.query(touch(id)).catch(() => undefined)
    }
    await untilWaiting(world.raw, 2)
    const { evidence } = await timedOut((await domain()).db, touch('a'))
    expect(evidence).toContainEqual({
      cause: 'batch',
      sentence: expect.stringMatching(/^Others wait for 3 different rows until session \d+ ends\.$/),
    })
  })

  it('a batch beside the traffic: a whole table', async () => {
    await stranger('begin', 'lock item in share row exclusive mode')
    const { evidence } = await timedOut((await domain()).db, touch('a'))
    const said = /^Session \d+ has the whole table item locked \(ShareRowExclusiveLock\)\.$/
    expect(evidence).toContainEqual({ cause: 'batch', sentence: expect.stringMatching(said) })
  })

  it('a pool that is larger than the server bears', async () => {
    await stranger('begin', touch('a'))
    const { evidence } = await timedOut((await domain({ config: { max: 1_000 } })).db, touch('a'))
    expect(evidence).toContainEqual({
      cause: 'pool',
      sentence: expect.stringMatching(
        /^This pool may make 1000 connections; the server takes 197 in all, and has \d+\.$/,
      ),
    })
  })

  it('also those who stand behind others that wait', async () => {
    const holder = await stranger('begin', touch('a'))
    const second = await stranger('begin')
    second.query(touch('a')).catch(() => undefined)
    await untilWaiting(world.raw)
    const session = await untilLong(holder)
    const { evidence, blockers } = await timedOut((await domain()).db, touch('a'))
    expect(blockers.map((blocker) => blocker.session)).not.toContain(session)
    expect(evidence.filter(({ sentence }) => sentence.includes(`session ${session} `))).not.toEqual([])
  })

  it('what holds a key, also where the last wait for it was too short to ask', async () => {
    const key = 'held' as StoredKey
    const draft: RecordDraft = { mode: 'atomic', token: 'a token' }
    const holder = await begun(world.engine)
    await holder.session.claim(key, draft)
    await untilLong({ query: (text) => holder.tx.query(text) })
    const blockers: Blocker[] = []
    const seen: unknown[] = []
    await warm(world.pool)
    for (const waitMs of [1_500, 1_500, 5]) {
      const { session } = await begun(world.engine, { claim: { id: key, draft, blockers, waitMs }, idleMs: 30_000 })
      seen.push(
        await Promise.resolve(session.claim(key, draft)).catch((error: LockTimeoutError) =>
          error.evidence.map(({ cause }) => cause),
        ),
      )
      await session.rollback()
      session.release('keep')
    }
    expect(seen).toEqual([[], expect.arrayContaining(['long-transaction']), seen[1]])
    await holder.session.rollback()
    holder.session.release('keep')
  })
})

describe('the server is asked for causes', () => {
  it('neither on the way of success nor at the first time-out, and once for many', async () => {
    const { db, texts } = await domain()
    await db.transact((tx) => tx.query(touch('a')))
    expect(texts.filter((text) => text.includes('pg_blocking_pids'))).toEqual([])
    await stranger('begin', 'lock item in exclusive mode')
    const first = await timedOut(db, touch('a'), 1)
    expect([first.evidence, first.blockers.length, texts.filter(isLook).length]).toEqual([[], 1, 0])
    const calls = await Promise.all([timedOut(db, touch('a')), timedOut(db, touch('b'))])
    for (const { causes } of calls) expect(causes).toContain('batch')
    expect(texts.filter(isLook).length).toBe(1)
  })

  it('and what it said is not told of other locks', async () => {
    const { db, texts } = await domain()
    const one = await stranger('begin', 'lock item in exclusive mode')
    expect((await timedOut(db, touch('a'))).causes).toContain('batch')
    await one.end()
    await stranger('begin', touch('a'))
    expect(await timedOut(db, touch('a'))).toMatchObject({ evidence: [], blockers: [{}] })
    expect(texts.filter(isLook).length).toBe(1)
  })
})

describe('a call fails with its lock time-out all the same where', () => {
  const asleep = 'select pg_sleep(60)'
  it.each([
    ['the connection that asks is silent', (text: string) => (text.includes('pg_blocking_pids') ? asleep : text), 0],
    ['it falls silent at the second question', (text: string) => (isLook(text) ? asleep : text), 1],
    ['the second question fails', (text: string) => (isLook(text) ? 'select 1/0' : text), 1],
  ])('%s', async (_what, sends, blockers) => {
    await stranger('begin', 'lock item in exclusive mode')
    const found = await timedOut((await domain({ sends })).db, touch('a'))
    expect([found.evidence, found.blockers.length]).toEqual([[], blockers])
    // Sessions of ours that sleep would keep the database from being dropped in time.
    await world.raw.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where query = '${asleep}' and datname = current_database()`,
    )
  })

  it('rights are missing', async () => {
    const role = `limited_${randomUUID().replaceAll('-', '').slice(0, 12)}`
    await world.raw.query(`create role ${role} login; grant select, update on item to ${role}`)
    ending.push(() => world.raw.query(`drop owned by ${role}; drop role ${role}`))
    await stranger('begin', 'lock item in exclusive mode')
    const config = { connectionString: undefined, ...partsOf(world.url), user: role }
    // Of sessions of others it sees that they are there, and their locks, and not since when.
    const some = await timedOut((await domain({ config })).db, touch('a'))
    expect(some.causes).toContain('batch')
    expect(some.causes).not.toContain('long-transaction')
    await world.raw.query('revoke select on pg_locks from public')
    expect((await timedOut((await domain({ config })).db, touch('a'))).evidence).toEqual([])
    await world.raw.query('revoke execute on function pg_blocking_pids(integer) from public')
    expect(await timedOut((await domain({ config })).db, touch('a'))).toMatchObject({ evidence: [], blockers: [] })
  })
})

function partsOf(url: string): pg.PoolConfig {
  const { hostname, port, pathname, password, searchParams } = new URL(url)
  const host = searchParams.get('host') ?? hostname
  return { host, port: Number(searchParams.get('port') ?? port), database: pathname.slice(1), password }
}
