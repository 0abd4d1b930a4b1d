// Drizzle's and Kysely's own `transaction()` inside an open transaction: savepoints, one at a time.

import { eq, sql as raw } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { integer, pgTable, text } from 'drizzle-orm/pg-core'
import { Kysely, PostgresDialect, sql } from 'kysely'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Key, mintKey, scope } from '../../../src/identity/index.js'
import { isRepriseError, type RepriseError } from '../../../src/kernel/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { barrier } from '../../../src/testing/index.js'
import { codeOf, postgresWorld, until, type World } from './world.js'

let world: World
beforeAll(async () => {
  world = await postgresWorld()
})
beforeEach(async () => {
  await world.raw.query('delete from item')
})

const item = pgTable('item', {
  id: text('id').primaryKey(),
  state: text('state').notNull(),
  amount: integer('amount').notNull(),
})

interface Database {
  item: { id: string; state: string; amount: number }
}

const row = (id: string) => ({ id, state: 'new', amount: 1 })
const ids = async () => (await world.raw.query('select id from item order by id')).rows.map(({ id }) => id)

const withClient = () => postgres({ pool: world.pool, name: 'client', bind: (client) => drizzle(client) })
const withPool = () => postgres({ pool: world.pool, name: 'pool', bind: (_client, pool) => drizzle(pool) })
const withKysely = () =>
  postgres({
    pool: world.pool,
    name: 'kysely',
    bind: (_client, pool) => new Kysely<Database>({ dialect: new PostgresDialect({ pool }) }),
  })

// The refusal below what a query builder wraps around it.
async function errorOf(work: Promise<unknown>): Promise<RepriseError> {
  const thrown: unknown = await work.then(
    () => expect.unreachable('it was not refused'),
    (error: unknown) => error,
  )
  for (let at: unknown = thrown; at instanceof Error; at = at.cause) if (isRepriseError(at)) return at
  throw thrown
}

describe.each([
  ['its client', withClient],
  ['its pool', withPool],
])('Drizzle on %s', (_on, bound) => {
  it('keeps what an inner transaction wrote, and undoes one that failed alone', async () => {
    const db = bound()
    const answer = await db.transact(async (tx) => {
      await tx.db.insert(item).values(row('outer'))
      const kept = await tx.db.transaction(async (inner) => {
        await inner.insert(item).values(row('kept'))
        return 'kept'
      })
      await expect(
        tx.db.transaction(async (inner) => {
          await inner.insert(item).values(row('undone'))
          throw new Error('mine')
        }),
      ).rejects.toThrow('mine')
      await expect(tx.db.transaction((inner) => inner.rollback())).rejects.toThrow('Rollback')
      await tx.query("insert into item (id) values ('after')")
      return kept
    })
    expect(answer).toBe('kept')
    expect(await ids()).toEqual(['after', 'kept', 'outer'])
  })

  it('loses all of it when the outer one fails', async () => {
    const failing = bound().transact(async (tx) => {
      await tx.db.transaction((inner) => inner.insert(item).values(row('kept')))
      throw new Error('outer')
    })
    await expect(failing).rejects.toThrow('outer')
    expect(await ids()).toEqual([])
  })

  it('nests, and names of its own savepoints do not collide', async () => {
    await bound().transact(async (tx) => {
      for (const round of [1, 2]) {
        await tx.db.transaction(async (one) => {
          await one.insert(item).values(row(`${round} one`))
          // Both are called sp1 by Drizzle, and the first stays open after ROLLBACK TO.
          await expect(
            one.transaction(async (two) => {
              await two.insert(item).values(row(`${round} undone`))
              await two.insert(item).values(row(`${round} one`))
            }),
          ).rejects.toMatchObject({ cause: { code: '23505' } })
          await one.transaction(async (two) => {
            await two.insert(item).values(row(`${round} two`))
            await two.transaction((three) => three.insert(item).values(row(`${round} three`)))
          })
        })
      }
      // A savepoint of the transaction's own around one, and one inside of it.
      await tx.savepoint(() => tx.db.transaction((inner) => inner.insert(item).values(row('in savepoint'))))
    })
    expect(await ids()).toEqual(['1 one', '1 three', '1 two', '2 one', '2 three', '2 two', 'in savepoint'])
  })

  it('goes on after an error in an inner one, also with statements side by side', async () => {
    await bound().transact(async (tx) => {
      const failed = tx.db.transaction((inner) =>
        Promise.all([
          inner.insert(item).values(row('beside')),
          inner.execute(raw`select 1/0`),
          inner.insert(item).values(row('behind')),
        ]),
      )
      await expect(failed).rejects.toMatchObject({ cause: { code: '22012' } })
      await tx.query("insert into item (id) values ('on')")
    })
    expect(await ids()).toEqual(['on'])
  })

  it('tells an error that the inner one swallowed, and undoes it', async () => {
    await bound().transact(async (tx) => {
      const swallowed = tx.db.transaction(async (inner) => {
        await inner.insert(item).values(row('half'))
        await inner.execute(raw`select 1/0`).catch(() => undefined)
        return 'fine'
      })
      await expect(swallowed).rejects.toMatchObject({ cause: { code: '22012' } })
      await tx.db.insert(item).values(row('on'))
    })
    expect(await ids()).toEqual(['on'])
  })

  it('refuses modes that the open transaction does not have, and takes those that it has', async () => {
    const inner = async () => 1
    await bound().transact(
      async (tx) => {
        for (const config of [
          { isolationLevel: 'serializable' },
          { isolationLevel: 'repeatable read', accessMode: 'read only' },
          { isolationLevel: 'repeatable read', accessMode: 'read write', deferrable: true },
        ] as const) {
          const refusal = await errorOf(tx.db.transaction(inner, config))
          expect([refusal.code, refusal.details]).toEqual([
            'TRANSACTION_STATEMENT',
            { isolation: 'repeatable-read', readOnly: false },
          ])
          expect(refusal.message).toContain('which is REPEATABLE READ and READ WRITE')
        }
        const same = { isolationLevel: 'repeatable read', accessMode: 'read write', deferrable: false } as const
        expect(await tx.db.transaction(inner, same)).toBe(1)
        await tx.db.transaction(async (one) => {
          await one.setTransaction({ isolationLevel: 'repeatable read' })
          const refusal = await errorOf(one.setTransaction({ isolationLevel: 'serializable' }))
          expect(refusal.code).toBe('TRANSACTION_STATEMENT')
          await one.insert(item).values(row('on'))
        })
      },
      { isolation: 'repeatable-read' },
    )
    expect(await ids()).toEqual(['on'])
    await bound().transact((tx) => tx.db.transaction(inner, { accessMode: 'read only' }), { readOnly: true })
  })

  it('refuses inner transactions side by side, and one that the body did not await', async () => {
    await bound().transact(async (tx) => {
      const [first, second] = await Promise.allSettled(
        ['first', 'second'].map((id) => tx.db.transaction((inner) => inner.insert(item).values(row(id)))),
      )
      expect(first?.status).toBe('fulfilled')
      const refusal = await errorOf(second?.status === 'rejected' ? Promise.reject(second.reason) : Promise.resolve())
      expect([refusal.code, refusal.message]).toEqual([
        'SAVEPOINT_ORDER',
        'An inner transaction is open already. They share one connection: use the handle that the inner one gave to its callback, or await it first.',
      ])
    })
    expect(await ids()).toEqual(['first'])
    const started = barrier(2)
    const abandoned = bound().transact(async (tx) => {
      tx.db
        .transaction(async (inner) => {
          await inner.insert(item).values(row('half'))
          await started.arrive()
          await new Promise(() => undefined)
        })
        .catch(() => undefined)
      await started.arrive()
    })
    expect(await codeOf(abandoned)).toBe('SAVEPOINT_ORDER')
    expect(await ids()).toEqual(['first'])
  })

  it('repeats the whole transaction after a serialization failure in the inner one: each effect once', async () => {
    await world.raw.query("insert into item (id, amount) values ('counter', 0)")
    const both = barrier(2)
    let bodies = 0
    let failures = 0
    const add = () =>
      bound().transact(
        async (tx) => {
          bodies += 1
          const [read] = await tx.db.select().from(item).where(eq(item.id, 'counter'))
          if (bodies <= 2) await both.arrive()
          await tx.db
            .transaction((inner) =>
              inner
                .update(item)
                .set({ amount: (read?.amount ?? 0) + 1 })
                .where(eq(item.id, 'counter')),
            )
            .catch((error: unknown) => {
              failures += 1
              throw error
            })
        },
        { isolation: 'repeatable-read' },
      )
    await Promise.all([add(), add()])
    expect([bodies, failures]).toEqual([3, 1])
    const { rows } = await world.raw.query("select amount from item where id = 'counter'")
    expect(rows).toEqual([{ amount: 2 }])
  })

  it('works in an operation: one effect, replayed', async () => {
    const db = bound()
    let runs = 0
    const pay = db.operation('pay', {
      scope: () => scope('tenant', 'pay'),
      key: (input: { key: Key }) => input.key,
      window: '1h',
      run: async (tx) => {
        runs += 1
        await tx.db.transaction((inner) => inner.insert(item).values(row('paid')))
        return { paid: true }
      },
    })
    const input = { key: mintKey() }
    expect([await pay(input), await pay(input), runs]).toEqual([{ paid: true }, { paid: true }, 1])
    expect(await ids()).toEqual(['paid'])
  })

  it('ends with the connection', async () => {
    let killed = 0
    const done = await bound().transact(async (tx) => {
      const again = tx.attempt > 1
      return tx.db.transaction(async (inner) => {
        await inner.insert(item).values(row('once'))
        if (again) return 'second'
        const { rows } = await inner.execute<{ pid: number }>(raw`select pg_backend_pid() as pid`)
        await world.raw.query('select pg_terminate_backend($1)', [rows[0]?.pid])
        killed += 1
        await inner.insert(item).values(row('never'))
        return 'first'
      })
    })
    expect([done, killed]).toEqual(['second', 1])
    expect(await ids()).toEqual(['once'])
  })
})

describe('Drizzle on its pool', () => {
  it('tells statements beside an inner transaction apart, and refuses them', async () => {
    await withPool().transact(async (tx) => {
      await tx.db.transaction(async (inner) => {
        await inner.insert(item).values(row('inner'))
        const beside: Promise<unknown>[] = [
          tx.db.insert(item).values(row('beside')),
          tx.query("insert into item (id) values ('beside')"),
          tx.insertOnce('item', { id: 'beside' }, ['id']),
          tx.savepoint(async () => undefined),
        ]
        for (const work of beside) expect((await errorOf(work)).code).toBe('SAVEPOINT_ORDER')
      })
      await tx.query("insert into item (id) values ('after')")
    })
    expect(await ids()).toEqual(['after', 'inner'])
  })

  it('refuses what comes out of an inner transaction that is over', async () => {
    await withPool().transact(async (tx) => {
      let late: (() => Promise<unknown>) | undefined
      await tx.db.transaction(async (inner) => {
        late = () => inner.insert(item).values(row('late')).execute()
      })
      expect((await errorOf(late?.() ?? Promise.resolve())).code).toBe('STATEMENT_UNSUPPORTED')
    })
    expect(await ids()).toEqual([])
  })
})

describe('Kysely', () => {
  it('has its transactions as savepoints', async () => {
    await withKysely().transact(async (tx) => {
      await tx.db.transaction().execute((inner) => inner.insertInto('item').values(row('kept')).execute())
      const failed = tx.db.transaction().execute(async (inner) => {
        await inner.insertInto('item').values(row('undone')).execute()
        await inner.insertInto('item').values(row('kept')).execute()
      })
      await expect(failed).rejects.toMatchObject({ code: '23505' })
      await tx.db.insertInto('item').values(row('after')).execute()
      const other = tx.db.transaction().setIsolationLevel('serializable')
      expect((await errorOf(other.execute(async () => 1))).code).toBe('TRANSACTION_STATEMENT')
      const same = tx.db.transaction().setIsolationLevel('read committed').setAccessMode('read write')
      expect(await same.execute(async () => 1)).toBe(1)
    })
    expect(await ids()).toEqual(['after', 'kept'])
  })

  it('has savepoints by name in a transaction that it controls', async () => {
    await withKysely().transact(async (tx) => {
      const inner = await tx.db.startTransaction().execute()
      await inner.insertInto('item').values(row('one')).execute()
      const saved = await inner.savepoint('a "name"').execute()
      await saved.insertInto('item').values(row('two')).execute()
      await expect(sql`select 1/0`.execute(saved)).rejects.toMatchObject({ code: '22012' })
      await saved.rollbackToSavepoint('a "name"').execute()
      await saved.insertInto('item').values(row('three')).execute()
      const released = await saved.releaseSavepoint('a "name"').execute()
      expect((await errorOf(sql`release savepoint nobody`.execute(released))).code).toBe('TRANSACTION_STATEMENT')
      // Beside it, nobody else.
      expect((await errorOf(tx.db.selectFrom('item').selectAll().execute())).code).toBe('SAVEPOINT_ORDER')
      await released.commit().execute()
      await tx.db.insertInto('item').values(row('four')).execute()
    })
    expect(await ids()).toEqual(['four', 'one', 'three'])
    const left = withKysely().transact(async (tx) => {
      await tx.db.startTransaction().execute()
    })
    expect(await codeOf(left)).toBe('SAVEPOINT_ORDER')
  })

  it('repeats the whole transaction after a deadlock in an inner one: each effect once', async () => {
    await world.raw.query("insert into item (id, amount) values ('a', 0), ('b', 0)")
    const db = withKysely()
    const both = barrier(2)
    let bodies = 0
    const add = (order: readonly string[]) =>
      db.transact(async (tx) => {
        bodies += 1
        const first = bodies <= 2
        await tx.db.transaction().execute(async (inner) => {
          for (const id of order) {
            await inner
              .updateTable('item')
              .set((column) => ({ amount: column('amount', '+', 1) }))
              .where('id', '=', id)
              .execute()
            if (first && id === order[0]) await both.arrive()
          }
        })
      })
    await Promise.all([add(['a', 'b']), add(['b', 'a'])])
    expect(bodies).toBe(3)
    const { rows } = await world.raw.query('select amount from item order by id')
    expect(rows).toEqual([{ amount: 2 }, { amount: 2 }])
  })

  it('cannot end what it has not begun', async () => {
    await withKysely().transact(async (tx) => {
      for (const statement of [
        sql`commit`,
        sql`rollback`,
        sql`savepoint a`,
        sql`begin; select 1`,
        sql`commit and chain`,
      ])
        expect((await errorOf(statement.execute(tx.db))).code).toBe('TRANSACTION_STATEMENT')
      await tx.query("insert into item (id) values ('on')")
    })
    expect(await ids()).toEqual(['on'])
  })
})

describe('a savepoint of the transaction itself', () => {
  it('undoes an error with statements side by side, and the transaction goes on', async () => {
    await world.db.transact(async (tx) => {
      const failed = tx.savepoint(() =>
        Promise.all([tx.query('select 1/0'), tx.query("insert into item (id) values ('beside')")]),
      )
      await expect(failed).rejects.toMatchObject({ code: '22012' })
      await tx.query("insert into item (id) values ('on')")
    })
    expect(await ids()).toEqual(['on'])
  })

  it('lets a serialization failure through, and the whole transaction is repeated', async () => {
    let bodies = 0
    await world.db.transact(async (tx) => {
      bodies += 1
      await tx.query("insert into item (id) values ('once')")
      if (bodies === 1) {
        const failed = tx.savepoint(() => tx.query("do $$ begin raise sqlstate '40001'; end $$"))
        await failed.catch((error: unknown) => {
          throw new Error('of the body', { cause: error })
        })
      }
    })
    expect(bodies).toBe(2)
    expect(await ids()).toEqual(['once'])
    // One that the body did not let through does not count.
    const own = world.db.transact(async (tx) => {
      bodies += 1
      await tx.savepoint(() => tx.query("do $$ begin raise sqlstate '40001'; end $$")).catch(() => undefined)
      throw new Error('mine')
    })
    await expect(own).rejects.toThrow('mine')
    expect(bodies).toBe(3)
  })

  it('waits for its turn, and an inner transaction waits for it', async () => {
    const order: string[] = []
    const entered = barrier(2)
    await withPool().transact(async (tx) => {
      const outer = tx.savepoint(async () => {
        await entered.arrive()
        await until('the inner one was asked for', () => order.includes('asked'))
        await tx.query("insert into item (id) values ('savepoint')")
        order.push('savepoint')
      })
      await entered.arrive()
      order.push('asked')
      await Promise.all([
        outer,
        tx.db.transaction(async (inner) => {
          order.push('inner')
          await inner.insert(item).values(row('inner'))
        }),
      ])
    })
    expect(order).toEqual(['asked', 'savepoint', 'inner'])
    expect(await ids()).toEqual(['inner', 'savepoint'])
  })
})
