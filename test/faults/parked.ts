// COMMIT that stands still: before its record is written, by a deferred trigger, until somebody lets it go.

import type pg from 'pg'
import type { PostgresTransaction } from '../../src/stores/postgres/index.js'
import { until } from '../servers/server-process.js'
import { effectOf } from './lanes.js'

/** Makes what parks a COMMIT; `raw` is the one who holds it up. */
export async function preparePark(raw: pg.Client): Promise<void> {
  await raw.query(`
    create table parked (id int);
    create function park() returns trigger language plpgsql as $$
      begin
        while not pg_try_advisory_xact_lock(7) loop perform pg_sleep(0.01); end loop;
        return null;
      end $$;
    create constraint trigger park after insert on parked deferrable initially deferred for each row execute function park()`)
}

/** From here on the COMMIT of {@link parkedEffect} stands still. */
export async function park(raw: pg.Client): Promise<void> {
  await raw.query('select pg_advisory_lock(7)')
}

/** Lets go whoever stands still. */
export async function letGo(raw: pg.Client): Promise<void> {
  await raw.query('select pg_advisory_unlock_all()')
}

/** The effect of an intent, and something that makes its COMMIT stand still. */
export function parkedEffect(intent: string): (tx: PostgresTransaction<pg.PoolClient>) => Promise<string> {
  return async (tx) => {
    const result = await effectOf(intent)(tx)
    await tx.query('insert into parked values (1)')
    return result
  }
}

/** Waits until a COMMIT is under way, and gives the backends that work on one. */
export async function committing(raw: pg.Client): Promise<number[]> {
  let pids: number[] = []
  await until(async () => {
    const { rows } = await raw.query<{ pid: number }>(
      `select pid from pg_stat_activity where datname = current_database() and query like '%COMMIT' and state = 'active'`,
    )
    pids = rows.map(({ pid }) => pid)
    return pids.length > 0
  }, 'a COMMIT is under way')
  return pids
}
