// The open transaction in the hands of query builders: the same one, typed, and unable to begin or end it.

import { eq } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { integer, pgTable, text } from 'drizzle-orm/pg-core'
import { Kysely, PostgresDialect, sql } from 'kysely'
import pg from 'pg'
import { beforeAll, describe, expect, expectTypeOf, it } from 'vitest'
import { type ClientOf, type PostgresPool, postgres } from '../../../src/stores/postgres/index.js'
import { codeOf, postgresWorld, type World } from './world.js'

let world: World
beforeAll(async () => {
  world = await postgresWorld()
})

const item = pgTable('item', {
  id: text('id').primaryKey(),
  state: text('state').notNull(),
  amount: integer('amount').notNull(),
})

interface Database {
  item: { id: string; state: string; amount: number }
}

const refusal = 'TRANSACTION_STATEMENT'
const ids = async (like: string) =>
  (await world.raw.query('select id from item where id like $1 order by id', [like])).rows.map(({ id }) => id)

describe('types', () => {
  it('take a pool of pg as it is, and know its client', () => {
    expectTypeOf<pg.Pool>().toExtend<PostgresPool>()
    expectTypeOf<ClientOf<pg.Pool>>().toEqualTypeOf<pg.PoolClient>()
    const plain = postgres({ pool: world.pool, name: 'plain' })
    type Handle = Parameters<Parameters<typeof plain.transact>[0]>[0]
    expectTypeOf<Handle['db']>().toEqualTypeOf<pg.PoolClient>()
  })
})

describe('raw pg', () => {
  it('works through the client, in all forms of query', async () => {
    const result = await world.db.transact(async (tx) => {
      await tx.db.query("insert into item (id) values ('raw 1')")
      await tx.db.query('insert into item (id) values ($1)', ['raw 2'])
      await tx.db.query({ text: 'insert into item (id) values ($1)', values: ['raw 3'] })
      await tx.db.query({ name: 'named', text: 'insert into item (id) values ($1)' }, ['raw 4'])
      const rows = await tx.db.query<[string]>({
        text: "select id from item where id like 'raw%' order by id",
        rowMode: 'array',
      })
      return rows.rows
    })
    expect(result).toEqual([['raw 1'], ['raw 2'], ['raw 3'], ['raw 4']])
    expect(await ids('raw%')).toHaveLength(4)
  })

  it('gives the last answer of several statements in one text', async () => {
    const result = await world.db.transact((tx) => tx.query<{ b: number }>('select 1 as a; select 2 as b'))
    expect(result).toEqual({ rows: [{ b: 2 }], rowCount: 1 })
  })

  it.each(['begin', 'COMMIT', '/* */ rollback', 'select 1; commit', 'savepoint x', "prepare transaction 'x'"])(
    'refuses %s, and the transaction goes on',
    async (statement) => {
      await world.db.transact(async (tx) => {
        expect(await codeOf(tx.db.query(statement))).toBe(refusal)
        expect(await codeOf(tx.query(statement))).toBe(refusal)
        expect(await codeOf(tx.db.query({ text: statement }))).toBe(refusal)
        await tx.query('select 1')
      })
    },
  )

  it('refuses a config whose text changes after it was looked at', async () => {
    await world.db.transact(async (tx) => {
      let reads = 0
      const config = {
        get text() {
          reads += 1
          return reads === 1 ? 'select 1 as one' : 'commit'
        },
      }
      expect((await tx.db.query(config)).rows).toEqual([{ one: 1 }])
    })
  })

  it('refuses what takes the connection for itself', async () => {
    await world.db.transact(async (tx) => {
      const client = tx.db as unknown as Record<string, (...values: unknown[]) => unknown>
      const refused = async (name: string, ...values: unknown[]) => codeOf((async () => client[name]?.(...values))())
      for (const name of ['release', 'connect', 'end', 'copyFrom', 'copyTo', 'on', 'once']) {
        expect([name, await refused(name)]).toEqual([name, 'STATEMENT_UNSUPPORTED'])
      }
      for (const values of [[{ name: 'named' }], [7], ['select $1', 'x']]) {
        expect(await refused('query', ...values)).toBe('STATEMENT_UNSUPPORTED')
      }
    })
  })

  it.each([
    ['a callback', ['select 1', () => undefined]],
    ['values and a callback', ['select 1', [], () => undefined]],
    ['a config with a callback', [{ text: 'select 1', callback: () => undefined }]],
    ['a cursor', [{ submit: () => undefined }]],
  ])('refuses %s, and the transaction with it: nobody looks at the promise', async (what, values) => {
    const work = world.db.transact(async (tx) => {
      await tx.query('insert into item (id) values ($1)', [what])
      const client = tx.db as unknown as { query(...values: readonly unknown[]): unknown }
      client.query(...values)
    })
    await expect(work).rejects.toMatchObject({
      code: 'TRANSACTION_ABORTED',
      cause: { code: 'STATEMENT_UNSUPPORTED' },
    })
    expect((await world.raw.query('select 1 from item where id = $1', [what])).rowCount).toBe(0)
    // Awaited all the same, it is the caller's to see as it is.
    const awaited = world.db.transact((tx) =>
      (tx.db.query as (...values: readonly unknown[]) => Promise<unknown>).apply(tx.db, [...values]),
    )
    await expect(awaited).rejects.toMatchObject({ code: 'STATEMENT_UNSUPPORTED' })
  })

  it('takes null for no callback, as pg does', async () => {
    const found = await world.db.transact(async (tx) => {
      const client = tx.db as unknown as { query(...values: readonly unknown[]): Promise<{ rows: unknown[] }> }
      const first = await client.query('select 1 as a', [], null)
      return [...first.rows, ...(await client.query({ text: 'select 2 as a', callback: null })).rows]
    })
    expect(found).toEqual([{ a: 1 }, { a: 2 }])
  })

  it('has every member that a client or a pool of pg has, or says why not', async () => {
    const members = (start: object): string[] => {
      const names: string[] = []
      for (let at = start; at !== Object.prototype; at = Object.getPrototypeOf(at) as object) {
        for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
          if (typeof value === 'function' && /^[a-z]/.test(name) && name !== 'constructor') names.push(name)
        }
      }
      return names
    }
    const works = ['query', 'connect', 'end']
    let found: { client: object; pool: object } | undefined
    const db = postgres({ pool: world.pool, name: 'members', bind: (client, pool) => ({ client, pool }) })
    await db.transact(async (tx) => {
      found = tx.db
      for (const [facade, original] of [
        [tx.db.client, pg.Client.prototype],
        [tx.db.pool, pg.Pool.prototype],
      ] as const) {
        const names = members(original).filter((name) => !works.includes(name))
        expect(names.length).toBeGreaterThan(14)
        for (const name of names) {
          const member: unknown = Reflect.get(facade, name)
          const outcome = await codeOf((async () => (member as () => unknown).call(facade))())
          expect([name, outcome]).toEqual([name, 'STATEMENT_UNSUPPORTED'])
        }
        // Nothing that query builders ask for to find out what they have in hand.
        expect([Reflect.get(facade, 'then'), Reflect.get(facade, 'execute')]).toEqual([undefined, undefined])
      }
      expect([tx.db.pool.totalCount, tx.db.pool.idleCount, tx.db.pool.waitingCount]).toEqual([1, 0, 0])
      await tx.query('select 1')
    })
    expect(found).toBeDefined()
  })

  it('cannot end the transaction from inside a procedure or a DO block', async () => {
    await world.raw.query("create or replace procedure ends() language plpgsql as 'begin commit; end'")
    for (const statement of ['call ends()', 'do $$ begin commit; end $$']) {
      expect(await codeOf(world.db.transact((tx) => tx.query(statement)))).toBe('2D000')
    }
  })
})

describe('a pool in pipeline mode', () => {
  it('sends statements that were started side by side at once, and an error of one poisons all', async () => {
    const pool = new pg.Pool({ connectionString: world.url, pipeline: true })
    const db = postgres({ pool, name: 'pipeline' })
    const answers = await db.transact((tx) =>
      Promise.all([1, 2, 3, 4].map((n) => tx.query<{ n: number }>('select $1::int as n', [n]))),
    )
    expect(answers.map(({ rows }) => rows[0]?.n)).toEqual([1, 2, 3, 4])
    const failing = db.transact(async (tx) => {
      await Promise.allSettled([
        tx.query("insert into item (id) values ('pipeline 1')"),
        tx.query('select 1/0'),
        tx.query("insert into item (id) values ('pipeline 2')"),
      ])
    })
    await expect(failing).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', cause: { code: '22012' } })
    expect(await ids('pipeline%')).toEqual([])
    await pool.end()
  })
})

describe('Kysely', () => {
  const bound = () =>
    postgres({
      pool: world.pool,
      name: 'kysely',
      bind: (_client, pool) => new Kysely<Database>({ dialect: new PostgresDialect({ pool }) }),
    })

  it('works inside the open transaction, and rolls back with it', async () => {
    const db = bound()
    const found = await db.transact(async (tx) => {
      expectTypeOf(tx.db).toEqualTypeOf<Kysely<Database>>()
      await tx.db.insertInto('item').values({ id: 'kysely 1', state: 'new', amount: 1 }).execute()
      const updated = await tx.db.updateTable('item').set({ amount: 2 }).where('id', '=', 'kysely 1').executeTakeFirst()
      expect(updated.numUpdatedRows).toBe(1n)
      expect(await ids('kysely%')).toEqual([])
      return tx.db.selectFrom('item').select(['id', 'amount']).where('id', 'like', 'kysely%').execute()
    })
    expect(found).toEqual([{ id: 'kysely 1', amount: 2 }])
    const failing = db.transact(async (tx) => {
      await tx.db.insertInto('item').values({ id: 'kysely 2', state: 'new', amount: 1 }).execute()
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(await ids('kysely%')).toEqual(['kysely 1'])
  })

  it('cannot end the transaction, and its errors poison', async () => {
    const db = bound()
    await db.transact(async (tx) => {
      expect(await codeOf(sql`commit`.execute(tx.db))).toBe(refusal)
      await tx.db.destroy()
      await tx.query('select 1')
    })
    const swallowed = db.transact(async (tx) => {
      await tx.db
        .insertInto('item')
        .values({ id: 'kysely 1', state: 'new', amount: 1 })
        .execute()
        .catch(() => undefined)
    })
    await expect(swallowed).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', cause: { code: '23505' } })
  })
})

describe('Drizzle', () => {
  const bound = () => postgres({ pool: world.pool, name: 'drizzle', bind: (client) => drizzle(client) })

  it('works inside the open transaction, and rolls back with it', async () => {
    const db = bound()
    const found = await db.transact(async (tx) => {
      await tx.db.insert(item).values({ id: 'drizzle 1', state: 'new', amount: 1 })
      await tx.db.update(item).set({ amount: 2 }).where(eq(item.id, 'drizzle 1'))
      expect(await ids('drizzle%')).toEqual([])
      const rows = await tx.db.select().from(item).where(eq(item.id, 'drizzle 1'))
      expectTypeOf(rows).toEqualTypeOf<{ id: string; state: string; amount: number }[]>()
      return rows
    })
    expect(found).toEqual([{ id: 'drizzle 1', state: 'new', amount: 2 }])
    const failing = db.transact(async (tx) => {
      await tx.db.insert(item).values({ id: 'drizzle 2', state: 'new', amount: 1 })
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(await ids('drizzle%')).toEqual(['drizzle 1'])
  })

  it('wraps errors that are still understood', async () => {
    const db = bound()
    let attempts = 0
    const result = await db.transact(async (tx) => {
      attempts += 1
      if (attempts === 1) await tx.db.execute("do $$ begin raise sqlstate '40001'; end $$")
      return 'second'
    })
    expect([result, attempts]).toEqual(['second', 2])
  })
})
