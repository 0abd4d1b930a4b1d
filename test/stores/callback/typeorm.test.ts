// Operations around the entity manager of TypeORM, which owns BEGIN and COMMIT: the effect once, or an honest answer.

import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { fail } from '../../../src/idempotency/index.js'
import { type Key, mintKey } from '../../../src/identity/index.js'
import { transactionHistoryOf } from '../../../src/transaction/index.js'
import { paymentEntity, typeormStack } from './orms.js'
import { callbackWorld, caught, tests, type World } from './world.js'

let world: World
let typeorm: Awaited<ReturnType<typeof typeormStack>>
beforeAll(async () => {
  world = await callbackWorld()
  typeorm = world.keep(await typeormStack(world.url))
})

interface Order {
  readonly key: Key
  readonly amount: number
}

type Manager = Parameters<Parameters<typeof typeorm.db.transact>[0]>[0]['db']

/** Stores a payment the way a program on TypeORM does. */
async function insertPayment(manager: Manager, intent: string): Promise<void> {
  await manager.getRepository(paymentEntity).insert({ id: randomUUID(), intent })
}

let operations = 0
function payWith(work: (manager: Manager, order: Order) => Promise<unknown>, { db } = typeorm) {
  return db.operation(`pay-${++operations}`, {
    scope: () => tests,
    key: ({ key }: Order) => key,
    window: '24h',
    run: async (tx, order) => {
      await insertPayment(tx.db, order.key)
      return work(tx.db, order) as Promise<{ readonly receipt: string }>
    },
  })
}

const receipt = async (): Promise<unknown> => ({ receipt: randomUUID() })

describe('an operation around TypeORM', () => {
  it('runs once, and replays the stored result', async () => {
    const order = { key: mintKey(), amount: 1 }
    const pay = payWith(receipt)
    const first = await pay(order)
    expect(await pay(order)).toEqual(first)
    expect(await world.payments(order.key)).toBe(1)
  })

  it('refuses the same key with other content', async () => {
    const order = { key: mintKey(), amount: 1 }
    const pay = payWith(receipt)
    await pay(order)
    expect(await caught(pay({ ...order, amount: 2 }))).toMatchObject({ code: 'OPERATION_MISMATCH' })
    expect(await world.payments(order.key)).toBe(1)
  })

  it('stores a failure that the body returns, together with what it wrote, and replays it', async () => {
    const order = { key: mintKey(), amount: 1 }
    let runs = 0
    const pay = typeorm.db.operation(`pay-${++operations}`, {
      scope: () => tests,
      key: ({ key }: Order) => key,
      window: '24h',
      failures: ['declined'],
      run: async (tx, { key }) => {
        runs += 1
        await insertPayment(tx.db, key)
        return fail('declined', { because: 'limit' })
      },
    })
    for (const _ of [1, 2])
      expect(await caught(pay(order))).toMatchObject({ failure: { code: 'declined', data: { because: 'limit' } } })
    expect([runs, await world.payments(order.key)]).toEqual([1, 1])
  })

  it('rolls back what the body wrote when its outcome is not stored, and the key is free', async () => {
    const order = { key: mintKey(), amount: 1 }
    let refuse = true
    const own = new Error('not today')
    const pay = payWith(async () => {
      if (refuse) throw own
      return { receipt: 'late' }
    })
    expect(await caught(pay(order))).toBe(own)
    expect(await world.payments(order.key)).toBe(0)
    refuse = false
    expect(await pay(order)).toEqual({ receipt: 'late' })
    expect(await world.payments(order.key)).toBe(1)
  })

  it('lets one of many duplicates through, also between two data sources', async () => {
    const order = { key: mintKey(), amount: 1 }
    const name = `pay-${++operations}`
    const other = world.keep(await typeormStack(world.url, { name: 'other' }))
    const pays = [typeorm, other].map(({ db }) =>
      db.operation(name, {
        scope: () => tests,
        key: ({ key }: Order) => key,
        window: '24h',
        run: async (tx, { key }) => {
          await insertPayment(tx.db, key)
          return { receipt: randomUUID() }
        },
      }),
    )
    const calls = Array.from({ length: 40 }, (_, number) => pays[number % 2]?.(order))
    const receipts = await Promise.all(calls)
    expect(new Set(receipts.map((answer) => answer?.receipt)).size).toBe(1)
    expect(await world.payments(order.key)).toBe(1)
  })

  it('repeats the whole of it after a serialization failure of the entity manager', async () => {
    const order = { key: mintKey(), amount: 1 }
    let runs = 0
    const pay = payWith(async (manager) => {
      runs += 1
      if (runs === 1) await manager.query(`do $$ begin raise exception using errcode = '40001'; end $$`)
      return { receipt: 'second' }
    })
    expect(await pay(order)).toEqual({ receipt: 'second' })
    expect([runs, await world.payments(order.key)]).toEqual([2, 1])
  })

  it('repeats it after a serialization failure that COMMIT is answered with', async () => {
    const order = { key: mintKey(), amount: 1 }
    let runs = 0
    const pay = payWith(async (manager) => {
      runs += 1
      if (runs === 1) await manager.query(`insert into late values ('40001')`)
      return { receipt: 'second' }
    })
    expect(await pay(order)).toEqual({ receipt: 'second' })
    expect([runs, await world.payments(order.key)]).toEqual([2, 1])
  })

  it('surfaces a constraint that is checked at COMMIT, after one attempt', async () => {
    const order = { key: mintKey(), amount: 1 }
    const pay = payWith(async (manager) => {
      await manager.query(`insert into late values ('23514')`)
      return { receipt: 'never' }
    })
    const error = await caught(pay(order))
    expect(error).toMatchObject({ code: '23514' })
    expect(transactionHistoryOf(error)?.attempts).toMatchObject([{ phase: 'committing', resolved: 'aborted' }])
    expect(await world.payments(order.key)).toBe(0)
  })

  it('goes on with another connection when the server ends the one that the body works on', async () => {
    const order = { key: mintKey(), amount: 1 }
    let runs = 0
    const pay = payWith(async (manager) => {
      runs += 1
      if (runs === 1) {
        const [{ pid }] = await manager.query('select pg_backend_pid() as pid')
        await world.raw.query('select pg_terminate_backend($1)', [pid])
      }
      await manager.query('select 1')
      return { receipt: 'second' }
    })
    expect(await pay(order)).toEqual({ receipt: 'second' })
    expect([runs, await world.payments(order.key)]).toEqual([2, 1])
  })

  it('asks the key when TypeORM fails after COMMIT, and does not run the body again', async () => {
    const stack = world.keep(await typeormStack(world.url, { name: 'with a subscriber' }))
    let broken = 0
    stack.source.subscribers.push({
      afterTransactionCommit() {
        broken += 1
        if (broken === 1) throw Object.assign(new Error('the subscriber'), { code: '23505' })
      },
    })
    const order = { key: mintKey(), amount: 1 }
    let runs = 0
    const pay = payWith(async () => ({ receipt: `run ${++runs}` }), stack)
    expect(await pay(order)).toEqual({ receipt: 'run 1' })
    expect([runs, broken >= 1, await world.payments(order.key)]).toEqual([1, true, 1])
  })
})

describe('a silent rollback', () => {
  const swallow = (manager: Manager): Promise<unknown> => manager.query('select 1/0').catch(() => undefined)

  it('is reported as success by TypeORM itself, with nothing stored', async () => {
    const intent = randomUUID()
    const answer = await typeorm.source.transaction(async (manager) => {
      await insertPayment(manager, intent)
      await swallow(manager)
      return 'success'
    })
    expect([answer, await world.payments(intent)]).toEqual(['success', 0])
  })

  it('is no success of an operation: the write of its outcome fails first', async () => {
    const order = { key: mintKey(), amount: 1 }
    let trouble = true
    const pay = payWith(async (manager) => {
      if (trouble) await swallow(manager)
      return { receipt: 'sound' }
    })
    const error = await caught(pay(order))
    expect(error).toMatchObject({ code: 'TRANSACTION_ABORTED', cause: { code: '25P02' } })
    expect(transactionHistoryOf(error)?.attempts).toMatchObject([{ ruling: { outcome: 'aborted' } }])
    expect(await world.payments(order.key)).toBe(0)
    // The key is free: nothing was stored under it.
    trouble = false
    expect(await pay(order)).toEqual({ receipt: 'sound' })
    expect(await world.payments(order.key)).toBe(1)
  })

  it('is no success of a transaction without a key either: a last statement fails first', async () => {
    const intent = randomUUID()
    const error = await caught(
      typeorm.db.transact(async (tx) => {
        await insertPayment(tx.db, intent)
        await swallow(tx.db)
        return 'success'
      }),
    )
    expect(error).toMatchObject({ code: 'TRANSACTION_ABORTED', cause: { code: '25P02' } })
    expect(await world.payments(intent)).toBe(0)
  })

  it('is none where TypeORM scoped the error with a nested transaction', async () => {
    const intent = randomUUID()
    await typeorm.db.transact(async (tx) => {
      await insertPayment(tx.db, intent)
      await tx.db.transaction(swallowed).catch(() => undefined)
    })
    expect(await world.payments(intent)).toBe(1)
  })

  const swallowed = (manager: Manager): Promise<unknown> => manager.query('select 1/0')
})
