// The key of one transaction on a real server: its claim goes out with BEGIN, its outcome with COMMIT, and neither can
// be passed by.

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import type { BeginSettings, RecordDraft, RecordOutcome } from '../../../src/atomicity/index.js'
import type { StoredKey } from '../../../src/identity/index.js'
import { mintKey, scope } from '../../../src/identity/index.js'
import { type TransactionAttemptEvent, transactionAttempt } from '../../../src/telemetry/index.js'
import { begun, codeOf, engineOn, postgresWorld, until, untilWaiting, type World, warm } from './world.js'

let world: World
beforeAll(async () => {
  world = await postgresWorld()
})

const key = (name: string) => name as StoredKey
const draft = (token = 'a token'): RecordDraft => ({ mode: 'atomic', token })
const outcome = (value: string): RecordOutcome => ({
  state: 'succeeded',
  value,
  rememberedMs: Number.POSITIVE_INFINITY,
})
const items = async () => (await world.raw.query('select id from item order by id')).rows.map(({ id }) => id)

/** A session whose claim went out with BEGIN: on a connection that is known, and whose statements are written down. */
async function begunWith(id: string, settings: Partial<BeginSettings> = {}, given: RecordDraft = draft()) {
  const first = await begun(world.engine)
  await first.session.rollback()
  first.session.release('keep')
  const texts: string[] = []
  const clients = (world.pool as unknown as { _clients: { query(...values: unknown[]): unknown }[] })._clients
  for (const client of clients) {
    const { query } = client
    client.query = (...values) => {
      texts.push(typeof values[0] === 'string' ? values[0] : String((values[0] as { text?: string }).text))
      return Reflect.apply(query, client, values)
    }
  }
  const claim = { id: key(id), draft: given }
  return { ...(await begun(world.engine, { traced: false, claim, ...settings })), claim, texts }
}

describe('a claim', () => {
  it('is stored with its outcome, and found by the next one', async () => {
    const first = await begun(world.engine)
    expect(await first.session.claim(key('k1'), draft())).toBe('claimed')
    await first.session.record(key('k1'), outcome('{"a":1}'))
    await first.session.commit()
    first.session.release('keep')
    const second = await begun(world.engine)
    expect(await second.session.claim(key('k1'), draft('another'))).toMatchObject({
      record: {
        format: 2,
        version: 1,
        mode: 'atomic',
        state: 'succeeded',
        token: 'a token',
        value: '{"a":1}',
        claims: 1,
      },
    })
    await second.session.rollback()
    second.session.release('keep')
    const { rows } = await world.raw.query(
      "select format, claimed_at_ms > 1600000000000 as dated, completed_at_ms >= claimed_at_ms as ended, expires_at_ms from reprise_marker where id = 'k1'",
    )
    expect(rows).toEqual([{ format: 2, dated: true, ended: true, expires_at_ms: null }])
  })

  it('waits for one that is still open, and takes over where that rolls back', async () => {
    const first = await begun(world.engine)
    await first.session.claim(key('k2'), draft())
    const second = await begun(world.engine)
    const waiting = second.session.claim(key('k2'), draft())
    await untilWaiting(world.raw)
    await first.session.rollback()
    first.session.release('keep')
    expect(await waiting).toBe('claimed')
    await second.session.rollback()
    second.session.release('keep')
  })

  it('waits no longer than it may', async () => {
    const first = await begun(world.engine)
    await first.session.claim(key('k3'), draft())
    const second = await begun(world.engine, { lockWaitMs: 200 })
    await expect(second.session.claim(key('k3'), draft())).rejects.toMatchObject({
      code: 'LOCK_TIMEOUT',
      cause: { code: '55P03' },
    })
    for (const { session } of [first, second]) {
      await session.rollback()
      session.release('keep')
    }
  })

  it('hands out a marker without an outcome as it is, and records nothing for a key that was not claimed', async () => {
    await world.raw.query("insert into reprise_marker (id, claimed_at_ms) values ('k4', 0)")
    const { session } = await begun(world.engine)
    expect(await session.claim(key('k4'), draft())).toMatchObject({ record: { format: 1, value: undefined } })
    expect(await codeOf((async () => session.record(key('k5'), outcome('1')))())).toBe('MARKER_INVALID')
    await session.rollback()
    session.release('keep')
  })

  it('takes the place of a record of a version, once', async () => {
    await world.raw.query("insert into reprise_marker (id, claimed_at_ms, value) values ('k6', 0, 'old')")
    const old = { version: 1, token: undefined, fence: undefined }
    const first = await begun(world.engine)
    expect(await first.session.reclaim(key('k6'), { ...old, token: 'other' }, draft())).toBe(false)
    expect(await first.session.reclaim(key('k6'), { ...old, version: 2 }, draft())).toBe(false)
    expect(await first.session.reclaim(key('k6'), old, draft())).toBe(true)
    const second = await begun(world.engine)
    const waiting = second.session.reclaim(key('k6'), old, draft('second'))
    await untilWaiting(world.raw)
    await first.session.record(key('k6'), outcome('new'))
    await first.session.commit()
    expect(await waiting).toBe(false)
    await second.session.rollback()
    for (const { session } of [first, second]) session.release('keep')
    const { rows } = await world.raw.query("select format, version, value from reprise_marker where id = 'k6'")
    expect(rows).toEqual([{ format: 2, version: 2, value: 'new' }])
  })
})

describe('a claim that goes out with BEGIN', () => {
  it('makes three messages of a transaction around one statement', async () => {
    const { session, tx, claim, texts } = await begunWith('m1')
    expect(await session.claim(claim.id, claim.draft)).toBe('claimed')
    await tx.query("insert into item (id) values ('m1')")
    await session.record(claim.id, outcome('"it\'s \\ 1 \u{1f600}"'))
    expect(await session.commit()).toEqual({ durability: 'promised' })
    session.release('keep')
    expect(texts).toHaveLength(3)
    const { rows } = await world.raw.query("select state, value from reprise_marker where id = 'm1'")
    expect(rows).toEqual([{ state: 'succeeded', value: '"it\'s \\ 1 \u{1f600}"' }])
  })

  it('that conflicts leaves no way to run the body', async () => {
    await world.raw.query("insert into reprise_marker (id, claimed_at_ms, value) values ('m2', 0, '1')")
    for (const asked of [false, true]) {
      const { session, tx, claim } = await begunWith('m2')
      if (asked) expect(await session.claim(claim.id, claim.draft)).toMatchObject({ record: { value: '1' } })
      expect(await codeOf(tx.query("insert into item (id) values ('m2')"))).toBe('MARKER_INVALID')
      expect(await codeOf(tx.db.query("insert into item (id) values ('m2')"))).toBe('MARKER_INVALID')
      expect(await codeOf(tx.insertOnce('item', { id: 'm2' }, ['id']))).toBe('MARKER_INVALID')
      expect(await codeOf(tx.savepoint(async () => undefined))).toBe('MARKER_INVALID')
      expect(await codeOf(session.commit())).toBe('MARKER_INVALID')
      await session.rollback()
      session.release('keep')
    }
    expect(await items()).not.toContain('m2')
  })

  it('that went through must be asked for before the body', async () => {
    const { session, tx, claim } = await begunWith('m3')
    expect(await codeOf(tx.query('select 1'))).toBe('MARKER_INVALID')
    expect(await codeOf(Promise.resolve(session.claim(key('other'), claim.draft)))).toBe('MARKER_INVALID')
    await session.rollback()
    session.release('keep')
  })

  it('tells a lock that was not granted as a claim does, with who held it', async () => {
    const first = await begun(world.engine)
    await first.session.claim(key('m4'), draft())
    await warm(world.pool)
    const { session, tx, claim } = await begunWith('m4', { lockWaitMs: 2_000 })
    const error = await Promise.resolve(session.claim(claim.id, claim.draft)).catch((error: unknown) => error)
    expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', cause: { code: '55P03' }, blockers: [{}] })
    expect(world.engine.classify(error, 'body')).toMatchObject({ help: 'transient', connection: 'keep' })
    expect(session.poisoned?.error).toBe(error)
    await expect(tx.query('select 1')).rejects.toBeDefined()
    for (const one of [first.session, session]) {
      await one.rollback()
      one.release('keep')
    }
  })

  it('waits only as long as the claim may, and then as long as others do', async () => {
    const first = await begun(world.engine)
    await first.session.claim(key('m5'), draft())
    const waitMs = 2_000
    await warm(world.pool)
    const short = await begunWith('m5', { lockWaitMs: 60_000, claim: { id: key('m5'), draft: draft(), waitMs } })
    const error = await Promise.resolve(short.session.claim(key('m5'), draft())).catch((error: unknown) => error)
    expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', blockers: [{}] })
    expect(world.engine.classify(error, 'body')).toMatchObject({ blocked: true })
    const free = await begunWith('m6', { lockWaitMs: 1_234, claim: { id: key('m6'), draft: draft(), waitMs } })
    expect(await free.session.claim(key('m6'), draft())).toBe('claimed')
    expect((await free.tx.query('show lock_timeout')).rows).toEqual([{ lock_timeout: '1234ms' }])
    // Before anything is known of the connection, and in the place of a record.
    await world.raw.query("insert into reprise_marker (id, claimed_at_ms) values ('m7', 0)")
    const old = { version: 1, token: undefined, fence: undefined }
    const pool = new pg.Pool({ connectionString: world.url, max: 1 })
    const claim = { id: key('m7'), draft: draft(), waitMs }
    const fresh = await begun(engineOn(pool), { lockWaitMs: 60_000, claim })
    expect(await fresh.session.claim(key('m7'), draft())).toMatchObject({ record: { format: 1 } })
    expect(await first.session.reclaim(key('m7'), old, draft())).toBe(true)
    expect(await codeOf(fresh.session.reclaim(key('m7'), old, draft()))).toBe('LOCK_TIMEOUT')
    for (const { session } of [first, short, free, fresh]) {
      await session.rollback()
      session.release('keep')
    }
    await pool.end()
  })

  it('tells a lock on the whole table from the key’s', async () => {
    const holder = new pg.Client({ connectionString: world.url })
    await holder.connect()
    await holder.query('begin; lock reprise_marker in share mode')
    const { session, claim } = await begunWith('m8', { claim: { id: key('m8'), draft: draft(), waitMs: 1 } })
    const error = await Promise.resolve(session.claim(claim.id, claim.draft)).catch((error: unknown) => error)
    expect(error).toMatchObject({ code: 'LOCK_TIMEOUT' })
    const ruling = world.engine.classify(error, 'body')
    expect([ruling.help, ruling.blocked]).toEqual(['transient', undefined])
    await session.rollback()
    session.release('keep')
    await holder.end()
  })

  it.each(['repeatable-read', 'serializable'] as const)(
    'that loses a race at %s is a failed attempt, and the next one finds the result',
    async (isolation) => {
      const minted = { scope: scope('race'), key: mintKey() }
      let bodies = 0
      const body = async () => {
        bodies += 1
        await untilWaiting(world.raw)
        return bodies
      }
      const signs: string[] = []
      const onAttempt = (message: unknown) => signs.push((message as TransactionAttemptEvent).sign)
      subscribe(transactionAttempt.name, onAttempt)
      const call = () => world.db.transact(body, { content: 'none', key: minted, isolation })
      const [one, two] = await Promise.all([call(), call()])
      expect([one, two, bodies]).toEqual([1, 1, 1])
      unsubscribe(transactionAttempt.name, onAttempt)
      // The race was one: the loser waited, and was told so when the winner had committed.
      expect(signs).toEqual(['40001'])
    },
  )
})

describe('an outcome that goes out with COMMIT', () => {
  it('keeps a transaction from committing whose marker is gone', async () => {
    const { session, tx, claim } = await begunWith('o1')
    await session.claim(claim.id, claim.draft)
    await tx.query("insert into item (id) values ('o1')")
    await tx.query("delete from reprise_marker where id = 'o1'")
    await session.record(claim.id, outcome('1'))
    const error = await session.commit().catch((error: unknown) => error)
    expect(error).toMatchObject({ code: 'MARKER_INVALID', cause: { code: '22P02' } })
    expect(world.engine.classify(error, 'committing')).toMatchObject({ outcome: 'aborted', help: 'permanent' })
    await session.rollback()
    session.release('keep')
    expect(await items()).not.toContain('o1')
  })

  it('is not sent into a transaction that has failed, and COMMIT says so', async () => {
    const { session, claim } = await begunWith('o2')
    await session.claim(claim.id, claim.draft)
    await session.record(claim.id, outcome('1'))
    // A statement that the session did not see.
    const clients = (
      world.pool as unknown as { _clients: { query(text: string): Promise<unknown>; getTransactionStatus(): string }[] }
    )._clients
    for (const client of clients) {
      if (client.getTransactionStatus() !== 'T') continue
      await client.query('select 1/0').catch(() => undefined)
      // The server tells the error first, and that the transaction has failed in another message.
      await until('it has failed', () => client.getTransactionStatus() === 'E')
    }
    expect(await codeOf(session.commit())).toBe('COMMIT_ROLLED_BACK')
    session.release('keep')
  })

  it('is aborted with an error that COMMIT itself meets, and classified as that', async () => {
    await world.raw.query(
      'create table parent (id int primary key); create table child (id int references parent deferrable initially deferred)',
    )
    const { session, tx, claim } = await begunWith('o3')
    await session.claim(claim.id, claim.draft)
    await tx.query('insert into child values (1)')
    await session.record(claim.id, outcome('1'))
    const error = await session.commit().catch((error: unknown) => error)
    expect(error).toMatchObject({ code: '23503' })
    expect(world.engine.classify(error, 'committing')).toMatchObject({ outcome: 'aborted', help: 'permanent' })
    await session.rollback()
    session.release('keep')
    const { rows } = await world.raw.query("select 1 from reprise_marker where id = 'o3'")
    expect(rows).toEqual([])
  })

  it('is not sent where the connection is gone before', async () => {
    const { session, tx, claim } = await begunWith('o4')
    await session.claim(claim.id, claim.draft)
    const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid')
    await session.record(claim.id, outcome('1'))
    await world.raw.query('select pg_terminate_backend($1)', [rows[0]?.pid])
    await until('it is heard of', () => session.poisoned !== undefined)
    expect(await codeOf(session.commit())).toBe('TRANSACTION_ABORTED')
    session.release('discard')
  })
})
