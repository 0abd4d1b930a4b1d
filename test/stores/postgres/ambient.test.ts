// The ambient pool: a program that uses a pool everywhere is in the open transaction where there is one, and handlers
// that exist stay as they are.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { eq, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { integer, pgTable, text } from 'drizzle-orm/pg-core'
import express from 'express'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { idempotency } from '../../../src/http/express/index.js'
import { type PostgresDomain, postgres } from '../../../src/stores/postgres/index.js'
import { barrier } from '../../../src/testing/index.js'
import { patient, postgresWorld, type World } from './world.js'

let world: World
let db: PostgresDomain<pg.PoolClient, pg.Pool>
let pool: pg.Pool
beforeAll(async () => {
  world = await postgresWorld()
  db = postgres({ pool: world.pool, name: 'shop', ...patient })
  pool = db.ambient()
})
beforeEach(() => world.raw.query('delete from item'))

const ids = async () => (await world.raw.query('select id from item order by id')).rows.map(({ id }) => String(id))
const insert = (id: string) => pool.query('insert into item (id) values ($1)', [id])
const odd = new Error('odd')

it('is in the transaction of the code that asks it, and on the pool elsewhere', async () => {
  await insert('outside')
  await expect(
    db.transact(async () => {
      await insert('inside')
      expect((await pool.query('select count(*)::int as n from item')).rows).toEqual([{ n: 2 }])
      throw odd
    }),
  ).rejects.toBe(odd)
  expect(await ids()).toEqual(['outside'])
  await db.transact(() => insert('inside'))
  expect(await ids()).toEqual(['inside', 'outside'])
})

it('lends the connection of the transaction, on which BEGIN and COMMIT are savepoints', async () => {
  await db.transact(async () => {
    await insert('kept')
    const client = await pool.connect()
    await client.query('begin')
    await client.query("insert into item (id) values ('undone')")
    await client.query('rollback')
    client.release()
    await expect(client.query('select 1')).rejects.toMatchObject({ code: 'STATEMENT_UNSUPPORTED' })
  })
  expect(await ids()).toEqual(['kept'])
  const client = await pool.connect()
  expect(client).toBeInstanceOf(pg.Client)
  client.release()
})

it('refuses what a transaction has left running, and does not let it out to the pool', async () => {
  let late: Promise<unknown> | undefined
  let go: (() => void) | undefined
  const gate = new Promise<void>((resolve) => {
    go = resolve
  })
  await db.transact(async () => {
    late = gate.then(() => insert('late'))
    late.catch(() => undefined)
    await insert('in time')
  })
  go?.()
  await expect(late).rejects.toMatchObject({ code: 'TRANSACTION_OVER' })
  expect(await ids()).toEqual(['in time'])
})

it('tells callbacks why they are refused, and fails the transaction', async () => {
  for (const [name, call] of [
    ['query', (callback: (error: unknown) => void) => pool.query('select 1', callback as never)],
    ['connect', (callback: (error: unknown) => void) => pool.connect(callback as never)],
  ] as const) {
    const heard: unknown[] = []
    const running = db.transact(
      () =>
        new Promise((_resolve, reject) => {
          call((error) => {
            heard.push(error)
            reject(error)
          })
        }),
    )
    await expect(running, name).rejects.toMatchObject({ code: 'STATEMENT_UNSUPPORTED' })
    expect(heard).toHaveLength(1)
  }
})

it('is the pool in everything else', () => {
  expect(pool).toBeInstanceOf(pg.Pool)
  expect([pool.totalCount, pool.options.max]).toEqual([world.pool.totalCount, 6])
  const heard: unknown[] = []
  const listener = (event: unknown) => heard.push(event)
  pool.on('error', listener)
  world.pool.emit('error', odd, {} as never)
  pool.off('error', listener)
  expect(heard).toEqual([odd])
})

it('keeps transactions at the same time apart', async () => {
  const backend = async () => Number((await pool.query('select pg_backend_pid() as pid')).rows[0].pid)
  const together = barrier(3)
  const seen = await Promise.all(
    ['a', 'b', 'c'].map((id) =>
      db.transact(async () => {
        await insert(id)
        const before = await backend()
        await together.arrive()
        return [before, await backend()]
      }),
    ),
  )
  for (const [before, behind] of seen) expect(behind).toBe(before)
  expect(new Set(seen.flat()).size).toBe(3)
  expect(await ids()).toEqual(['a', 'b', 'c'])
})

const item = pgTable('item', { id: text('id').primaryKey(), amount: integer('amount').notNull().default(0) })

describe('a query builder on it', () => {
  it('Drizzle works in the transaction, and its own is a savepoint', async () => {
    const orm = drizzle(pool)
    await db.transact(async () => {
      await orm.insert(item).values({ id: 'kept' })
      await expect(
        orm.transaction(async (inner) => {
          await inner.insert(item).values({ id: 'undone' })
          throw odd
        }),
      ).rejects.toBe(odd)
      await orm.transaction((inner) => inner.update(item).set({ amount: 7 }).where(eq(item.id, 'kept')))
    })
    expect(await orm.select({ id: item.id, amount: item.amount }).from(item)).toEqual([{ id: 'kept', amount: 7 }])
    expect((await orm.execute(sql`select 1 as one`)).rows).toEqual([{ one: 1 }])
  })

  it('Kysely works in the transaction, and its own is a savepoint', async () => {
    const orm = new Kysely<{ item: { id: string; amount?: number } }>({ dialect: new PostgresDialect({ pool }) })
    await db.transact(async () => {
      await orm.insertInto('item').values({ id: 'kept' }).execute()
      const failing = orm.transaction().execute(async (inner) => {
        await inner.insertInto('item').values({ id: 'undone' }).execute()
        throw odd
      })
      await expect(failing).rejects.toBe(odd)
    })
    expect(await orm.selectFrom('item').select('id').execute()).toEqual([{ id: 'kept' }])
  })
})

describe('a handler that exists, behind idempotency', () => {
  const orm = () => drizzle(pool)
  let url: string
  let fails = false
  beforeAll(async () => {
    const app = express().use(express.json())
    app.post('/items', idempotency(db, { name: 'items', principal: () => 'ann' }), async (request, response) => {
      await orm().insert(item).values({ id: request.body.id })
      if (fails) throw odd
      response.status(201).json({ created: request.body.id })
    })
    app.use(
      ((_error, _request, response, _next) => void response.status(500).end()) satisfies express.ErrorRequestHandler,
    )
    const server = createServer(app)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/items`
    afterAll(() => {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(resolve))
    })
  })

  const post = (key: string, id: string) =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify({ id }),
    })

  it('writes in the transaction of its key: once, and nothing where it fails', async () => {
    fails = true
    expect([(await post('k-1', 'x')).status, await ids()]).toEqual([500, []])
    fails = false
    expect([(await post('k-1', 'x')).status, (await post('k-1', 'x')).status, await ids()]).toEqual([201, 201, ['x']])
  })
})
