// A store that is away for a while, and one whose disk is full.

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import Database from 'libsql'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hold, leased, type Operations } from '../../src/idempotency/index.js'
import { mintKey } from '../../src/identity/index.js'
import { constantDelay } from '../../src/retry/index.js'
import { postgres } from '../../src/stores/postgres/index.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import type { TransactionAttemptEvent } from '../../src/telemetry/index.js'
import { commits, postgresProxy } from '../../src/testing/index.js'
import { transactionHistoryOf } from '../../src/transaction/index.js'
import { type Postgres, startPostgres, withClient } from '../servers/postgres.js'
import { until } from '../servers/server-process.js'
import { identity, type Order } from '../stores/operations/worlds.js'
import { freshFile } from '../stores/sqlite/files.js'

let server: Postgres
beforeAll(async () => {
  server = await startPostgres({ fsync: false })
})
afterAll(() => server.dispose())

const events: TransactionAttemptEvent[] = []
const heard = (event: unknown): void => void events.push(event as TransactionAttemptEvent)
beforeAll(() => subscribe('reprise.transaction.attempt', heard))
afterAll(() => void unsubscribe('reprise.transaction.attempt', heard))

const caught = (work: Promise<unknown>): Promise<{ code?: unknown; message?: string; cause?: { code?: unknown } }> =>
  work.then(
    () => ({ code: 'fulfilled' }),
    (error) => error,
  )

function charging(store: Operations<never> & Parameters<typeof leased>[1]['store']) {
  return leased<Order, number>('charge', { ...identity, store, lease: '60s', recover: hold(), run: async () => 1 })
}

describe('a server that is not up', () => {
  it('is asked until the deadline, and then named, with what the driver said', async () => {
    const pool = new pg.Pool({ connectionString: server.url })
    const db = postgres({ pool, name: 'payments', backoff: constantDelay(50) })
    await db.migrate()
    await server.stop('fast')
    const error = await caught(db.transact(async () => 1, { deadline: '6s' }))
    expect(error).toMatchObject({ code: 'STORE_UNREACHABLE', cause: { code: 'ECONNREFUSED' } })
    expect(error.message).toMatch(/The store payments could not be reached: .*ECONNREFUSED/)
    expect(transactionHistoryOf(error)).toMatchObject({ because: 'deadline' })
    // Eight transactions may be tried; none was begun.
    expect(transactionHistoryOf(error)?.attempts.length).toBeGreaterThan(8)
    expect(await caught(charging(db)({ key: mintKey(), amount: 5 }, { deadline: '2s' }))).toMatchObject({
      code: 'STORE_UNREACHABLE',
      cause: { code: 'ECONNREFUSED' },
    })
    // It comes back within the deadline of a call.
    const patient = db.transact(async (tx) => (await tx.query('select 1 as one')).rows, { deadline: '60s' })
    const failed = events.length
    await until(() => events.length > failed + 2, 'it has been tried in vain')
    await server.restart()
    expect(await patient).toEqual([{ one: 1 }])
    // No body failed, so nothing was taken from the budget.
    expect(db.budget?.full).toBe(true)
    await pool.end()
  })
})

describe('COMMIT that is not answered', () => {
  it('of a transaction that only reads ends with the deadline, and not with a limit of ours', async () => {
    const proxy = await postgresProxy({ upstream: { host: server.host, port: server.port } })
    const pool = new pg.Pool({ host: proxy.host, port: proxy.port, user: 'postgres', database: 'postgres' })
    const db = postgres({ pool, name: 'silent' })
    // So that a connection is there.
    await db.transact((tx) => tx.query('select 1'), { connectionWait: '20s', deadline: '60s' })
    const armed = proxy.arm({ statement: commits, at: 'before-answer', action: 'black-hole' })
    const error = await caught(
      db.transact(async (tx) => (await tx.query('select 1')).rows, { readOnly: true, deadline: '2s' }),
    )
    expect(armed.fired).toHaveLength(1)
    expect(error).toMatchObject({ code: 'DEADLINE_EXCEEDED', cause: { code: 'COMMIT_TIMEOUT' } })
    await proxy.close()
    await pool.end()
  })
})

describe('a full disk', () => {
  const named = { domain: 'full', operation: 'charge', id: expect.stringMatching(/^sha256:/) }

  it('of PostgreSQL ends a leased call at once, with an alarm that names operation and record', async () => {
    const pool = new pg.Pool({ connectionString: server.url })
    const db = postgres({ pool, name: 'full' })
    await db.migrate()
    await withClient(server.url, (client) =>
      client.query(`
        create function no_room() returns trigger language plpgsql as
          'begin raise exception using errcode = ''53100'', message = ''No space left on device''; end';
        create trigger no_room before insert on reprise_marker for each row execute function no_room()`),
    )
    events.length = 0
    const error = await caught(charging(db)({ key: mintKey(), amount: 5 }, { deadline: '300s' }))
    expect(error).toMatchObject({ code: 'STORE_FULL', cause: { code: '53100' } })
    expect(events).toMatchObject([{ ...named, sign: '53100', alarm: true, stop: 'permanent' }])
    // The same where the claim was written, and its outcome finds no room.
    await withClient(server.url, (client) =>
      client.query(`
        drop trigger no_room on reprise_marker;
        create trigger no_room before update on reprise_marker for each row execute function no_room()`),
    )
    events.length = 0
    await caught(charging(postgres({ pool, name: 'full' }))({ key: mintKey(), amount: 5 }, { deadline: '4s' }))
    expect(events[0]).toMatchObject({ ...named, sign: '53100', alarm: true })
    await pool.end()
  })

  it('of SQLite ends a leased call at once, with an alarm that names operation and record', async () => {
    const file = freshFile()
    const roomy = sqlite({ name: 'roomy', file })
    await roomy.migrate()
    await roomy.close()
    const db = sqlite({
      name: 'full',
      open: () => {
        const handle = new Database(file)
        handle.exec('PRAGMA max_page_count = 1')
        return handle
      },
    })
    events.length = 0
    const charge = charging(db)
    const errors: unknown[] = []
    for (let n = 0; n < 400 && errors.length === 0; n += 1) {
      await charge({ key: mintKey(), amount: 5 }, { deadline: '300s' }).catch((error) => errors.push(error))
    }
    expect(errors).toMatchObject([{ code: 'STORE_FULL' }])
    expect(events).toMatchObject([{ ...named, sign: 'SQLITE_FULL', alarm: true }])
    await db.close()
  })
})
