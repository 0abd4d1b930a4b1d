// Repeatable writes against a second connection, at every isolation level, with races that are proven to have happened.

import { beforeAll, describe, expect, it } from 'vitest'
import type { Isolation } from '../../../src/atomicity/index.js'
import { systemClock } from '../../../src/kernel/index.js'
import { LockTimeoutError } from '../../../src/stores/postgres/index.js'
import { begun, codeOf, postgresWorld, untilWaiting, type World, warm } from './world.js'

let world: World
beforeAll(async () => {
  world = await postgresWorld({ application_name: 'shop' })
})

const levels: readonly Isolation[] = ['read-committed', 'repeatable-read', 'serializable']
const put = (id: string, state = 'new') => world.raw.query('insert into item (id, state) values ($1, $2)', [id, state])
const item = async (id: string) => (await world.raw.query('select * from item where id = $1', [id])).rows[0]

describe.each(levels)('at %s', (isolation) => {
  const id = (name: string) => `${isolation} ${name}`

  it('insertOnce gives the row of the transaction that it waited for', async () => {
    const first = await begun(world.engine, { isolation })
    expect(await first.tx.insertOnce('item', { id: id('once'), amount: 1 }, ['id'])).toMatchObject({ inserted: true })
    const second = await begun(world.engine, { isolation })
    const waiting = second.tx.insertOnce('item', { id: id('once'), amount: 2 }, ['id']).catch((error: unknown) => error)
    await untilWaiting(world.raw)
    await first.session.commit()
    first.session.release('keep')
    const answer = await waiting
    if (isolation === 'read-committed') {
      expect(answer).toMatchObject({ inserted: false, row: { amount: 1 } })
      expect(second.session.poisoned).toBeUndefined()
    } else {
      // The snapshot is older than the row, so the whole transaction has to be repeated.
      expect(answer).toMatchObject({ code: '40001' })
      expect(world.engine.classify(second.session.poisoned?.error, 'body')).toMatchObject({ help: 'transient' })
    }
    await second.session.rollback()
    second.session.release('keep')
  })

  it('insertOnce through the runner gives every racer the one row', async () => {
    const racers = 6
    const answers = await Promise.all(
      Array.from({ length: racers }, (_, amount) =>
        world.db.transact((tx) => tx.insertOnce('item', { id: id('race'), amount }, ['id']), { isolation }),
      ),
    )
    expect(answers.filter(({ inserted }) => inserted)).toHaveLength(1)
    expect(new Set(answers.map(({ row }) => row['amount'])).size).toBe(1)
  })

  it('transition applies one of two commands, and knows its own repeat', async () => {
    await put(id('pay'))
    const pay = (command: string) => ({
      where: { id: id('pay') },
      from: 'new',
      to: 'paid',
      command,
      set: { amount: 5 },
    })
    const results = await Promise.all(
      ['c1', 'c2', 'c1', 'c2'].map((command) =>
        world.db.transact((tx) => tx.transition('item', pay(command)), { isolation }),
      ),
    )
    expect(results.filter(({ result }) => result === 'applied')).toHaveLength(1)
    expect(results.filter(({ result }) => result === 'already-applied')).toHaveLength(1)
    expect(results.filter(({ result }) => result === 'invalid')).toHaveLength(2)
    expect(await item(id('pay'))).toMatchObject({ state: 'paid', amount: 5 })
  })

  it('lockRow keeps others out until the end', async () => {
    await put(id('lock'))
    const first = await begun(world.engine, { isolation })
    expect(await first.tx.lockRow('item', { id: id('lock') })).toMatchObject({ state: 'new' })
    const second = await begun(world.engine, { isolation })
    const waiting = second.tx.lockRow('item', { id: id('lock') })
    await untilWaiting(world.raw)
    await first.session.commit()
    first.session.release('keep')
    expect(await waiting).toMatchObject({ state: 'new' })
    await second.session.commit()
    second.session.release('keep')
  })
})

describe('a lock time-out', () => {
  it('says who stood before it and for how long', async () => {
    await put('blocked')
    const holder = await begun(world.engine)
    await holder.tx.lockRow('item', { id: 'blocked' })
    await warm(world.pool)
    const waiter = await begun(world.engine, { lockWaitMs: 2_000 })
    const error = await waiter.tx.lockRow('item', { id: 'blocked' }).catch((error: unknown) => error)
    expect(error).toBeInstanceOf(LockTimeoutError)
    expect(error).toMatchObject({
      code: 'LOCK_TIMEOUT',
      cause: { code: '55P03' },
      blockers: [{ session: holder.session.trace?.['pid'], state: 'idle in transaction', application: 'shop' }],
    })
    expect((error as LockTimeoutError).blockers[0]?.openMs).toBeGreaterThan(0)
    expect(world.engine.classify(error, 'body')).toMatchObject({ sign: '55P03', help: 'transient', connection: 'keep' })
    for (const { session } of [holder, waiter]) {
      await session.rollback()
      session.release('keep')
    }
  })

  it('comes at once with nowait, after the given wait otherwise, and a savepoint survives it', async () => {
    await put('held')
    const holder = await begun(world.engine)
    await holder.tx.lockRow('item', { id: 'held' })
    const { session, tx } = await begun(world.engine)
    expect(await codeOf(tx.savepoint(() => tx.lockRow('item', { id: 'held' }, { wait: 'nowait' })))).toBe(
      'LOCK_TIMEOUT',
    )
    expect(await codeOf(tx.savepoint(() => tx.lockRow('item', { id: 'held' }, { wait: 30 })))).toBe('LOCK_TIMEOUT')
    const setting = async () =>
      (await tx.query<{ lock: string }>("select current_setting('lock_timeout') as lock")).rows
    expect(await setting()).toEqual([{ lock: '20s' }])
    await put('free')
    expect(await tx.lockRow('item', { id: 'free' }, { wait: 30 })).toMatchObject({ id: 'free' })
    expect(await setting()).toEqual([{ lock: '20s' }])
    expect(await tx.lockRow('item', { id: 'nobody' })).toBeUndefined()
    await session.commit()
    session.release('keep')
    await holder.session.rollback()
    holder.session.release('keep')
  })
})

describe('locks that are asked for side by side', () => {
  const limit = async (tx: { query(text: string): Promise<{ rows: object[] }> }) =>
    (await tx.query("select current_setting('lock_timeout') as limit")).rows

  it('wait for as long as each of them may, and leave the limit of the transaction as it was', async () => {
    for (const id of ['side a', 'side b', 'side c']) await put(id)
    const holder = await begun(world.engine)
    await holder.tx.lockRow('item', { id: 'side a' })
    const { session, tx } = await begun(world.engine)
    const first = tx.lockRow('item', { id: 'side a' }, { wait: 20_000 })
    await untilWaiting(world.raw)
    const others = ['side b', 'side c'].map((id, place) => tx.lockRow('item', { id }, { wait: 50 + place }))
    await holder.session.commit()
    holder.session.release('keep')
    expect(await Promise.all([first, ...others])).toMatchObject([{ id: 'side a' }, { id: 'side b' }, { id: 'side c' }])
    expect(await limit(tx)).toEqual([{ limit: '20s' }])
    await session.commit()
    session.release('keep')
  })

  it('end with the limit of the one that failed, and nobody is told twice', async () => {
    for (const id of ['short', 'long']) await put(id)
    const holder = await begun(world.engine)
    await holder.tx.lockRow('item', { id: 'short' })
    const beganMs = systemClock.monotonicMs()
    const error = await world.db
      .transact(
        async (tx) => {
          void tx.lockRow('item', { id: 'short' }, { wait: 60 })
          void tx.lockRow('item', { id: 'long' }, { wait: 19_000 })
        },
        { attempts: 1 },
      )
      .catch((error: unknown) => error)
    expect(error).toMatchObject({ code: 'TRANSACTION_ABORTED', cause: { code: 'LOCK_TIMEOUT' } })
    expect(systemClock.monotonicMs() - beganMs).toBeLessThan(15_000)
    await holder.session.rollback()
    holder.session.release('keep')
    await world.raw.query("select * from item where id = 'long' for update nowait")
  })
})

describe('updates', () => {
  it('of a version happen once', async () => {
    await put('version')
    const bump = () =>
      world.db.transact(async (tx) => {
        const row = await tx.readRow('item', { id: 'version' })
        const amount = row?.['amount'] as number
        return tx.updateRows('item', { id: 'version', amount }, { amount: amount + 1 })
      })
    const counts = await Promise.all([bump(), bump(), bump(), bump()])
    expect((await item('version')).amount).toBe(counts.reduce((sum, count) => sum + count, 0))
  })
})
