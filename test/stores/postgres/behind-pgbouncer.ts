// Errors that a real pooler makes up when the server behind it goes away.

import pg from 'pg'
import type { Phase } from '../../../src/atomicity/index.js'
import { startPgbouncer } from '../../servers/pgbouncer.js'
import { startPostgres } from '../../servers/postgres.js'
import { begun, engineOn, untilWaiting } from './world.js'

/** A table whose writers wait at COMMIT for the advisory lock 7. */
export const slowTable = `create table slow (id int);
  create function wait_at_commit() returns trigger language plpgsql as 'begin perform pg_advisory_xact_lock(7); return null; end';
  create constraint trigger slow after insert on slow deferrable initially deferred for each row execute function wait_at_commit()`

const caught = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => new Error('there was no error'),
    (error: unknown) => error,
  )

/** What PgBouncer makes of a server that went away: under an open transaction, or before there is one. */
export const behindPgbouncer =
  (phase: 'body' | 'connecting' | 'committing') => async (): Promise<readonly [error: unknown, phase: Phase]> => {
    const server = await startPostgres({ fsync: false })
    const bouncer = await startPgbouncer({
      mode: 'transaction',
      upstream: server,
      settings: { server_login_retry: '0', query_wait_timeout: '1' },
    })
    const pool = new pg.Pool({ connectionString: bouncer.url('postgres'), max: 1 })
    try {
      if (phase === 'connecting') {
        const warm = await pool.connect()
        await server.stop('immediate')
        warm.release(true)
        return [await caught(begun(engineOn(pool))), phase]
      }
      const holder = phase === 'committing' ? await parkCommits(server.url) : undefined
      const { session, tx } = await begun(engineOn(pool))
      const pid = (await tx.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid ?? 0
      if (holder !== undefined) await tx.query('insert into slow values (1)')
      const waiting = caught(holder !== undefined ? session.commit() : tx.query('select pg_sleep(60)'))
      if (holder !== undefined) await untilWaiting(holder)
      server.signalBackend(pid, 'SIGKILL')
      const error = await waiting
      session.release('discard')
      return [error, phase]
    } finally {
      await pool.end()
      await bouncer.dispose()
      await server.dispose()
    }
  }

/**
 * Lets COMMIT of what wrote into `slow` wait for as long as the server lives; the one who holds it up can look at it.
 */
async function parkCommits(url: string): Promise<pg.Client> {
  const holder = new pg.Client(url)
  holder.on('error', () => undefined)
  await holder.connect()
  await holder.query(slowTable)
  await holder.query('select pg_advisory_lock(7)')
  return holder
}
