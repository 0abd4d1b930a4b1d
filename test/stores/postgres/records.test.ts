// The records of a store in PostgreSQL beyond what every store does: connections, deadlines, and servers that are set
// up otherwise.

import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import type { RecordDraft, StoredRecord } from '../../../src/atomicity/index.js'
import { type Key, type StoredKey, scope } from '../../../src/identity/index.js'
import { type Clock, deadlineAfter } from '../../../src/kernel/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { manualClock } from '../../../src/testing/index.js'
import { startPgbouncer } from '../../servers/pgbouncer.js'
import { codeOf, patient, postgresWorld, until, untilWaiting, type World } from './world.js'

let world: World
beforeAll(async () => {
  world = await postgresWorld()
})

const key = (name: string) => name as StoredKey
const limits = (deadline: `${number}ms` | `${number}s` = '60s', clock?: Clock) => ({
  deadline: deadlineAfter(deadline, clock),
})
const asRead = async (id: StoredKey): Promise<StoredRecord> =>
  (await world.db.records.read(id, limits())).record as StoredRecord
const draft: RecordDraft = { mode: 'leased', operation: 'charge', token: 'one', leaseMs: 60_000 }

describe('a call', () => {
  it('that waits for a row ends with its deadline, and its connection with it', async () => {
    const { records } = world.db
    await records.insert(key('locked'), draft, limits())
    await world.raw.query("begin; select 1 from reprise_marker where id = 'locked' for update")
    const before = world.pool.totalCount
    const claimed = await asRead(key('locked'))
    // Time passes when the call waits, and not before.
    const clock = manualClock()
    const hurried = postgres({ pool: world.pool, name: 'hurried', clock }).records
    const swap = codeOf(hurried.swap(key('locked'), claimed, { state: 'unknown' }, limits('300ms', clock)))
    await untilWaiting(world.raw)
    await clock.advance(300)
    expect(await swap).toBe('DEADLINE_EXCEEDED')
    await until('its connection is gone', () => world.pool.totalCount < Math.max(before, 1))
    expect(world.pool.idleCount).toBe(world.pool.totalCount)
    await world.raw.query('rollback')
    // What was sent is carried out all the same, which reading tells.
    await until('the row is changed', async () => (await records.read(key('locked'), limits())).record?.version === 2)
  })

  it('fails fast where no connection can be had, and at once where its time is over', async () => {
    const pool = new pg.Pool({ connectionString: world.url, max: 1 })
    const { records } = postgres({ pool, name: 'full', connectionWait: '50ms' })
    const held = await pool.connect()
    expect(await codeOf(records.read(key('a'), limits()))).toBe('POOL_EXHAUSTED')
    await expect(records.read(key('a'), limits('20ms'))).rejects.toMatchObject({
      code: 'DEADLINE_EXCEEDED',
      cause: { code: 'POOL_EXHAUSTED' },
    })
    expect(await codeOf(records.read(key('a'), limits('0ms')))).toBe('DEADLINE_EXCEEDED')
    const stop = new AbortController()
    const waiting = records.read(key('a'), { ...limits(), signal: stop.signal })
    stop.abort(new Error('no more'))
    await expect(waiting).rejects.toThrow('no more')
    held.release()
    await pool.end()
  })

  it('whose connection is lost throws the driver’s error, and can be repeated', async () => {
    const { records } = world.db
    await records.insert(key('lost'), draft, limits())
    await world.raw.query("begin; select 1 from reprise_marker where id = 'lost' for update")
    // Heard at once: it is rejected before the one who ended its connection is answered.
    const swap = codeOf(records.swap(key('lost'), await asRead(key('lost')), { state: 'unknown' }, limits()))
    await untilWaiting(world.raw)
    await world.raw.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    )
    expect(await swap).toBe('57P01')
    await world.raw.query('rollback')
    expect(await records.swap(key('lost'), await asRead(key('lost')), { state: 'unknown' }, limits())).toMatchObject({
      written: true,
    })
    expect(world.pool.idleCount).toBe(world.pool.totalCount)
  })

  it('prepares its statement once for a connection', async () => {
    const pool = new pg.Pool({ connectionString: world.url, max: 1 })
    const { records } = postgres({ pool, name: 'one' })
    for (let time = 0; time < 5; time++) await records.read(key('a'), limits())
    const { rows } = await pool.query("select name from pg_prepared_statements where name like 'reprise%'")
    expect(rows).toHaveLength(1)
    await pool.end()
  })

  it('goes on where a pooler has lost what was prepared', async () => {
    const pool = new pg.Pool({ connectionString: world.url, max: 1 })
    const { records } = postgres({ pool, name: 'pooled' })
    await records.read(key('a'), limits())
    await pool.query('deallocate all')
    expect((await records.read(key('a'), limits())).record).toBeUndefined()
    expect(await records.insert(key('pooled'), draft, limits())).toMatchObject({ written: true })
    const { rows } = await pool.query("select name from pg_prepared_statements where name like 'reprise%'")
    expect(rows).toEqual([])
    await pool.end()
  })
})

describe('behind a pooler that hands out connections by the transaction', () => {
  it('claims and writes hold, prepared or not', async () => {
    const { hostname, port, pathname } = new URL(world.url)
    const bouncer = await startPgbouncer({
      mode: 'transaction',
      upstream: { host: hostname, port: Number(port) },
      poolSize: 3,
    })
    const pool = new pg.Pool({ connectionString: bouncer.url(pathname.slice(1)), max: 8 })
    const db = postgres({ pool, name: 'bounced', ...patient })
    const names = Array.from({ length: 60 }, (_, number) => `bounced ${number}`)
    const results = await Promise.all(
      names.map(async (name) => {
        const intent = { scope: scope('bounced'), key: `k-${names.indexOf(name)}` as Key }
        const run = () =>
          db.transact(async (tx) => (await tx.query('select 1 as one')).rowCount, { content: 'none', key: intent })
        await db.records.insert(key(name), draft, limits())
        const { record } = await db.records.swap(key(name), await asRead(key(name)), { state: 'unknown' }, limits())
        const seen = await db.records.read(key(name), limits())
        return [record?.version, seen.record?.state, await run(), await run()]
      }),
    )
    expect(results).toEqual(names.map(() => [2, 'unknown', 1, 1]))
    await pool.end()
    await bouncer.dispose()
  })
})

describe('on a server whose transactions are serializable by default', () => {
  it('one of several writes goes through, and the others are shown what it wrote', async () => {
    const pool = new pg.Pool({
      connectionString: world.url,
      max: 4,
      options: '-c default_transaction_isolation=serializable',
    })
    const { records } = postgres({ pool, name: 'strict', connectionWait: '30s' })
    const names = Array.from({ length: 20 }, (_, number) => key(`strict ${number}`))
    for (const name of names) {
      const claims = [1, 2, 3, 4].map((n) => records.insert(name, { ...draft, token: `claim ${n}` }, limits()))
      const claimed = await Promise.all(claims)
      expect(claimed.filter(({ written }) => written)).toHaveLength(1)
      expect(new Set(claimed.map(({ record }) => record?.token)).size).toBe(1)
      const claim = claimed[0]?.record as StoredRecord
      const writes = [1, 2, 3, 4].map((n) =>
        records.swap(name, claim, { state: 'unknown', because: `write ${n}` }, limits()),
      )
      const written = await Promise.all(writes)
      expect(written.filter(({ written }) => written)).toHaveLength(1)
      expect(new Set(written.map(({ record }) => record?.because)).size).toBe(1)
    }
    await pool.end()
  })
})

describe('plans', () => {
  it('go by an index, whatever else the table holds', async () => {
    await world.raw.query(
      `insert into reprise_marker (id, claimed_at_ms, value) select 'many ' || n, 0, 'x' from generate_series(1, 20000) as n; analyze reprise_marker`,
    )
    const plan = async (where: string) =>
      (await world.raw.query(`explain select id from reprise_marker where ${where}`)).rows.map(
        (row: Record<string, unknown>) => String(row['QUERY PLAN']),
      )
    expect((await plan('due_at_ms is not null and due_at_ms <= 5 order by due_at_ms limit 5')).join()).toContain(
      'reprise_marker_due',
    )
    expect((await plan('expires_at_ms <= 5 limit 5')).join()).toContain('reprise_marker_expires')
  })
})
