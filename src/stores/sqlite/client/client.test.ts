// The client of a transaction under a query builder, and what it refuses. Drizzle needs better-sqlite3 beside it: see
// test/stores/sqlite/drizzle.test.ts.

import { type Generated, Kysely, SqliteDialect, sql } from 'kysely'
import Database from 'libsql'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { freshFile, itemStore, rowsIn } from '../../../../test/stores/sqlite/files.js'
import { eventLoopTurn } from '../../../kernel/index.js'
import { type SqliteDomain, sqlite } from '../index.js'
import type { SqliteClient } from './client.js'

const notes = (file: string) => rowsIn(file, 'SELECT note FROM item ORDER BY note')
const inside = async <Result>(
  db: SqliteDomain<SqliteClient>,
  work: (client: SqliteClient) => Result,
): Promise<Result> =>
  db.transact(async (tx) => ({ result: work(tx.db) }) as never).then(({ result }: { result: Result }) => result)

interface Tables {
  item: { id: Generated<number>; note: string; state: string | null }
}

describe('Kysely', () => {
  it('works on the transaction, and is undone with it', async () => {
    const file = freshFile()
    await itemStore(file)
    const db = sqlite({
      name: 'kysely',
      open: () => new Database(file),
      bind: (client) => new Kysely<Tables>({ dialect: new SqliteDialect({ database: client }) }),
    })
    const insert = async (note: string, fail: boolean) =>
      db.transact(async (tx) => {
        expectTypeOf(tx.db).toEqualTypeOf<Kysely<Tables>>()
        const { id } = await tx.db.insertInto('item').values({ note }).returning('id').executeTakeFirstOrThrow()
        const updated = await tx.db.updateTable('item').set({ state: 'seen' }).where('id', '=', id).executeTakeFirst()
        if (fail) throw new Error('no')
        const row = await tx.db.selectFrom('item').select(['note', 'state']).where('id', '=', id).executeTakeFirst()
        const streamed: string[] = []
        for await (const item of tx.db.selectFrom('item').select('note').stream()) streamed.push(item.note)
        return { updated: Number(updated.numUpdatedRows), row: row ?? null, streamed }
      })
    await expect(insert('a', true)).rejects.toThrow('no')
    expect(await insert('b', false)).toEqual({ updated: 1, row: { note: 'b', state: 'seen' }, streamed: ['b'] })
    expect(notes(file)).toEqual([['b']])
    await db.close()
  })

  const bound = async () => {
    const file = freshFile()
    await itemStore(file)
    const bind = (client: SqliteClient) => new Kysely<Tables>({ dialect: new SqliteDialect({ database: client }) })
    return { file, db: sqlite({ name: 'kysely', open: () => new Database(file), bind }) }
  }

  it('has transactions of its own as savepoints', async () => {
    const { file, db } = await bound()
    await db.transact(async (tx) => {
      const add = (on: Kysely<Tables>, note: string) => on.insertInto('item').values({ note }).execute()
      expect(await tx.db.transaction().execute((inner) => add(inner, 'kept').then(() => 'inner'))).toBe('inner')
      const failed = tx.db.transaction().execute(async (inner) => {
        await add(inner, 'undone')
        await sql`INSERT INTO nowhere VALUES (1)`.execute(inner)
      })
      await expect(failed).rejects.toThrow(/no such table/)
      const swallowed = tx.db.transaction().execute(async (inner) => {
        await add(inner, 'half')
        await sql`INSERT INTO nowhere VALUES (1)`.execute(inner).catch(() => undefined)
      })
      await expect(swallowed).rejects.toThrow(/no such table/)
      await tx.savepoint(() => tx.db.transaction().execute((inner) => add(inner, 'in a savepoint')))
      await tx.query("INSERT INTO item (note) VALUES ('on')")
    })
    expect(notes(file)).toEqual([['in a savepoint'], ['kept'], ['on']])
    const lost = db.transact(async (tx) => {
      await tx.db.transaction().execute((inner) => inner.insertInto('item').values({ note: 'lost' }).execute())
      throw new Error('outer')
    })
    await expect(lost).rejects.toThrow('outer')
    expect(notes(file)).toEqual([['in a savepoint'], ['kept'], ['on']])
    await db.close()
  })

  it('has savepoints by name in a transaction that it controls, beside which nothing runs', async () => {
    const { file, db } = await bound()
    await db.transact(async (tx) => {
      const inner = await tx.db.startTransaction().execute()
      const saved = await inner.savepoint('a "name"').execute()
      await saved.insertInto('item').values({ note: 'undone' }).execute()
      await saved.rollbackToSavepoint('a "name"').execute()
      await saved.insertInto('item').values({ note: 'kept' }).execute()
      const beside = [tx.query('SELECT 1'), tx.insertOnce('item', { note: 'x' }, ['note']), tx.savepoint(() => 1)]
      for (const work of beside) await expect(work).rejects.toMatchObject({ code: 'SAVEPOINT_ORDER' })
      await (await saved.releaseSavepoint('a "name"').execute()).commit().execute()
      for (const statement of [sql`commit`, sql`savepoint a`, sql`begin; select 1`, sql`begin read only`]) {
        await expect(statement.execute(tx.db)).rejects.toMatchObject({ code: 'TRANSACTION_STATEMENT' })
      }
    })
    expect(notes(file)).toEqual([['kept']])
    const left = db.transact(async (tx) => {
      await tx.db.startTransaction().execute()
      await tx.db.destroy().catch(() => undefined)
    })
    await expect(left).rejects.toMatchObject({ code: 'SAVEPOINT_ORDER' })
    expect(notes(file)).toEqual([['kept']])
    await db.close()
  })
})

describe('the client', () => {
  it.each([
    'BEGIN',
    'commit',
    '/* hidden */ ROLLBACK',
    "INSERT INTO item (note) VALUES ('x'); COMMIT",
    'SAVEPOINT mine',
    "ATTACH 'other.db' AS other",
    'PRAGMA journal_mode = DELETE',
    'PRAGMA "synchronous" = OFF',
    'PRAGMA main.query_only = 0',
    'PRAGMA user_version = 5',
    'PRAGMA wal_checkpoint(TRUNCATE)',
  ])('refuses %s', async (statement) => {
    const file = freshFile()
    const db = await itemStore(file)
    const outcome = await db.transact(async (tx) => {
      const codes: unknown[] = []
      for (const run of [() => tx.db.exec(statement), () => tx.db.prepare(statement).run()]) {
        try {
          run()
          codes.push('ran')
        } catch (error) {
          codes.push((error as { code: unknown }).code)
        }
      }
      await tx.query("INSERT INTO item (note) VALUES ('kept')")
      return codes as string[]
    })
    expect(outcome).toEqual(['TRANSACTION_STATEMENT', 'TRANSACTION_STATEMENT'])
    expect(notes(file)).toEqual([['kept']])
  })

  it('reads pragmas that only look', async () => {
    const db = await itemStore()
    const seen = await inside(db, (client) => [
      client.pragma('user_version', { simple: true }),
      (client.pragma('table_info(item)') as unknown[]).length,
      client.pragma('main.foreign_keys', { simple: true }),
    ])
    expect(seen).toEqual([0, 4, 1])
  })

  it('is not the one to close the connection', async () => {
    const db = await itemStore()
    await expect(inside(db, (client) => client.close())).rejects.toMatchObject({ code: 'STATEMENT_UNSUPPORTED' })
  })

  it('has every member that the driver has, or says why not', async () => {
    const db = await itemStore()
    const open = new Database(':memory:')
    const methods = (start: object): string[] =>
      Object.getOwnPropertyNames(Object.getPrototypeOf(start)).filter(
        (name) => name !== 'constructor' && typeof Reflect.get(start, name) === 'function',
      )
    // Those of better-sqlite3 that libsql has not.
    const [ofClient, ofStatement] = [
      [...methods(open), 'explain'],
      [...methods(open.prepare('SELECT 1')), 'bind', 'expand'],
    ]
    open.close()
    expect(ofClient.length).toBeGreaterThan(14)
    const codes = await inside(db, (client) => {
      const outcome = (facade: object, name: string): unknown => {
        try {
          return typeof (Reflect.get(facade, name) as () => unknown).call(facade)
        } catch (error) {
          return (error as { code?: unknown }).code ?? error
        }
      }
      const used = ['prepare', 'transaction', 'pragma', 'exec', 'run', 'get', 'all', 'iterate', 'raw', 'pluck']
      const rest = (names: string[]): string[] =>
        names.filter((name) => ![...used, 'columns', 'safeIntegers'].includes(name))
      const statement = client.prepare('SELECT 1')
      return [
        ...rest(ofClient).map((name) => [name, outcome(client, name)]),
        ...rest(ofStatement).map((name) => [name, outcome(statement, name)]),
      ]
    })
    expect(codes.length).toBeGreaterThan(12)
    expect(codes.filter(([, code]) => code !== 'STATEMENT_UNSUPPORTED')).toEqual([])
  })

  it('takes values one by one or as a list, and gives them back as they were', async () => {
    const db = await itemStore()
    const bytes = new Uint8Array([0, 255])
    const seen = await inside(db, (client) => {
      const five = client.prepare('SELECT ? AS a, ? AS b, ? AS c, ? AS d, ? AS e')
      const one = client.prepare('SELECT ? AS only')
      return [
        five.get('text', 1.5, null, true, bytes),
        five.all(['text', 1.5, null, false, bytes]),
        one.get(null),
        one.all(bytes),
        one.safeIntegers().get(2n ** 60n),
        one.safeIntegers(false).raw().get('list'),
        one.pluck().get('plucked'),
        client.prepare('SELECT 1 WHERE 0').get(),
        one.columns().map(({ name }) => name),
      ]
    })
    expect(seen).toEqual([
      { a: 'text', b: 1.5, c: null, d: 1, e: bytes },
      [{ a: 'text', b: 1.5, c: null, d: 0, e: bytes }],
      { only: null },
      [{ only: bytes }],
      { only: 2n ** 60n },
      ['list'],
      'plucked',
      undefined,
      ['only'],
    ])
  })

  it.each([[{ named: 1 }], [undefined], [Symbol('x')], [Number.NaN], [() => 1]])(
    'refuses the value %s before it reaches the driver',
    async (value) => {
      const db = await itemStore()
      const binding = inside(db, (client) => client.prepare('SELECT ? AS value').get(value))
      await expect(binding).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    },
  )

  it.each([['a text'], [5], [null], [{ a: 1 }], [new Set(['a'])]])(
    'takes no values of tx.query that are no list',
    async (odd) => {
      const db = await itemStore()
      const refused = await db.transact((tx) => tx.query('SELECT ? AS a', odd as never).catch((error) => error.code))
      expect(refused).toBe('ARGUMENT_INVALID')
    },
  )

  it('takes no bytes in place of a list: one driver would end the process', async () => {
    const db = await itemStore()
    const bytes = new Uint8Array([65]) as never
    await expect(db.transact((tx) => tx.query('SELECT ? AS a', bytes))).rejects.toMatchObject({
      code: 'ARGUMENT_INVALID',
    })
  })

  it('refuses several statements at once where only one would run', async () => {
    const db = await itemStore()
    await expect(inside(db, (client) => client.prepare('SELECT 1; SELECT 2'))).rejects.toMatchObject({
      code: 'ARGUMENT_INVALID',
      details: { statements: 2 },
    })
  })

  it('counts what a statement with RETURNING changed, and leaves nothing that holds up COMMIT', async () => {
    const file = freshFile()
    const db = await itemStore(file)
    const result = await inside(db, (client) =>
      client.prepare("INSERT INTO item (note) VALUES ('a'), ('b') RETURNING id").run(),
    )
    expect(result).toEqual({ changes: 2, lastInsertRowid: 2 })
    const half = await inside(db, (client) => client.prepare('SELECT note FROM item').iterate().next().value)
    expect(half).toEqual({ note: 'a' })
    expect(notes(file)).toEqual([['a'], ['b']])
  })

  it('makes a trigger, whose body has semicolons of its own', async () => {
    const file = freshFile()
    const db = await itemStore(file)
    await inside(db, (client) => {
      client
        .prepare(
          "CREATE TRIGGER copy AFTER INSERT ON item WHEN new.note = 'a' BEGIN INSERT INTO item (note) VALUES ('copy'); END",
        )
        .run()
      client.exec("INSERT INTO item (note) VALUES ('a')")
    })
    expect(notes(file)).toEqual([['a'], ['copy']])
  })

  it('refuses a statement beside a savepoint that it is not part of, and lets a query wait', async () => {
    const file = freshFile()
    const db = await itemStore(file)
    await db.transact(async (tx) => {
      const failing = tx.savepoint(async () => {
        await tx.query("INSERT INTO item (note) VALUES ('undone')")
        await eventLoopTurn()
        throw new Error('undone')
      })
      expect(() => tx.db.exec("INSERT INTO item (note) VALUES ('x')")).toThrow(
        expect.objectContaining({ code: 'SAVEPOINT_ORDER' }),
      )
      const waiting = tx.query("INSERT INTO item (note) VALUES ('after')")
      await expect(failing).rejects.toThrow('undone')
      await waiting
    })
    expect(notes(file)).toEqual([['after']])
  })
})
