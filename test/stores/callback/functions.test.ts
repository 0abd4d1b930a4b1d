// Transaction functions as people write them, right and wrong: what is wrong is said, and nothing is stored that should
// not be.

import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { inspectionOf } from '../../../src/atomicity/index.js'
import { didNotHappen, happened } from '../../../src/idempotency/index.js'
import { mintKey } from '../../../src/identity/index.js'
import { callback } from '../../../src/stores/callback/index.js'
import { transactionHistoryOf } from '../../../src/transaction/index.js'
import { until } from '../postgres/world.js'
import { inTransaction, type More, pgStack } from './orms.js'
import { callbackWorld, caught, tests, type World } from './world.js'

let world: World
beforeAll(async () => {
  world = await callbackWorld()
})

const stackWith = (more: More<pg.PoolClient> = {}) => world.keep(pgStack(world.url, more))
const insert = (client: pg.PoolClient, intent: string) =>
  client.query('insert into payment values ($1, $2)', [randomUUID(), intent])

describe('a wrapper around pg', () => {
  it('keeps marker and effect together, and hands out the stored result', async () => {
    const { db } = stackWith()
    const intent = randomUUID()
    const key = { scope: tests, key: mintKey() }
    const pay = () =>
      db.transact(
        async (tx) => {
          await insert(tx.db, intent)
          return randomUUID()
        },
        { content: 'none', key },
      )
    const first = await pay()
    expect([await pay(), await world.payments(intent)]).toEqual([first, 1])
  })

  it('counts the rows of tx.query where the function tells, and those of its answer where not', async () => {
    const told = stackWith({ query: (client, text, values) => client.query(text, values) })
    const silent = stackWith()
    const count = ({ db }: typeof told) =>
      db.transact(async (tx) => (await tx.query("update payment set intent = intent where id = 'none'")).rowCount)
    expect([await count(told), await count(silent)]).toEqual([0, 0])
    const selected = await silent.db.transact(async (tx) => tx.query<{ n: number }>('select 1 as n union select 2'))
    expect([selected.rowCount, selected.rows.length]).toEqual([2, 2])
  })

  it('refuses BEGIN and COMMIT through tx.query', async () => {
    const { db } = stackWith()
    expect(await caught(db.transact((tx) => tx.query('commit')))).toMatchObject({ code: 'TRANSACTION_STATEMENT' })
  })

  it('tells a duplicate of another process at once that its key is being worked on', async () => {
    const [one, two] = [stackWith(), stackWith({ name: 'another process' })]
    const input = { key: mintKey() }
    let inside: () => void = () => undefined
    let finish: () => void = () => undefined
    const begun = new Promise<void>((resolve) => {
      inside = resolve
    })
    const finished = new Promise<void>((resolve) => {
      finish = resolve
    })
    const define = ({ db }: typeof one) =>
      db.operation('slow', {
        scope: () => tests,
        key: ({ key }: typeof input) => key,
        window: '1h',
        duplicates: 'refuse',
        async run(tx) {
          await tx.query('select 1')
          inside()
          await finished
          return 'done'
        },
      })
    const first = define(one)(input)
    await begun
    expect(await caught(define(two)(input))).toMatchObject({ code: 'OPERATION_IN_FLIGHT' })
    finish()
    expect(await first).toBe('done')
  })

  it('refuses tx.db after the end, and says what it cannot revoke', async () => {
    const { db } = stackWith()
    let kept: { readonly db: pg.PoolClient } | undefined
    await db.transact((tx) => {
      kept = tx
    })
    expect(() => kept?.db).toThrow(expect.objectContaining({ code: 'TRANSACTION_OVER' }))
  })

  it('says that the tables are missing', async () => {
    const { db } = stackWith({ prefix: 'elsewhere_' })
    const key = { scope: tests, key: mintKey() }
    expect(await caught(db.transact(() => 1, { content: 'none', key }))).toMatchObject({ code: 'MIGRATION_MISSING' })
  })
})

describe('functions that do not keep their promise', () => {
  const plain = { scope: tests }
  const body = (intent: string) => async (tx: { readonly db: pg.PoolClient }) => {
    await insert(tx.db, intent)
    return 'done'
  }

  it('are refused where query does not use the transaction', async () => {
    const stack = stackWith()
    const { db } = stackWith({ query: (_client, text, values) => stack.pool.query(text, values) })
    const intent = randomUUID()
    const key = { ...plain, key: mintKey() }
    expect(await caught(db.transact(body(intent), { content: 'none', key }))).toMatchObject({
      code: 'ARGUMENT_INVALID',
      details: { option: 'query' },
    })
    expect(await world.payments(intent)).toBe(0)
  })

  it('are refused where query answers with a bare list', async () => {
    const { db } = stackWith({ query: async () => [] as never })
    expect(await caught(db.transact(() => 1))).toMatchObject({ code: 'ARGUMENT_INVALID' })
  })

  it('are refused where the isolation level is not passed on', async () => {
    const stack = stackWith()
    const { db } = stackWith({ transaction: (work) => inTransaction(stack.pool, 'READ COMMITTED', work) })
    expect(await db.transact(() => 'fine')).toBe('fine')
    expect(await caught(db.transact(() => 1, { isolation: 'serializable' }))).toMatchObject({
      code: 'ARGUMENT_INVALID',
      details: { option: 'transaction' },
    })
  })

  it('are refused where work is not called', async () => {
    const { db } = stackWith({ transaction: async () => undefined })
    expect(await caught(db.transact(() => 1))).toMatchObject({ code: 'ARGUMENT_INVALID' })
    const limits = { deadline: { expiresAtMs: Number.MAX_SAFE_INTEGER } }
    expect(await caught(inspectionOf(db.records).list({ limit: 1 }, limits))).toMatchObject({
      code: 'ARGUMENT_INVALID',
    })
  })

  it('are found out where they do not wait for work, and nothing is stored', async () => {
    const stack = stackWith()
    let inner: Promise<unknown> = Promise.resolve()
    const { db } = stackWith({
      transaction: (work) =>
        new Promise<void>((resolve) => {
          inner = inTransaction(stack.pool, 'READ COMMITTED', (client) => {
            const working = work(client)
            setImmediate(resolve)
            return working
          })
          inner.catch(() => undefined)
        }),
    })
    const intent = randomUUID()
    const error = await caught(
      db.transact(async (tx) => {
        await tx.query('select pg_sleep(0.05)')
        await insert(tx.db, intent)
      }),
    )
    expect(error).toMatchObject({ code: 'TRANSACTION_ENDED_ELSEWHERE' })
    await inner.catch(() => undefined)
    expect(await world.payments(intent)).toBe(0)
  })

  it('do not get to repeat on their own: the body runs once', async () => {
    const stack = stackWith()
    const { db } = stackWith({
      async transaction(work) {
        await inTransaction(stack.pool, 'READ COMMITTED', work)
        await inTransaction(stack.pool, 'READ COMMITTED', work)
      },
    })
    const intent = randomUUID()
    let runs = 0
    const key = { ...plain, key: mintKey() }
    const pay = async (tx: { readonly db: pg.PoolClient }) => {
      runs += 1
      return body(intent)(tx)
    }
    expect(await db.transact(pay, { content: 'none', key })).toBe('done')
    expect([runs, await world.payments(intent)]).toEqual([1, 1])
  })

  it('are told of where they end well although work threw', async () => {
    const stack = stackWith()
    const { db } = stackWith({
      transaction: (work) => inTransaction(stack.pool, 'READ COMMITTED', work).catch(() => 'swallowed'),
    })
    const own = new Error('of the body')
    const error = await caught(
      db.transact(() => {
        throw own
      }),
    )
    expect(error).toBe(own)
    expect(transactionHistoryOf(error)?.attempts[0]?.suppressed).toMatchObject([
      { code: 'TRANSACTION_ENDED_ELSEWHERE' },
    ])
  })

  it('cannot hide that the body ended the transaction itself', async () => {
    const { db } = stackWith()
    for (const key of [undefined, { ...plain, key: mintKey() }]) {
      const error = await caught(
        db.transact(
          async (tx) => {
            await tx.db.query('commit')
            return 'done'
          },
          key === undefined ? {} : { key, content: 'none' },
        ),
      )
      expect(error).toMatchObject({ code: 'TRANSACTION_ENDED_ELSEWHERE' })
    }
  })

  it('leave a key that a person can settle where the body ended the transaction itself', async () => {
    const { db } = stackWith()
    const intent = randomUUID()
    const pay = db.operation(`pay ${intent}`.replaceAll(' ', '.'), {
      scope: () => tests,
      key: ({ key }: { readonly key: ReturnType<typeof mintKey> }) => key,
      window: '1h',
      async run(tx): Promise<string> {
        await insert(tx.db, intent)
        await tx.db.query('commit')
        return 'done'
      },
    })
    const decide = { reason: 'the payment is in the table', actor: 'ops' }
    for (const settlement of [happened('done'), didNotHappen()]) {
      const key = mintKey()
      expect(await caught(pay({ key }))).toMatchObject({ code: 'TRANSACTION_ENDED_ELSEWHERE' })
      expect(await caught(pay({ key }))).toMatchObject({
        code: 'MARKER_INVALID',
        message: expect.stringMatching(/without an outcome.*settled/),
      })
      const which = { operation: pay, scope: tests, key }
      await db.settle(which, settlement, decide)
      const known = await db.lookup(which)
      expect(known).toMatchObject({ notes: [{ action: 'settled', actor: 'ops', from: 'claimed' }] })
      if (settlement.found === 'happened') expect(await pay({ key })).toBe('done')
      else expect(known.state).toBe('absent')
    }
    // The second body ran under a key of its own; none ran twice under one.
    expect(await world.payments(intent)).toBe(2)
  })

  it('cannot report a success that was rolled back', async () => {
    const stack = stackWith()
    const { db } = stackWith({
      // As test harnesses do that leave nothing behind.
      transaction: async (work, { readOnly }) => {
        const end = new Error('always')
        const always = inTransaction(stack.pool, 'READ COMMITTED', async (client) => {
          await work(client)
          if (!readOnly) throw end
        })
        await always.catch((error) => (error === end ? undefined : Promise.reject(error)))
      },
    })
    const intent = randomUUID()
    for (const key of [mintKey(), mintKey()]) {
      const paid = db.transact(body(intent), { content: 'none', key: { ...plain, key } })
      expect(await caught(paid)).toMatchObject({
        code: 'TRANSACTION_ENDED_ELSEWHERE',
        details: { option: 'transaction' },
      })
    }
    expect(await world.payments(intent)).toBe(0)
  })

  it('are not believed any more once they ended well although work threw', async () => {
    const stack = stackWith()
    const { db } = stackWith({
      transaction: (work) => inTransaction(stack.pool, 'READ COMMITTED', work).catch(() => 'swallowed'),
    })
    const intent = randomUUID()
    const paid = () => db.transact(body(intent), { content: 'none', key: { ...plain, key: mintKey() } })
    expect(await paid()).toBe('done')
    await caught(db.transact(() => Promise.reject(new Error('of the body'))))
    const late = db.transact(
      async (tx) => {
        await insert(tx.db, intent)
        await tx.query("insert into late values ('23514')")
      },
      { content: 'none', key: { ...plain, key: mintKey() } },
    )
    expect(await caught(late)).toMatchObject({ code: 'TRANSACTION_ENDED_ELSEWHERE' })
    expect([await paid(), await world.payments(intent)]).toEqual(['done', 2])
  })

  it('that come too late are rolled back, and their connection is not lost', async () => {
    const { db, pool } = stackWith({ connections: 2 })
    const taken = [await pool.connect(), await pool.connect()]
    const late = await caught(db.transact(() => 1, { connectionWait: '30ms' }))
    expect(late).toMatchObject({ code: 'POOL_EXHAUSTED' })
    expect(pool.waitingCount).toBe(1)
    for (const client of taken) client.release()
    await until('the late one has ended', () => pool.waitingCount === 0 && pool.idleCount === pool.totalCount)
    expect(await db.transact(() => 'fine')).toBe('fine')
    await db.close()
    expect(await caught(db.transact(() => 1))).toMatchObject({ code: 'STORE_CLOSED' })
  })
})

describe('options', () => {
  const functions = { transaction: async () => undefined, query: async () => ({ rows: [] }) }
  it.each([
    ['no name', { name: '', dialect: 'postgres', ...functions }],
    ['another dialect', { name: 'a', dialect: 'mysql', ...functions }],
    ['a schema on SQLite', { name: 'a', dialect: 'sqlite', schema: 'public', ...functions }],
    ['no functions', { name: 'a', dialect: 'postgres' }],
    ['an odd prefix', { name: 'a', dialect: 'postgres', prefix: 'A b', ...functions }],
    ['no connections', { name: 'a', dialect: 'postgres', connections: 0, ...functions }],
  ])('are refused: %s', (_what, options) => {
    expect(() => callback(options as never)).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
  })
})
