// After a failover the number of a lost transaction is given out again, and the server says "committed" of it. It is
// not believed.

import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { postgres } from '../../../src/stores/postgres/index.js'
import { type Postgres, startPostgres } from '../../servers/postgres.js'
import { type Standby, startStandby } from '../../servers/standby.js'
import { begun, engineOn } from './world.js'

let primary: Postgres
let standby: Standby
const pools: pg.Pool[] = []
beforeAll(async () => {
  primary = await startPostgres({ fsync: false, settings: { wal_level: 'replica' } })
  const pool = poolOn(primary)
  await postgres({ pool, name: 'primary' }).migrate()
  await pool.query('create table item (id text primary key)')
  standby = await startStandby(primary)
})
afterAll(async () => {
  for (const pool of pools) await pool.end()
  await standby.dispose()
  await primary.dispose()
})

function poolOn(server: Postgres): pg.Pool {
  const pool = new pg.Pool({ connectionString: server.url })
  pools.push(pool)
  return pool
}

it('does not believe a number on another timeline, nor a standby', async () => {
  await standby.caughtUp()
  await standby.detach()
  const { session, tx } = await begun(engineOn(poolOn(primary)))
  await tx.query("insert into item values ('lost')")
  await session.commit()
  session.release('keep')
  const trace = session.trace ?? {}
  const after = engineOn(poolOn(standby.server))
  const limits = { waitMs: 60_000, readOnly: false }
  expect(await after.resolve?.(trace, limits)).toBe('unknown')
  await standby.promote()
  const raw = poolOn(standby.server)
  const status = async () =>
    (await raw.query('select pg_xact_status($1::xid8) as status', [trace['xid']])).rows[0].status
  expect(await after.resolve?.(trace, limits)).toBe('unknown')
  // The trap: unrelated commits take the number, and the server means them.
  for (let taken = 0n; taken <= BigInt(trace['xid'] ?? 0); ) {
    const { rows } = await raw.query<{ xid: string }>(
      'insert into item values (gen_random_uuid()::text) returning pg_current_xact_id()::text as xid',
    )
    taken = BigInt(rows[0]?.xid ?? 0)
  }
  expect(await status()).toBe('committed')
  expect((await raw.query("select 1 from item where id = 'lost'")).rows).toEqual([])
  expect(await after.resolve?.(trace, limits)).toBe('unknown')
  // The server is the same by its name, so that alone would not have told.
  const { rows } = await raw.query('select system_identifier::text as system from pg_control_system()')
  expect(rows[0].system).toBe(trace['system'])
})
