// The effect guard on the store's own pool: what the program writes through it past the open transaction.

import '../../../src/transaction/effect-guard/register.js'
import { subscribe } from 'node:diagnostics_channel'
import { drizzle } from 'drizzle-orm/node-postgres'
import { integer, pgTable, text } from 'drizzle-orm/pg-core'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { mintKey, scope } from '../../../src/identity/index.js'
import { isRepriseError } from '../../../src/kernel/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { type TransactionEffectEvent, transactionEffect } from '../../../src/telemetry/index.js'
import { barrier } from '../../../src/testing/index.js'
import { allowEffect } from '../../../src/transaction/index.js'
import { codeOf, postgresWorld, until, type World } from './world.js'

const told: TransactionEffectEvent[] = []
let world: World
let small: pg.Pool
beforeAll(async () => {
  world = await postgresWorld()
  small = new pg.Pool({ connectionString: world.url, max: 2 })
  subscribe(transactionEffect.name, (event) => told.push(event as TransactionEffectEvent))
})
afterAll(() => small.end())
beforeEach(async () => {
  told.length = 0
  await world.raw.query('delete from item')
})

const item = pgTable('item', {
  id: text('id').primaryKey(),
  state: text('state').notNull(),
  amount: integer('amount').notNull(),
})
const row = (id: string) => ({ id, state: 'new', amount: 1 })
const ids = async () => (await world.raw.query('select id from item order by id')).rows.map(({ id }) => id)
const insert = "insert into item (id) values ('past')"

type Way = (pool: pg.Pool) => Promise<unknown>
const ways: Record<string, Way> = {
  'pool.query': (pool) => pool.query(insert),
  'pool.query with values': (pool) => pool.query({ text: 'insert into item (id) values ($1)', values: ['past'] }),
  'pool.query with a callback': (pool) =>
    new Promise((resolve, reject) => {
      pool.query(insert, (error: Error | undefined) => (error ? reject(error) : resolve(undefined)))
    }),
  'a client of the pool': async (pool) => {
    const client = await pool.connect()
    try {
      await client.query('begin')
      await client.query(insert)
      await client.query('commit')
    } finally {
      client.release()
    }
  },
  'a client by a callback': (pool) =>
    new Promise((resolve, reject) => {
      pool.connect((error, client, release) => {
        if (error !== undefined || client === undefined) return reject(error)
        client.query(insert).then(resolve, reject).finally(release)
      })
    }),
  'Drizzle on the pool': async (pool) => drizzle(pool).insert(item).values(row('past')),
  'a transaction of Drizzle on the pool': (pool) =>
    drizzle(pool).transaction((inner) => inner.insert(item).values(row('past'))),
  'Kysely on the pool': (pool) =>
    new Kysely<{ item: ReturnType<typeof row> }>({ dialect: new PostgresDialect({ pool }) })
      .insertInto('item')
      .values(row('past'))
      .execute(),
}

it('a SELECT that makes a table is a write', async () => {
  const make = () => world.pool.query('select 1 as a into made')
  const there = async () => (await world.raw.query("select to_regclass('made')::text as made")).rows[0].made
  await expect(world.db.transact(make)).rejects.toMatchObject({
    code: 'EFFECT_IN_TRANSACTION',
    details: { by: 'query', statement: 'select into' },
  })
  expect(await there()).toBeNull()
  await make()
  expect(await there()).toBe('made')
})

describe.each(Object.entries(ways))('a write by %s inside a transaction', (_name, write) => {
  it('is stopped, told, and the transaction does not commit, also where the body swallows it', async () => {
    let seen: unknown
    const work = world.db.transact(async (tx) => {
      await tx.query("insert into item (id) values ('mine')")
      seen = await write(world.pool).catch((error: unknown) => error)
    })
    await expect(work).rejects.toMatchObject({
      code: 'EFFECT_IN_TRANSACTION',
      details: { domain: 'test', by: 'query', left: false, statement: 'insert' },
    })
    let refusal = seen
    while (refusal instanceof Error && !isRepriseError(refusal)) refusal = refusal.cause
    expect(refusal).toMatchObject({ code: 'EFFECT_IN_TRANSACTION' })
    expect((refusal as Error).message).toContain('(INSERT)')
    expect((refusal as Error).message).not.toContain("'past'")
    expect(told).toEqual([{ domain: 'test', by: 'query', statement: 'insert', decision: 'refused' }])
    expect(await ids()).toEqual([])
  })

  it('is left alone outside of it, and with permission, which is told', async () => {
    await write(world.pool)
    expect([await ids(), told]).toEqual([['past'], []])
    await world.raw.query('delete from item')
    await world.db.transact(() => allowEffect('a note', () => write(world.pool)))
    expect(await ids()).toEqual(['past'])
    expect(told).toEqual([{ domain: 'test', by: 'query', statement: 'insert', decision: 'allowed', reason: 'a note' }])
  })
})

describe('what is not told', () => {
  it('reads past the transaction', async () => {
    await world.db.transact(async (tx) => {
      await tx.query('select 1')
      await world.pool.query('select count(*) from item')
      await world.pool.query('with a as (select 1) select * from a; show search_path')
      await drizzle(world.pool).select().from(item)
    })
    expect(told).toEqual([])
  })

  it('everything that goes through tx, and what Reprise itself asks the pool for', async () => {
    const db = postgres({ pool: world.pool, name: 'test', bind: (_client, pool) => drizzle(pool) })
    // The program had every connection in hand before.
    await Promise.all(Array.from({ length: 6 }, () => world.pool.query('select pg_sleep(0.05)')))
    await db.transact(async (tx) => {
      await tx.query("insert into item (id) values ('one')")
      await tx.db.insert(item).values(row('two'))
      await tx.db.transaction((inner) => inner.insert(item).values(row('three')))
      await tx.savepoint(() => tx.insertOnce('item', { id: 'four' }, ['id']))
    })
    const pay = db.operation('pay', {
      scope: () => scope('tenant', 'pay'),
      key: ({ key }: { key: ReturnType<typeof mintKey> }) => key,
      window: '1h',
      run: async (tx) => {
        await tx.query("insert into item (id) values ('five')")
        return 5
      },
    })
    const input = { key: mintKey() }
    expect([await pay(input), await pay(input)]).toEqual([5, 5])
    // Half-way through a wait for a lock another connection is asked who holds it.
    await world.raw.query("begin; update item set amount = 7 where id = 'one'")
    const blocked = db.transact((tx) => tx.query("update item set amount = 8 where id = 'one'"), {
      attempts: 1,
      lockWait: '1s',
    })
    const timedOut: unknown = await blocked.catch((error: unknown) => error)
    await world.raw.query('rollback')
    expect(timedOut).toMatchObject({ code: 'LOCK_TIMEOUT', blockers: [{}] })
    await db.doctor()
    expect(told).toEqual([])
    expect(await ids()).toEqual(['five', 'four', 'one', 'three', 'two'])
  })

  it('writes of other requests beside an open transaction, also those that wait for its connections', async () => {
    const db = postgres({ pool: small, name: 'small' })
    await db.transact((tx) => tx.query('select 1'))
    const open = barrier(2)
    let others: Promise<unknown>[] = []
    const transaction = db.transact(async (tx) => {
      await tx.query("insert into item (id) values ('mine')")
      const held = await small.connect()
      await open.arrive()
      await until('somebody waits for a connection', () => small.waitingCount >= 2)
      // The pool hands it to who waits, in the context of this body.
      held.release()
      await until('the others are through', () => small.waitingCount === 0)
    })
    await open.arrive()
    others = ['by query', 'by callback', 'by client'].map(async (id) => {
      const statement = `insert into item (id) values ('${id}')`
      if (id === 'by query') return small.query(statement)
      if (id === 'by callback') {
        return new Promise((resolve) => {
          small.connect((_error, client, release) => {
            client?.query(statement, () => {
              release()
              resolve(undefined)
            })
          })
        })
      }
      const client = await small.connect()
      await client.query(statement)
      return client.release()
    })
    await Promise.all([transaction, ...others])
    expect(told).toEqual([])
    expect(await ids()).toEqual(['by callback', 'by client', 'by query', 'mine'])
  })

  it('anything where the domain ignores effects', async () => {
    const db = postgres({ pool: world.pool, name: 'ignores', effects: 'ignore' })
    await db.transact(() => world.pool.query(insert))
    expect([await ids(), told]).toEqual([['past'], []])
  })
})

it('stops a write even where the pool has no connection left for it', async () => {
  const one = new pg.Pool({ connectionString: world.url, max: 1 })
  const db = postgres({ pool: one, name: 'one' })
  expect(await codeOf(db.transact(() => one.query(insert)))).toBe('EFFECT_IN_TRANSACTION')
  await one.end()
})
