// What a look at a live server finds: each finding seen once with its cause, and none without one.

import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/kernel/index.js'
import { type Finding, postgres } from '../../../src/stores/postgres/index.js'
import { manualClock } from '../../../src/testing/index.js'
import { transactionHistoryOf } from '../../../src/transaction/index.js'
import { type Pgbouncer, startPgbouncer } from '../../servers/pgbouncer.js'
import { type Postgres, startPostgres, withClient } from '../../servers/postgres.js'
import { until } from '../../servers/server-process.js'
import { startStandby } from '../../servers/standby.js'
import { newestMigration } from '../newest-migration.js'
import { codeOf, patient } from './world.js'

const newest = newestMigration.postgres

const sound = {
  tcp_keepalives_idle: '60',
  idle_in_transaction_session_timeout: '60000',
  max_connections: '30',
  wal_level: 'replica',
}

let server: Postgres
beforeAll(async () => {
  server = await startPostgres({ settings: sound })
})
afterAll(() => server.dispose())

/** The findings with some settings of the session. */
async function codes(options: string, config: pg.PoolConfig = {}): Promise<readonly string[]> {
  const pool = new pg.Pool({ connectionString: server.url, options, ...config })
  const found = await postgres({ pool, name: 'patient' }).doctor()
  await pool.end()
  expect(found.every(({ what, fix }) => what.length > 10 && fix.length > 5)).toBe(true)
  return found.map(({ code }) => code).sort()
}

describe('the doctor', () => {
  it('misses the tables, and then finds nothing', async () => {
    expect(await codes('')).toEqual(['MIGRATIONS_MISSING'])
    const pool = new pg.Pool({ connectionString: server.url })
    await postgres({ pool, name: 'patient' }).migrate()
    await pool.end()
    expect(await codes('')).toEqual([])
  })

  it.each([
    ['-c synchronous_commit=off', 'SYNCHRONOUS_COMMIT_OFF'],
    ['-c default_transaction_read_only=on', 'READ_ONLY_BY_DEFAULT'],
    ['-c idle_in_transaction_session_timeout=0', 'IDLE_IN_TRANSACTION_UNLIMITED'],
    ['-c tcp_keepalives_idle=7200', 'KEEPALIVES_LATE'],
    ['-c statement_timeout=30000', 'STATEMENT_TIMEOUT_SET'],
  ])('sees %s', async (options, code) => {
    expect(await codes(options)).toEqual([code])
  })

  it('sees records that nobody forgets or looks at', async () => {
    await withClient(server.url, async (client) => {
      const old = (columns: string, state: string, hours: number): string =>
        `insert into reprise_marker (id, format, claimed_at_ms, mode, state, ${columns}) values ('old', 2, 0, 'leased', '${state}', ${Date.now() - hours * 3_600_000})`
      for (const [statement, code] of [
        [old('expires_at_ms', 'succeeded', 25), 'PURGE_OVERDUE'],
        [old('due_at_ms', 'unknown', 2), 'SWEEP_OVERDUE'],
      ] as const) {
        await client.query(statement)
        expect(await codes('')).toEqual([code])
        await client.query(`delete from reprise_marker where id = 'old'`)
      }
    })
    expect(await codes('')).toEqual([])
  })

  it('sees a pool that is too small or too large', async () => {
    expect(await codes('', { max: 1 })).toEqual(['POOL_OF_ONE'])
    expect(await codes('', { max: 1_000 })).toEqual(['POOL_OVER_SERVER'])
  })

  it('sees a server without fsync and with replicas that COMMIT does not wait for', async () => {
    const settings = { ...sound, synchronous_standby_names: 'other', synchronous_commit: 'local' }
    const careless = await startPostgres({ fsync: false, settings })
    const pool = new pg.Pool({ connectionString: careless.url })
    const db = postgres({ pool, name: 'careless' })
    await db.migrate()
    const found = await db.doctor()
    expect(found.map(({ code }) => code).sort()).toEqual([
      'FSYNC_OFF',
      'FULL_PAGE_WRITES_OFF',
      'SYNCHRONOUS_COMMIT_LOCAL',
    ])
    await pool.end()
    await careless.dispose()
  })

  it('sees a synchronous standby that is named and absent, until it is there', async () => {
    const alter = async (text: string) => {
      await withClient(server.url, async (client) => {
        await client.query(text)
        await client.query('select pg_reload_conf()')
      })
    }
    await alter('create role onlooker')
    await alter("alter system set synchronous_standby_names = 'FIRST 1 (near, far)'")
    try {
      await until(async () => (await codes('')).includes('STANDBY_ABSENT'), 'the setting is read')
      // Whoever may see nothing of them sees that there is none.
      expect(await codes('-c role=onlooker')).toContain('STANDBY_ABSENT')
      // No COMMIT waits then, so nobody is missed.
      expect(await codes('-c synchronous_commit=local')).toEqual(['SYNCHRONOUS_COMMIT_LOCAL'])
      const standby = await startStandby(server, 'far')
      await until(async () => (await codes('')).length === 0, 'the standby is there')
      expect(await codes('-c role=onlooker')).toContain('STANDBYS_UNREADABLE')
      await standby.dispose()
      await until(async () => (await codes('')).includes('STANDBY_ABSENT'), 'the standby is gone')
    } finally {
      await alter('alter system reset synchronous_standby_names')
      await alter('drop role onlooker')
    }
    await until(async () => (await codes('')).length === 0, 'the setting is read')
  })

  it('sees a timeline that may not be read', async () => {
    const asked = ['pg_control_system()', 'pg_current_wal_lsn()', 'pg_walfile_name(pg_lsn)']
    await withClient(server.url, (client) =>
      client.query(
        'create role blind; grant all on all tables in schema public to blind; grant all on all sequences in schema public to blind',
      ),
    )
    for (const name of asked) {
      expect(await codes('-c role=blind')).toEqual([])
      await withClient(server.url, (client) => client.query(`revoke execute on function ${name} from public`))
      expect(await codes('-c role=blind')).toEqual(['TIMELINE_UNREADABLE'])
      // As the finding says.
      await withClient(server.url, (client) => client.query(`grant execute on function ${name} to blind`))
    }
    expect(await codes('-c role=blind')).toEqual([])
    const restore = asked.map((name) => `grant execute on function ${name} to public`).join('; ')
    await withClient(server.url, (client) => client.query(`${restore}; drop owned by blind; drop role blind`))
  })

  it.each([
    ['ahead', 90_000],
    ['behind', -90_000],
  ])('sees a server whose clock is %s', async (word, byMs) => {
    const pool = new pg.Pool({ connectionString: server.url })
    const clock = { ...systemClock, wallMs: () => systemClock.wallMs() - byMs }
    const [finding, ...others] = await postgres({ pool, name: 'late', clock }).doctor()
    await pool.end()
    expect(finding).toMatchObject({ code: 'CLOCKS_APART', severity: 'risk' })
    const [, ms] = new RegExp(`The server is (\\d+) ms ${word}, at least\\.$`).exec(finding?.what ?? '') ?? []
    // As much as the round trip took is taken off, and never more than the difference told.
    expect(Number(ms)).toBeGreaterThan(30_000)
    expect(Number(ms)).toBeLessThanOrEqual(90_000 + 1_000)
    expect(others).toEqual([])
  })

  it('sees a standby, where no transaction that writes can be begun either', async () => {
    const standby = await startStandby(server)
    const pool = new pg.Pool({ connectionString: standby.server.url })
    const db = postgres({ pool, name: 'standby', attempts: 2 })
    expect((await db.doctor()).map(({ code }) => code)).toContain('IN_RECOVERY')
    const refused = await codeOf(db.transact((tx) => tx.query('select 1'), { deadline: '3s' }))
    // On a busy machine the deadline may cut the last try.
    expect(['STORE_UNREACHABLE', 'DEADLINE_EXCEEDED']).toContain(refused)
    expect((await db.transact((tx) => tx.query('select 1 as one'), { readOnly: true })).rows).toEqual([{ one: 1 }])
    await pool.end()
    await standby.dispose()
  })
})

it('finds nothing else where the pool reads every value as text', async () => {
  const pool = new pg.Pool({ connectionString: server.url, types: { getTypeParser: () => (value: string) => value } })
  const db = postgres({ pool, name: 'text' })
  await db.migrate()
  expect(await db.doctor()).toEqual([])
  await pool.end()
})

describe('behind a pooler', () => {
  const through = async (
    mode: 'transaction' | 'statement',
    work: (pool: pg.Pool, bouncer: Pgbouncer) => Promise<void>,
  ) => {
    const bouncer = await startPgbouncer({ mode, upstream: server, poolSize: 3 })
    const pool = new pg.Pool({ connectionString: bouncer.url('postgres'), max: 8 })
    try {
      await work(pool, bouncer)
    } finally {
      await pool.end()
      await bouncer.dispose()
    }
  }

  it('by the statement it is refused', async () => {
    await through('statement', async (pool) => {
      const db = postgres({ pool, name: 'statement' })
      const error = await db.transact((tx) => tx.query('select 1')).catch((reason: unknown) => reason)
      expect(error).toMatchObject({ code: 'POOLING_UNSUPPORTED' })
      // At once: no other try would find another pooler.
      const attempts = [{ phase: 'connecting', ruling: { sign: 'POOLING_UNSUPPORTED', alarm: true } }]
      expect(transactionHistoryOf(error)).toMatchObject({ because: 'permanent', attempts })
      expect(await codeOf(db.migrate())).toBe('POOLING_UNSUPPORTED')
      expect((await db.doctor()).map(({ code }) => code)).toEqual(['POOLING_BY_STATEMENT'])
    })
  })

  it('by the transaction everything holds, and traces follow the backend', async () => {
    await through('transaction', async (pool) => {
      const db = postgres({ pool, name: 'transaction', ...patient })
      expect(await db.migrate()).toEqual({ from: newest, to: newest })
      expect(await db.doctor()).toEqual([])
      await pool.query('create table if not exists through (pid text, lock text)')
      await Promise.all(
        Array.from({ length: 40 }, () =>
          db.transact(async (tx) => {
            await tx.query("insert into through values (pg_backend_pid()::text, current_setting('lock_timeout'))")
            await tx.savepoint(() => tx.query('select 1'))
          }),
        ),
      )
      const { rows } = await pool.query(
        'select count(*)::int as n, count(distinct pid)::int as backends, min(lock) as lock from through',
      )
      expect(rows[0]).toMatchObject({ n: 40, lock: '20s' })
      expect(rows[0].backends).toBeGreaterThan(1)
      expect((await pool.query("select current_setting('lock_timeout') as lock")).rows).toEqual([{ lock: '0' }])
    })
  })
})

describe('the doctor looks at the tables', () => {
  const found = async (change: string): Promise<readonly string[]> =>
    (await findingsAfter(change)).map(({ code }) => code)
  const findingsAfter = async (change: string): Promise<readonly Finding[]> => {
    const schema = `t${randomUUID().slice(0, 8)}`
    const pool = new pg.Pool({ connectionString: server.url })
    const db = postgres({ pool, name: 'tables', schema })
    await db.migrate()
    expect(await db.doctor()).toEqual([])
    // What it wrote to see whether there is room is gone.
    expect((await pool.query(`select id from ${schema}.reprise_marker`)).rows).toEqual([])
    await pool.query(change.replaceAll('@', schema))
    const role = change.includes('create role') ? { options: `-c role=${schema}` } : {}
    const asRole = new pg.Pool({ connectionString: server.url, ...role })
    const findings = await postgres({ pool: asRole, name: 'tables', schema }).doctor()
    await asRole.end()
    await pool.end()
    return findings
  }

  it.each([
    ['alter table @.reprise_marker set unlogged', 'TABLES_UNLOGGED'],
    ['alter table @.reprise_marker drop constraint reprise_marker_pkey', 'PRIMARY_KEY_MISSING'],
    ['drop index @.reprise_marker_due', 'TABLES_INCOMPLETE'],
    ['drop table @.reprise_audit', 'TABLES_INCOMPLETE'],
    ['drop sequence @.reprise_fence', 'TABLES_INCOMPLETE'],
    ['drop table @.reprise_marker', 'TABLES_INCOMPLETE'],
    ['drop table @.reprise_sequence', 'TABLES_INCOMPLETE'],
    ['alter table @.reprise_sequence set unlogged', 'TABLES_UNLOGGED'],
    ['alter table @.reprise_marker drop column because', 'TABLES_INCOMPLETE'],
    ['alter table @.reprise_audit enable row level security', 'TRIGGERS_PRESENT'],
    ['create rule quiet as on delete to @.reprise_audit do instead nothing', 'TRIGGERS_PRESENT'],
    [
      `insert into @.reprise_marker (id, claimed_at_ms, due_at_ms, fence) values ('a', 0, 1, nextval('@.reprise_fence'));
       drop sequence @.reprise_fence; create sequence @.reprise_fence`,
      'FENCE_BEHIND',
    ],
    [
      "insert into @.reprise_sequence (sequence, producer, epoch, number, used_at_ms) values ('a', 'b', 1, 0, 0)",
      'FENCE_BEHIND',
    ],
    ['alter table @.reprise_marker set (autovacuum_enabled = false)', 'AUTOVACUUM_OFF'],
    ['create role @; grant usage on schema @ to @', 'MIGRATIONS_UNREADABLE'],
    [
      'create role @; grant usage on schema @ to @; grant select on all tables in schema @ to @; grant usage on all sequences in schema @ to @',
      'RIGHTS_MISSING',
    ],
  ])('%s', async (change, code) => {
    expect(await found(change)).toEqual([code])
  })

  it('a disk that is full', async () => {
    const full = `create function @.full() returns trigger language plpgsql as
        'begin raise exception using errcode = ''53100'', message = ''No space left on device''; end';
      create trigger full_disk before insert on @.reprise_marker for each row execute function @.full()`
    expect(await found(full)).toEqual(['TRIGGERS_PRESENT', 'DISK_FULL'])
  })

  it.each([
    [
      `create function @.frozen() returns trigger language plpgsql as $$ begin raise exception 'secret'; end $$;
       create trigger frozen before insert on @.reprise_marker for each row execute function @.frozen()`,
      'P0001',
      ['TRIGGERS_PRESENT'],
    ],
    [
      `create function @.slow() returns trigger language plpgsql as $$ begin perform pg_sleep(60); return new; end $$;
       create trigger slow before insert on @.reprise_marker for each row execute function @.slow()`,
      '57014',
      ['TRIGGERS_PRESENT'],
    ],
    ['alter table @.reprise_marker add column extra int not null', '23502', []],
    ['alter table @.reprise_marker add check (length(id) < 3)', '23514', []],
  ])('refuses a row: %s', async (change, sqlState, others) => {
    const findings = await findingsAfter(change)
    expect(findings.map(({ code }) => code)).toEqual([...others, 'WRITE_REFUSED'])
    expect(findings.at(-1)?.what).toMatch(new RegExp(`key\\. ${sqlState} was the answer to a write\\.$`))
  })

  it.each([
    ['reprise_marker', 'ACCESS EXCLUSIVE'],
    ['reprise_marker', 'SHARE'],
    ['reprise_migration', 'ACCESS EXCLUSIVE'],
  ])('%s, locked by somebody (%s), among the other findings', async (table, mode) => {
    const schema = `t${randomUUID().slice(0, 8)}`
    // Shorter than what the doctor waits for a lock, which must not end it.
    const pool = new pg.Pool({ connectionString: server.url, options: '-c statement_timeout=1000' })
    const db = postgres({ pool, name: 'held', schema })
    const maker = new pg.Pool({ connectionString: server.url })
    await postgres({ pool: maker, name: 'maker', schema }).migrate()
    await maker.end()
    await withClient(server.url, async (holder) => {
      await holder.query(`begin; lock table ${schema}.${table} in ${mode} mode`)
      const findings = await db.doctor()
      expect(findings.map(({ code }) => code)).toEqual(['STATEMENT_TIMEOUT_SET', 'TABLES_LOCKED'])
      await holder.query('rollback')
    })
    // Nothing is left of the limits and of the transactions on the connection.
    expect((await pool.query("select current_setting('lock_timeout') as lock")).rows).toEqual([{ lock: '0' }])
    expect((await db.doctor()).map(({ code }) => code)).toEqual(['STATEMENT_TIMEOUT_SET'])
    await pool.end()
  })

  it('for ten seconds at most, whatever it waits for', async () => {
    const clock = manualClock()
    const pool = new pg.Pool({ connectionString: server.url })
    const db = postgres({ pool, name: 'patient', clock })
    await db.migrate()
    await withClient(server.url, async (holder) => {
      await holder.query('begin; lock table pg_catalog.pg_trigger in access exclusive mode')
      const looked = codeOf(db.doctor())
      const waiting = "select 1 from pg_locks where not granted and relation = 'pg_catalog.pg_trigger'::regclass"
      await until(async () => (await holder.query(waiting)).rows.length === 1, 'the question waits')
      await clock.advance(9_999)
      expect(pool.totalCount).toBe(1)
      await clock.advance(1)
      expect(await looked).toBe('DEADLINE_EXCEEDED')
      expect(pool.totalCount).toBe(0)
      await holder.query('rollback')
    })
    expect((await db.doctor()).map(({ code }) => code)).toEqual(['CLOCKS_APART'])
    await pool.end()
  })
})
