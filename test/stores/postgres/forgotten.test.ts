// What a body started and did not wait for, on a real server: it is over before COMMIT is sent, or the transaction did
// not happen.

import { beforeAll, describe, expect, it } from 'vitest'
import { type Clock, eventLoopTurn, isRepriseError } from '../../../src/kernel/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { manualClock } from '../../../src/testing/index.js'
import { transactionHistoryOf } from '../../../src/transaction/index.js'
import { begun, codeOf, postgresWorld, until, type World } from './world.js'

let world: World
beforeAll(async () => {
  world = await postgresWorld()
})

const items = async () => (await world.raw.query('select id from item order by id')).rows.map(({ id }) => id)
const sleeping = async (mark: string) => {
  const { rows } = await world.raw.query(
    `select 1 from pg_stat_activity where query like $1 and state = 'active' and pid <> pg_backend_pid() and datname = current_database()`,
    [`%${mark}%`],
  )
  return rows.length === 1
}
const rejection = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'no error',
    (error: unknown) => error,
  )
/** The domain with a clock of the test: no machine is too slow for a limit that passes when the test says so. */
const hurried = (clock: Clock) => postgres({ pool: world.pool, name: 'hurried', bodyLimit: '60s', clock })
const untilAllIdle = () => until('every connection is back', () => world.pool.idleCount === world.pool.totalCount)

describe('a statement that the body did not wait for', () => {
  it('and that is still under way at the deadline leaves no doubt: COMMIT was not sent', async () => {
    let bodies = 0
    const clock = manualClock()
    const work = hurried(clock).transact(
      async (tx) => {
        bodies += 1
        await tx.query("insert into item (id) values ('drained')")
        void tx.query('select pg_sleep(30) as still_draining')
      },
      { deadline: '60s' },
    )
    const failed = rejection(work)
    await until('it sleeps', () => sleeping('still_draining'))
    await clock.advance(60_000)
    const error = await failed
    expect(isRepriseError(error, 'DEADLINE_EXCEEDED')).toBe(true)
    const history = transactionHistoryOf(error)
    expect(history?.attempts).toMatchObject([{ phase: 'body', ruling: { outcome: 'aborted' } }])
    expect(bodies).toBe(1)
    await untilAllIdle()
    expect(await items()).not.toContain('drained')
  })

  it('and that the signal finds under way leaves no doubt either', async () => {
    const controller = new AbortController()
    const enough = new Error('enough')
    const work = world.db.transact((tx) => void tx.query('select pg_sleep(30) as still_wanted'), {
      signal: controller.signal,
    })
    const failed = rejection(work)
    await until('it sleeps', () => sleeping('still_wanted'))
    controller.abort(enough)
    expect(await failed).toBe(enough)
    await untilAllIdle()
  })

  it('and that fails after the body returned fails the transaction, with its error as the cause', async () => {
    const error = await rejection(
      world.db.transact(async (tx) => {
        await tx.query("insert into item (id) values ('failing late')")
        void tx.query('select 1 / (select 0 from pg_sleep(0.05))')
      }),
    )
    expect(error).toMatchObject({ code: 'TRANSACTION_ABORTED', cause: { code: '22012' } })
    expect(await items()).not.toContain('failing late')
  })

  it('through the client of a query builder fails it too', async () => {
    const error = await rejection(
      world.db.transact((tx) => {
        void tx.db.query('select 1 / (select 0 from pg_sleep(0.05))')
      }),
    )
    expect(error).toMatchObject({ code: 'TRANSACTION_ABORTED', cause: { code: '22012' } })
  })

  it('and whose failure another try may mend has the transaction tried again', async () => {
    let bodies = 0
    const fail = `do $$ begin perform pg_sleep(0.02); raise exception 'again' using errcode = '40001'; end $$`
    await world.db.transact(async (tx) => {
      bodies += 1
      await tx.query("insert into item (id) values ('mended')")
      if (bodies === 1) void tx.query(fail)
    })
    expect(bodies).toBe(2)
    expect(await items()).toContain('mended')
  })

  it('is waited for by everybody who waits', async () => {
    const { session, tx } = await begun(world.engine)
    void tx.query('select pg_sleep(0.1)')
    const committing = codeOf(session.commit())
    session.poison(new Error('given up'))
    const rolledBack = session.rollback()
    expect(await committing).toBe('TRANSACTION_ABORTED')
    await rolledBack
    session.release('keep')
    await untilAllIdle()
  })
})

describe('cleaning up', () => {
  it('does not keep the caller waiting after the deadline, and gives the connection’s place back', async () => {
    const own = new Error('of the body')
    const clock = manualClock()
    let thrown = false
    let error: unknown
    const work = hurried(clock).transact(
      async (tx) => {
        void tx.query('select pg_sleep(30) as not_cleaned')
        await until('it sleeps', () => sleeping('not_cleaned'))
        await clock.advance(59_900)
        thrown = true
        throw own
      },
      { deadline: '60s', readOnly: true },
    )
    const failed = rejection(work).then((reason) => {
      error = reason
    })
    await until('the body has thrown', () => thrown)
    await eventLoopTurn()
    await clock.advance(99)
    expect([error, await sleeping('not_cleaned')]).toEqual([undefined, true])
    await clock.advance(1)
    await failed
    expect(error).toBe(own)
    expect(world.pool.idleCount).toBeLessThan(world.pool.totalCount)
    await clock.advance(1_000)
    await untilAllIdle()
    await world.db.transact((tx) => tx.query('select 1'))
  })
})
