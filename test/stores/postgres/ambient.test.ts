// The ambient pool: a program that uses a pool everywhere is in the open transaction where there is one, and handlers
// that exist stay as they are.

import { AsyncResource } from 'node:async_hooks'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { eq, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { integer, pgTable, text } from 'drizzle-orm/pg-core'
import express from 'express'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { idempotency } from '../../../src/http/express/index.js'
import { eventLoopTurn } from '../../../src/kernel/index.js'
import { type PostgresDomain, postgres } from '../../../src/stores/postgres/index.js'
import { barrier } from '../../../src/testing/index.js'
import { gate } from '../../gate.js'
import { patient, postgresWorld, until, type World } from './world.js'

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
  const warnings: Error[] = []
  const heard = (warning: Error) => warnings.push(warning)
  process.on('warning', heard)
  go?.()
  await expect(late).rejects.toMatchObject({
    code: 'TRANSACTION_OVER',
    message: expect.stringContaining('db.detached'),
  })
  // Nobody may wait for such a statement: a warning says so, and no unhandled rejection ends the process.
  await until('there is a warning', () => warnings.length > 0)
  process.off('warning', heard)
  expect(warnings).toEqual([expect.objectContaining({ name: 'RepriseWarning', code: 'TRANSACTION_OVER' })])
  expect(await ids()).toEqual(['in time'])
})

it('does not end the process by a late statement that nobody waits for', async () => {
  const unhandled: unknown[] = []
  const heard = (error: unknown) => unhandled.push(error)
  process.on('unhandledRejection', heard)
  let late: (() => void) | undefined
  await db.transact(async () => {
    await insert('in time')
    late = AsyncResource.bind(() => void insert('late'))
  })
  late?.()
  await eventLoopTurn()
  process.off('unhandledRejection', heard)
  expect([unhandled, await ids()]).toEqual([[], ['in time']])
})

it('is the pool in detached work, also in what it leaves running', async () => {
  const { open, opened } = gate()
  let late: Promise<unknown> = Promise.resolve()
  const running = db.transact(async () => {
    await insert('inside')
    await db.detached(() => insert('beside'))
    late = db.detached(() => opened.then(() => insert('late')))
    throw odd
  })
  await expect(running).rejects.toBe(odd)
  open()
  await late
  expect(await ids()).toEqual(['beside', 'late'])
})

describe('a statement that fails', () => {
  it('is undone alone, as on the pool, and the others are kept', async () => {
    await insert('taken')
    const seen = await db.transact(async () => {
      // The first one, which BEGIN goes out with, and later ones, of every kind.
      await expect(insert('taken')).rejects.toMatchObject({ code: '23505' })
      await insert('a')
      await expect(pool.query('select * from nothing')).rejects.toMatchObject({ code: '42P01' })
      await expect(pool.query("insert into item (id) values ('x'); select 1/0")).rejects.toMatchObject({
        code: '22012',
      })
      await expect(pool.query({ name: 'twice', text: 'select $1::int / 0', values: [1] })).rejects.toMatchObject({
        code: '22012',
      })
      await insert('b')
      return (await pool.query('select id from item order by id')).rows
    })
    expect(seen).toEqual([{ id: 'a' }, { id: 'b' }, { id: 'taken' }])
    expect(await ids()).toEqual(['a', 'b', 'taken'])
  })

  it('is undone alone beside others that nobody waits for, and on a client of connect', async () => {
    await db.transact(async () => {
      const client = await pool.connect()
      const all = ['a', 'a', 'b', 'b', 'c'].map((id, at) =>
        (at % 2 === 0 ? pool : client).query('insert into item (id) values ($1)', [id]),
      )
      expect((await Promise.allSettled(all)).map(({ status }) => status === 'fulfilled')).toEqual([
        true,
        false,
        true,
        false,
        true,
      ])
      pool.query('select 1/0').catch(() => undefined)
      client.release()
    })
    expect(await ids()).toEqual(['a', 'b', 'c'])
  })

  it('fails an inner transaction as a whole, until its ROLLBACK', async () => {
    await db.transact(async () => {
      await insert('kept')
      const client = await pool.connect()
      await client.query('begin')
      await client.query("insert into item (id) values ('undone')")
      await expect(client.query('select 1/0')).rejects.toMatchObject({ code: '22012' })
      await expect(client.query('select 1')).rejects.toMatchObject({ code: '22012' })
      await client.query('rollback')
      await expect(client.query('select 1/0')).rejects.toMatchObject({ code: '22012' })
      await client.query("insert into item (id) values ('behind')")
      client.release()
    })
    expect(await ids()).toEqual(['behind', 'kept'])
  })

  it('is undone alone inside a savepoint, which is undone as a whole', async () => {
    await db.transact(async (tx) => {
      await insert('a')
      await tx.savepoint(async () => {
        await insert('b')
        await expect(insert('a')).rejects.toMatchObject({ code: '23505' })
        await insert('c')
      })
      await expect(
        tx.savepoint(async () => {
          await insert('undone')
          throw odd
        }),
      ).rejects.toBe(odd)
      await expect(insert('a')).rejects.toMatchObject({ code: '23505' })
      await tx.query("insert into item (id) values ('d')")
      await expect(insert('d')).rejects.toMatchObject({ code: '23505' })
    })
    expect(await ids()).toEqual(['a', 'b', 'c', 'd'])
  })

  it('ends the transaction where that could not be serialized, and where the connection is lost', async () => {
    const swallowing = (text: string) =>
      db.transact(
        async () => {
          await insert('a')
          await pool.query(text).catch(() => undefined)
        },
        { attempts: 1 },
      )
    for (const code of ['40001', '40P01']) {
      const raise = `do $$ begin raise exception 'no' using errcode = '${code}'; end $$`
      await expect(swallowing(raise), code).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', cause: { code } })
    }
    await expect(swallowing('select pg_terminate_backend(pg_backend_pid())')).rejects.toThrow()
    expect(await ids()).toEqual([])
  })

  it('keeps its meaning where the body throws it on', async () => {
    let runs = 0
    const answer = await db.transact(async () => {
      runs += 1
      await insert(`run ${runs}`)
      if (runs === 1) await pool.query(`do $$ begin raise exception 'no' using errcode = '55P03'; end $$`)
      return runs
    })
    expect([answer, await ids()]).toEqual([2, ['run 2']])
  })

  it('costs one write each, and one more where it fails', async () => {
    await db.transact(() => insert('warm'))
    const sent = vi.spyOn(pg.Client.prototype, 'query')
    const counts: number[] = []
    await db.transact(async () => {
      for (const id of ['a', 'b', 'a', 'c']) {
        await insert(id).catch(() => undefined)
        counts.push(sent.mock.calls.length)
      }
    })
    sent.mockRestore()
    expect(counts).toEqual([1, 2, 4, 5])
  })

  it.each(['makes texts of batches', 'is in its pipeline mode'])('is undone alone where a client %s', async (how) => {
    const config = { connectionString: world.url, max: 1, pipeline: how.includes('pipeline') }
    const plain = new pg.Pool(config)
    if (how.includes('texts')) plain.on('connect', sendTexts)
    const other = postgres({ pool: plain, name: 'shop', ...patient })
    const own = other.ambient()
    const insertOne = (id: string) => own.query('insert into item (id) values ($1)', [id])
    for (const round of [1, 2]) {
      await other.transact(async () => {
        await insertOne(`a ${round}`)
        await expect(insertOne(`a ${round}`)).rejects.toThrow()
        const rest = [insertOne(`b ${round}`), insertOne(`b ${round}`), insertOne(`c ${round}`)]
        expect((await Promise.allSettled(rest)).map(({ status }) => status)).toEqual([
          'fulfilled',
          'rejected',
          'fulfilled',
        ])
      })
    }
    await plain.end()
    expect(await ids()).toEqual(['a 1', 'a 2', 'b 1', 'b 2', 'c 1', 'c 2'])
  })
})

// As a tracer does that makes a text and values of what it is given.
function sendTexts(client: pg.PoolClient): void {
  const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>
  const texts = (config: string | { readonly text: string; readonly values?: unknown[] }, ...rest: unknown[]) =>
    typeof config === 'string' ? query(config, ...rest) : query(config.text, config.values ?? rest[0])
  client.query = texts as typeof client.query
}

it('tells callbacks why they are refused, and fails the transaction', async () => {
  for (const [name, call] of [
    ['query', (callback: (error: unknown) => void) => pool.query('select 1', callback as never)],
    ['config', (callback: (error: unknown) => void) => pool.query({ text: 'select 1', callback } as never)],
    ['connect', (callback: (error: unknown) => void) => pool.connect(callback as never)],
    [
      'client',
      async (callback: (error: unknown) => void) =>
        (await pool.connect()).query({ text: 'select 1', callback } as never),
    ],
  ] as const) {
    const heard: unknown[] = []
    const running = db.transact(
      () =>
        new Promise((_resolve, reject) => {
          void call((error) => {
            heard.push(error)
            reject(error)
          })
        }),
    )
    await expect(running, name).rejects.toMatchObject({ code: 'STATEMENT_UNSUPPORTED' })
    expect(heard).toHaveLength(1)
  }
})

it('refuses cursors and streams at once, in words', async () => {
  const cursor = { submit: () => undefined } as never
  for (const send of [() => pool.query(cursor), async () => (await pool.connect()).query(cursor)]) {
    const running = db.transact(async () => {
      const read = (await send()) as unknown as { read(): void }
      read.read()
    })
    await expect(running).rejects.toThrow(/cursors and streams/)
  }
  const orm = new Kysely<{ item: { id: string } }>({
    dialect: new PostgresDialect({
      pool,
      cursor: class {
        submit(): void {}
      } as never,
    }),
  })
  const streaming = db.transact(async () => {
    for await (const _row of orm.selectFrom('item').selectAll().stream()) expect.unreachable()
  })
  await expect(streaming).rejects.toThrow(/cursors and streams/)
})

it('lets programs listen for errors of a client that they took', async () => {
  await db.transact(async () => {
    const client = await pool.connect()
    const listener = () => undefined
    expect(client.on('error', listener).off('error', listener)).toBe(client)
    expect(() => client.on('notification', listener)).toThrow(
      expect.objectContaining({ code: 'STATEMENT_UNSUPPORTED' }),
    )
    client.release()
  })
})

it('is the pool in everything else', () => {
  expect(pool).toBeInstanceOf(pg.Pool)
  expect([pool.totalCount, pool.options.max]).toEqual([world.pool.totalCount, 6])
  const heard: unknown[] = []
  const listener = (event: unknown) => heard.push(event)
  // What is chained stays the ambient pool: the other one knows no transaction.
  expect([pool.on('error', listener) === pool, pool.setMaxListeners(20) === pool]).toEqual([true, true])
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

describe('inner transactions side by side', () => {
  const kinds = {
    drizzle: (work: (insertOne: (id: string) => Promise<unknown>) => Promise<unknown>) =>
      drizzle(pool).transaction((inner) => work((id) => inner.insert(item).values({ id }))),
    kysely: (work: (insertOne: (id: string) => Promise<unknown>) => Promise<unknown>) =>
      new Kysely<{ item: { id: string } }>({ dialect: new PostgresDialect({ pool }) })
        .transaction()
        .execute((inner) => work((id) => inner.insertInto('item').values({ id }).execute())),
  }
  it.each(['drizzle', 'kysely'] as const)(
    'wait for one another, and so do statements beside them: %s',
    async (kind) => {
      const { open, opened } = gate()
      await db.transact(async () => {
        await insert('before')
        const running = ['a', 'b', 'c'].map((id) =>
          kinds[kind](async (insertOne) => {
            await insertOne(id)
            await opened
            if (id === 'b') throw odd
          }),
        )
        const beside = pool.query("select count(*)::int as n from item where id = 'a'")
        await eventLoopTurn()
        open()
        expect((await Promise.allSettled(running)).map(({ status }) => status)).toEqual([
          'fulfilled',
          'rejected',
          'fulfilled',
        ])
        await beside
        await insert('behind')
      })
      expect(await ids()).toEqual(['a', 'before', 'behind', 'c'])
    },
  )

  it('are not waited for by their own callback for ever: it is told to use the handle that it got', async () => {
    const impatient = postgres({ pool: world.pool, name: 'shop', ...patient, lockWait: '50ms' })
    const orm = drizzle(impatient.ambient())
    await impatient.transact(async () => {
      const failing = orm.transaction(async (inner) => {
        await inner.insert(item).values({ id: 'inner' })
        await orm.insert(item).values({ id: 'outer' })
      })
      await expect(failing).rejects.toMatchObject({
        cause: { code: 'SAVEPOINT_ORDER', message: expect.stringContaining('handle') },
      })
    })
    expect(await ids()).toEqual([])
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
      await pool.query(request.body.also ?? 'select 1').catch(() => undefined)
      const again = await pool.query("insert into item (id) values ('taken')").catch((error) => error)
      if (again.code === '23505') return void response.status(409).json({ taken: true })
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

  const post = (key: string, id: string, also?: string) =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify({ id, also }),
    })

  it('writes in the transaction of its key: once, and nothing where it fails', async () => {
    fails = true
    expect([(await post('k-1', 'x')).status, await ids()]).toEqual([500, []])
    fails = false
    expect([(await post('k-1', 'x')).status, (await post('k-1', 'x')).status]).toEqual([201, 201])
    expect(await ids()).toEqual(['taken', 'x'])
  })

  it('cannot go on after a deadlock: the answer can be repeated, and nothing is kept', async () => {
    const answer = await post('k-3', 'z', `do $$ begin raise exception 'no' using errcode = '40P01'; end $$`)
    expect([answer.status, await answer.json(), await ids()]).toEqual([
      503,
      expect.objectContaining({ retryable: true }),
      [],
    ])
  })

  it('answers for an error of the database that it catches, and the answer and the rest are kept', async () => {
    await insert('taken')
    const answers = [await post('k-2', 'y'), await post('k-2', 'y')]
    expect(answers.map(({ status, headers }) => [status, headers.get('idempotent-replayed')])).toEqual([
      [409, null],
      [409, 'true'],
    ])
    expect(await ids()).toEqual(['taken', 'y'])
  })
})
