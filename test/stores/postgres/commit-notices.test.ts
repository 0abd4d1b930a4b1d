// What a server says beside its answer to COMMIT, held open by a replica that never comes.

import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgres } from '../../../src/stores/postgres/index.js'
import { type Postgres, startPostgres } from '../../servers/postgres.js'
import { begun, engineOn, until } from './world.js'

let server: Postgres
let pool: pg.Pool
let raw: pg.Client
beforeAll(async () => {
  server = await startPostgres()
  pool = new pg.Pool({ connectionString: server.url })
  raw = new pg.Client(server.url)
  raw.on('error', () => undefined)
  await raw.connect()
  await postgres({ pool, name: 'replicated' }).migrate()
  await raw.query('create table item (id text primary key)')
  await raw.query("set synchronous_commit = 'local'")
  await waitForReplicas()
})
afterAll(async () => {
  await pool.end()
  await raw.end().catch(() => undefined)
  await server.dispose()
})

// A process of the server's own reads the setting and tells the others, some time after the reload: from then on COMMIT
// waits.
async function waitForReplicas(): Promise<void> {
  await raw.query("alter system set synchronous_standby_names = 'nosuch'")
  await raw.query('select pg_reload_conf()')
  const probe = new pg.Client(server.url)
  await probe.connect()
  const { rows } = await probe.query('select pg_backend_pid() as pid')
  await until('the server waits for replicas', async () => {
    let isOver = false
    const probing = probe.query('create table probe (); drop table probe').finally(() => {
      isOver = true
    })
    while (!isOver && !(await waitsForReplica(rows[0].pid))) await new Promise((resolve) => setTimeout(resolve, 2))
    const waits = !isOver
    if (waits) await raw.query('select pg_cancel_backend($1)', [rows[0].pid])
    await probing
    return waits
  })
  await probe.end()
}

async function waitsForReplica(pid: unknown): Promise<boolean> {
  const { rows } = await raw.query("select 1 from pg_stat_activity where pid = $1 and wait_event = 'SyncRep'", [pid])
  return rows.length === 1
}

async function heldCommit(id: string) {
  const engine = engineOn(pool)
  const { session, tx } = await begun(engine)
  await tx.query('insert into item values ($1)', [id])
  const committing = session.commit().then(
    (receipt) => ({ receipt, error: undefined }),
    (error: unknown) => ({ receipt: undefined, error }),
  )
  const pid = session.trace?.['pid']
  await until('COMMIT waits for the replica', () => waitsForReplica(pid))
  return { engine, session, committing, pid }
}

const stored = async (id: string) => (await raw.query('select 1 from item where id = $1', [id])).rows.length

describe('COMMIT that waits for a replica', () => {
  it('and is cancelled has happened, here alone', async () => {
    const { session, committing, pid } = await heldCommit('cancelled')
    await raw.query('select pg_cancel_backend($1)', [pid])
    expect((await committing).receipt).toEqual({ durability: 'local' })
    session.release('keep')
    expect(await stored('cancelled')).toBe(1)
  })

  it('and is ended by an operator has to be resolved, and has happened', async () => {
    const { engine, session, committing, pid } = await heldCommit('terminated')
    await raw.query('select pg_terminate_backend($1)', [pid])
    const { error } = await committing
    expect(engine.classify(error, 'committing')).toMatchObject({ outcome: 'unknown', connection: 'discard' })
    session.release('discard')
    const resolve = (waitMs: number) => engine.resolve?.(session.trace ?? {}, { waitMs, readOnly: false })
    // It is here alone, and counts when a replica has it, or none is waited for any more.
    await pool.query('select 1') // so that a connection is there
    await expect(resolve(1_500)).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(await stored('terminated')).toBe(1)
    await raw.query('alter system reset synchronous_standby_names')
    await raw.query('select pg_reload_conf()')
    expect(await resolve(60_000)).toBe('committed')
    await waitForReplicas()
  })

  it('and dies with a neighbour, whom the server says it rolled back, has happened all the same', async () => {
    const { engine, session, committing } = await heldCommit('neighbour')
    const neighbour = new pg.Client(server.url)
    neighbour.on('error', () => undefined)
    await neighbour.connect()
    const { rows } = await neighbour.query('select pg_backend_pid() as pid')
    server.signalBackend(rows[0].pid, 'SIGKILL')
    const { error } = await committing
    expect(engine.classify(error, 'committing')).toMatchObject({ outcome: 'unknown', sign: 'connection-lost' })
    session.release('discard')
    await neighbour.end().catch(() => undefined)
    await raw.end().catch(() => undefined)
    raw = new pg.Client(server.url)
    await until('the server is back', async () => {
      raw = new pg.Client(server.url)
      raw.on('error', () => undefined)
      return raw.connect().then(
        () => true,
        () => false,
      )
    })
    // After a crash the number may belong to somebody else, so without a key nobody knows.
    expect(await engine.resolve?.(session.trace ?? {}, { waitMs: 60_000, readOnly: false })).toBe('unknown')
    expect(await stored('neighbour')).toBe(1)
  })
})

describe('a warning of a trigger at COMMIT', () => {
  it('is not taken for a replica that was not waited for', async () => {
    await raw.query(`
      alter system reset synchronous_standby_names; `)
    await raw.query('select pg_reload_conf()')
    await raw.query(`
      create function warn() returns trigger language plpgsql as 'begin raise warning $$careful$$; return null; end';
      create constraint trigger warn after insert on item deferrable initially deferred for each row execute function warn()`)
    const { session, tx } = await begun(engineOn(pool))
    await tx.query("insert into item values ('warned')")
    expect(await session.commit()).toEqual({ durability: 'promised' })
    session.release('keep')
  })
})
