// One transaction on a real server, without the runner: begin, commit, and what poisons it.

import { beforeAll, describe, expect, it } from 'vitest'
import { begun, codeOf, postgresWorld, until, type World } from './world.js'

let world: World
beforeAll(async () => {
  world = await postgresWorld()
})

const items = async () => (await world.raw.query('select id from item order by id')).rows.map(({ id }) => id)

describe('a transaction', () => {
  it('commits what it did, in one round trip for everything around BEGIN', async () => {
    const { session, tx } = await begun(world.engine)
    const before = await tx.query<Record<string, string>>(
      `select current_setting('transaction_isolation') as isolation, current_setting('lock_timeout') as lock,
       current_setting('idle_in_transaction_session_timeout') as idle, current_setting('statement_timeout') as statement`,
    )
    expect(before.rows[0]).toEqual({ isolation: 'read committed', lock: '20s', idle: '50s', statement: '50s' })
    await tx.query('insert into item (id) values ($1)', ['committed'])
    expect(session.trace).toMatchObject({
      xid: expect.stringMatching(/^\d+$/),
      pid: expect.stringMatching(/^\d+$/),
      timeline: '00000001',
    })
    expect(await session.commit()).toEqual({ durability: 'promised' })
    session.release('keep')
    expect(await items()).toContain('committed')
    const { rows } = await world.raw.query('select pg_xact_status($1::xid8) as status', [session.trace?.['xid']])
    expect(rows[0].status).toBe('committed')
  })

  it.each([['a'], [5], [null], [{ a: 1 }], [new Set(['a'])], [new Uint8Array([65])]])(
    'takes no values that are no list: nothing is sent, and it goes on',
    async (odd) => {
      const { session, tx } = await begun(world.engine)
      expect(await codeOf(tx.query('select $1::text', odd as never))).toBe('ARGUMENT_INVALID')
      expect((await tx.query('select $1::text as a', ['b'])).rows).toEqual([{ a: 'b' }])
      session.release('discard')
    },
  )

  it('leaves nothing of its settings on the connection', async () => {
    const client = await world.pool.connect()
    const { rows } = await client.query(
      `select current_setting('lock_timeout') as a, current_setting('idle_in_transaction_session_timeout') as b,
       current_setting('statement_timeout') as c`,
    )
    client.release()
    expect(rows[0]).toEqual({ a: '0', b: '0', c: '0' })
  })

  it('leaves no statement running on the server, with its locks, after its time', async () => {
    await world.raw.query("insert into item (id) values ('locked')")
    const work = world.db.transact(
      async (tx) => {
        await tx.lockRow('item', { id: 'locked' })
        await tx.query('select pg_sleep(60) as left_behind')
      },
      { deadline: '1s' },
    )
    expect(await codeOf(work)).not.toBe('no error')
    await until('the server ended it', async () => {
      const { rows } = await world.raw.query(
        "select 1 from pg_stat_activity where query like '%left_behind%' and state = 'active' and pid <> pg_backend_pid() and datname = current_database()",
      )
      return rows.length === 0
    })
    const isFree = () =>
      world.raw.query("select * from item where id = 'locked' for update nowait").then(
        () => true,
        () => false,
      )
    await until('its locks are gone', isFree)
  })

  it('rolls back', async () => {
    const { session, tx } = await begun(world.engine)
    await tx.query("insert into item (id) values ('rolled back')")
    await session.rollback()
    session.release('keep')
    expect(await items()).not.toContain('rolled back')
  })

  it.each(['read-committed', 'repeatable-read', 'serializable'] as const)('runs at %s', async (isolation) => {
    const { session, tx } = await begun(world.engine, { isolation })
    const { rows } = await tx.query<{ level: string }>("select current_setting('transaction_isolation') as level")
    expect(rows[0]?.level.replace(' ', '-')).toBe(isolation)
    await session.commit()
    session.release('keep')
  })

  it('that only reads has no number, and refuses to write', async () => {
    const { session, tx } = await begun(world.engine, { readOnly: true })
    expect(session.trace).toBeUndefined()
    expect((await tx.query('select 1 as one')).rows).toEqual([{ one: 1 }])
    const refused = tx.query("insert into item (id) values ('x')")
    await expect(refused).rejects.toMatchObject({ code: 'TRANSACTION_READ_ONLY', cause: { code: '25006' } })
    expect(session.poisoned).toBeDefined()
    await session.rollback()
    session.release('keep')
  })

  it('that was declared read-only runs a body that writes once', async () => {
    let bodies = 0
    const writing = world.db.transact(
      (tx) => {
        bodies += 1
        return tx.query("insert into item (id) values ('read-only')")
      },
      { readOnly: true },
    )
    expect(await codeOf(writing)).toBe('TRANSACTION_READ_ONLY')
    expect(bodies).toBe(1)
  })

  it('with a key needs no number of its own, once its connection is known', async () => {
    const traces: unknown[] = []
    for (let time = 0; time < 8; time++) {
      const { session } = await begun(world.engine, { traced: false })
      traces.push(session.trace)
      await session.commit()
      session.release('keep')
    }
    expect(traces).toContain(undefined)
  })

  it('refuses everything once it has ended', async () => {
    const { session, tx } = await begun(world.engine)
    await session.commit()
    expect(await codeOf(tx.query('select 1'))).toBe('TRANSACTION_OVER')
    session.release('keep')
    expect(await codeOf(tx.db.query('select 1'))).toBe('TRANSACTION_OVER')
    expect(await codeOf(tx.savepoint(async () => undefined))).toBe('TRANSACTION_OVER')
  })

  it('runs statements that were started side by side one after the other, without a warning of the driver', async () => {
    const warnings: Error[] = []
    const onWarning = (warning: Error) => warnings.push(warning)
    process.on('warning', onWarning)
    const { session, tx } = await begun(world.engine)
    const answers = await Promise.all([1, 2, 3, 4, 5].map((n) => tx.query<{ n: number }>('select $1::int as n', [n])))
    expect(answers.map(({ rows }) => rows[0]?.n)).toEqual([1, 2, 3, 4, 5])
    // Not awaited, and yet before COMMIT.
    const floating = tx.query("insert into item (id) values ('floating 1')")
    const second = tx.query("insert into item (id) values ('floating 2')")
    await session.commit()
    await Promise.all([floating, second])
    session.release('keep')
    expect(await items()).toEqual(expect.arrayContaining(['floating 1', 'floating 2']))
    process.off('warning', onWarning)
    expect(warnings).toEqual([])
  })
})

describe('an error', () => {
  it('poisons the handle, and the first one stays', async () => {
    const { session, tx } = await begun(world.engine)
    const first = await tx.query('select * from nowhere').catch((error: unknown) => error)
    expect(session.poisoned?.error).toBe(first)
    await expect(tx.query('select 1')).rejects.toBe(first)
    await expect(tx.insertOnce('item', { id: 'z' }, ['id'])).rejects.toBe(first)
    await expect(session.commit()).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', cause: first })
    await session.rollback()
    session.release('keep')
  })

  it('that a statement without anybody waiting for it meets keeps COMMIT from being sent', async () => {
    const { session, tx } = await begun(world.engine)
    await tx.query("insert into item (id) values ('never')")
    const floating = codeOf(tx.query('select 1/0'))
    expect(await codeOf(session.commit())).toBe('TRANSACTION_ABORTED')
    expect(await floating).toBe('22012')
    await session.rollback()
    session.release('keep')
    expect(await items()).not.toContain('never')
  })

  it('that went unseen is told by the tag of COMMIT', async () => {
    const { session } = await begun(world.engine)
    const backend = session.trace?.['pid']
    // A failed statement that the session did not see: the transaction is dead, and COMMIT says ROLLBACK.
    const client = (
      world.pool as unknown as { _clients: { query(text: string): Promise<{ rows: { pid: string }[] }> }[] }
    )._clients
    for (const candidate of client) {
      const ours = await candidate.query('select pg_backend_pid()::text as pid')
      if (ours.rows[0]?.pid === backend) await candidate.query('select 1/0').catch(() => undefined)
    }
    const error = await session.commit().catch((error: unknown) => error)
    expect(error).toMatchObject({ code: 'COMMIT_ROLLED_BACK' })
    expect(world.engine.classify(error, 'committing')).toMatchObject({ outcome: 'aborted', help: 'permanent' })
    session.release('keep')
  })

  it('of a transaction that was ended behind its back is one of design', async () => {
    const { session } = await begun(world.engine)
    const backend = session.trace?.['pid']
    const clients = (
      world.pool as unknown as { _clients: { query(text: string): Promise<{ rows: { pid: string }[] }> }[] }
    )._clients
    for (const candidate of clients) {
      const ours = await candidate.query('select pg_backend_pid()::text as pid')
      if (ours.rows[0]?.pid === backend) await candidate.query('commit')
    }
    const error = await session.commit().catch((error: unknown) => error)
    expect(error).toMatchObject({ code: 'TRANSACTION_ENDED_ELSEWHERE' })
    expect(world.engine.classify(error, 'committing')).toMatchObject({ alarm: true, connection: 'discard' })
    session.release('discard')
  })

  it('of the connection poisons an idle handle, and does not end the process', async () => {
    const { session, tx } = await begun(world.engine)
    await world.raw.query('select pg_terminate_backend($1)', [session.trace?.['pid']])
    await until('the handle is poisoned', () => session.poisoned !== undefined)
    await expect(tx.query('select 1')).rejects.toBe(session.poisoned?.error)
    expect(world.engine.classify(session.poisoned?.error, 'body')).toMatchObject({
      help: 'transient',
      connection: 'discard',
    })
    session.release('discard')
  })

  it('of the connection in the middle of a statement poisons too, also inside a savepoint', async () => {
    const { session, tx } = await begun(world.engine)
    const work = tx.savepoint(() => tx.query('select pg_sleep(60)')).catch((error: unknown) => error)
    await until('it sleeps', async () => {
      const { rows } = await world.raw.query(
        "select 1 from pg_stat_activity where query like '%pg_sleep(60)%' and state = 'active' and pid <> pg_backend_pid() and datname = current_database()",
      )
      return rows.length === 1
    })
    await world.raw.query('select pg_terminate_backend($1)', [session.trace?.['pid']])
    expect(await work).toMatchObject({ code: '57P01' })
    expect(session.poisoned).toBeDefined()
    session.release('discard')
  })
})

describe('a savepoint', () => {
  it('scopes an error, so that the transaction goes on', async () => {
    const { session, tx } = await begun(world.engine)
    await tx.query("insert into item (id) values ('sp before')")
    const failed = tx.savepoint(async () => {
      await tx.query("insert into item (id) values ('sp inside')")
      await tx.query("insert into item (id) values ('sp before')")
    })
    expect(await codeOf(failed)).toBe('23505')
    expect(session.poisoned).toBeUndefined()
    await tx.query("insert into item (id) values ('sp after')")
    await session.commit()
    session.release('keep')
    const there = await items()
    expect(there).toEqual(expect.arrayContaining(['sp before', 'sp after']))
    expect(there).not.toContain('sp inside')
  })

  it('whose work swallowed an error fails, and undoes it', async () => {
    const { session, tx } = await begun(world.engine)
    const swallowed = tx.savepoint(async () => {
      await tx.query("insert into item (id) values ('sp swallowed')")
      await tx.query('select 1/0').catch(() => undefined)
      expect(await codeOf(tx.query('select 1'))).toBe('22012')
    })
    expect(await codeOf(swallowed)).toBe('22012')
    await session.commit()
    session.release('keep')
    expect(await items()).not.toContain('sp swallowed')
  })

  it('can be nested, and an inner failure leaves the outer work', async () => {
    const { session, tx } = await begun(world.engine)
    await tx.savepoint(async () => {
      await tx.query("insert into item (id) values ('sp outer')")
      expect(await codeOf(tx.savepoint(() => tx.query('select 1/0')))).toBe('22012')
      await tx.savepoint(() => tx.query("insert into item (id) values ('sp inner')"))
    })
    await session.commit()
    session.release('keep')
    expect(await items()).toEqual(expect.arrayContaining(['sp outer', 'sp inner']))
  })

  it.each([
    ['half done', async (started: Promise<unknown>) => void (await started)],
    ['just begun', async () => undefined],
  ])('that was not awaited, %s, keeps COMMIT from being sent', async (_, before) => {
    let bodies = 0
    const failing = world.db.transact(async (tx) => {
      bodies += 1
      let start: () => void = () => undefined
      const started = new Promise<void>((resolve) => {
        start = resolve
      })
      const forgotten = tx.savepoint(async () => {
        await tx.query("insert into item (id) values ('sp half')")
        start()
        await new Promise<void>((resolve) => tx.signal.addEventListener('abort', () => resolve()))
        throw new Error('undo')
      })
      forgotten.catch(() => undefined)
      await before(started)
    })
    expect(await codeOf(failing)).toBe('SAVEPOINT_ORDER')
    expect(bodies).toBe(1)
    expect(await items()).not.toContain('sp half')
  })

  it('does not take along what ran beside it', async () => {
    const { session, tx } = await begun(world.engine)
    const results = await Promise.allSettled([
      tx.savepoint(async () => {
        await tx.query("insert into item (id) values ('sp a')")
        await tx.query('select pg_sleep(0.02)')
        throw new Error('undo a')
      }),
      tx.query("insert into item (id) values ('sp beside')"),
      tx.savepoint(() => tx.query("insert into item (id) values ('sp b')")),
    ])
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled'])
    await session.commit()
    session.release('keep')
    const there = await items()
    expect(there).toEqual(expect.arrayContaining(['sp beside', 'sp b']))
    expect(there).not.toContain('sp a')
  })
})
