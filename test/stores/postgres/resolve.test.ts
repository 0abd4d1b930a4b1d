// What became of a transaction without a key, asked on the server that ran it, and refused where it cannot know.

import { beforeAll, describe, expect, it } from 'vitest'
import { begun, postgresWorld, until, untilWaiting, type World } from './world.js'

let world: World
beforeAll(async () => {
  world = await postgresWorld()
})

const resolve = (trace: Readonly<Record<string, string>> | undefined, waitMs = 60_000) =>
  world.engine.resolve?.(trace ?? {}, { waitMs, readOnly: false })

async function ended(how: 'commit' | 'rollback') {
  const { session, tx } = await begun(world.engine)
  await tx.query('insert into item (id) values (gen_random_uuid()::text)')
  await session[how]()
  session.release('keep')
  return session.trace as Readonly<Record<string, string>>
}

describe('a trace', () => {
  it('leads to what became of it', async () => {
    expect(await resolve(await ended('commit'))).toBe('committed')
    expect(await resolve(await ended('rollback'))).toBe('aborted')
  })

  it('of another server, timeline or future says nothing', async () => {
    const trace = await ended('commit')
    expect(await resolve({ ...trace, system: '1' })).toBe('unknown')
    expect(await resolve({ ...trace, timeline: '00000002' })).toBe('unknown')
    expect(await resolve({ ...trace, xid: '999999999' })).toBe('unknown')
    expect(await resolve({})).toBe('unknown')
  })

  it('of a transaction whose past is forgotten says nothing', async () => {
    const trace = await ended('commit')
    // Older than what the server was made with.
    expect(await resolve({ ...trace, xid: '3' })).toBe('unknown')
  })

  it('of a transaction that stays open ends its backend, and then knows', async () => {
    const { session, tx } = await begun(world.engine)
    await tx.query("insert into item (id) values ('left open')")
    expect(await resolve(session.trace)).toBe('aborted')
    await until('the handle is poisoned', () => session.poisoned !== undefined)
    session.release('discard')
  })

  it('of a transaction that stays open is not used against another session', async () => {
    const { session, tx } = await begun(world.engine)
    await tx.query("insert into item (id) values ('innocent')")
    const trace = session.trace ?? {}
    expect(await resolve({ ...trace, start: '1' }, 2_000)).toBe('unknown')
    expect(session.poisoned).toBeUndefined()
    await session.commit()
    session.release('keep')
  })

  it('waits for a COMMIT that is on its way', async () => {
    // A deferred trigger keeps COMMIT busy before its record.
    await world.raw.query(`
      create table slow (id int);
      create function wait_at_commit() returns trigger language plpgsql as 'begin perform pg_advisory_xact_lock(7); return null; end';
      create constraint trigger slow after insert on slow deferrable initially deferred for each row execute function wait_at_commit();
      select pg_advisory_lock(7)`)
    const { session, tx } = await begun(world.engine)
    await tx.query('insert into slow values (1)')
    const committing = session.commit()
    await untilWaiting(world.raw)
    const resolving = resolve(session.trace, 60_000)
    await world.raw.query('select pg_advisory_unlock(7)')
    expect(await resolving).toBe('committed')
    await committing
    session.release('keep')
  })

  it('asked on a connection that is lost meanwhile is an error, and does not end the process', async () => {
    const { session, tx } = await begun(world.engine)
    await tx.query("insert into item (id) values ('resolver killed')")
    const resolving = resolve({ ...session.trace, start: '1' }, 60_000)?.catch((error: unknown) => error)
    await until('the one who asks is killed between two looks', async () => {
      const { rows } = await world.raw.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where query like '%pg_xact_status($1%' and state = 'idle' and pid <> pg_backend_pid() and datname = current_database()",
      )
      return rows.length > 0
    })
    expect(world.engine.classify(await resolving, 'connecting')).toMatchObject({
      help: 'transient',
      connection: 'discard',
    })
    await session.rollback()
    session.release('keep')
  })
})
