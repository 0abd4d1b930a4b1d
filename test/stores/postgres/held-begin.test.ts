// BEGIN of a transaction without a key, held back until the first statement: one write for both, nothing where the body
// sends nothing, and the same outcome whatever happens to the connection or is put around it.

import type { Socket } from 'node:net'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { mintKey, scope } from '../../../src/identity/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { gate } from '../../../src/testing/conformance/gate.js'
import { writesOf } from './counted-writes.js'
import { codeOf, postgresWorld, until, type World } from './world.js'

let world: World
const opened: { end(): Promise<void> }[] = []
beforeAll(async () => {
  world = await postgresWorld()
})
afterEach(async () => {
  await Promise.all(opened.splice(0).map((one) => one.end()))
})

/** A store on one connection, which it knows already, whose writes to the socket are counted. */
async function lone(config: pg.PoolConfig = {}, known = true) {
  const pool = new pg.Pool({ connectionString: world.url, max: 1, ...config })
  opened.push(pool)
  const db = postgres({ pool, name: 'held' })
  if (known) for (let time = 0; time < 2; time++) await db.transact((tx) => tx.query('select 1'))
  const client = await pool.connect()
  const writes = writesOf(client)
  client.release()
  return { pool, db, client, writes }
}

const items = async () => (await world.raw.query('select id from item order by id')).rows.map(({ id }) => id)
const insert = (id: string): [text: string, values: string[]] => ['insert into item (id) values ($1)', [id]]

describe('a transaction without a key', () => {
  it('around one statement is two writes: BEGIN with the statement, and COMMIT', async () => {
    const { db, writes } = await lone()
    const { rows } = await db.transact((tx) => tx.query(`${insert('two')[0]} returning id, amount`, ['two']))
    expect(rows).toEqual([{ id: 'two', amount: 0 }])
    expect(writes).toHaveLength(2)
    expect(writes[0]?.toString('latin1')).toContain('returning id')
    expect(writes[1]?.toString('latin1')).toContain('COMMIT')
    expect(await items()).toContain('two')
  })

  it('with an empty body sends nothing, and is a success', async () => {
    const { db, client, writes } = await lone()
    let after = 0
    const result = await db.transact((tx) => {
      tx.afterCommit(() => {
        after += 1
      })
      return 'nothing'
    })
    expect([result, after, writes.length]).toEqual(['nothing', 1, 0])
    expect(client.getTransactionStatus()).toBe('I')
    await expect(
      db.transact(() => {
        throw new Error('of the body')
      }),
    ).rejects.toThrow('of the body')
    expect(writes).toEqual([])
  })

  it('with an empty body on a connection of which nothing is known sends nothing either', async () => {
    const { db, writes } = await lone({}, false)
    expect(await db.transact(() => 1)).toBe(1)
    expect(writes).toEqual([])
  })

  it('whose body may run only once begins before it', async () => {
    const { db, writes } = await lone()
    await db.transact(() => undefined, { attempts: 1 })
    expect(writes.map((bytes) => bytes.toString('latin1').slice(5, 11))).toEqual(['BEGIN ', 'COMMIT'])
  })

  it.each(['read-committed', 'repeatable-read', 'serializable'] as const)('has its settings: %s', async (isolation) => {
    const { db, writes } = await lone()
    const text = `select current_setting('transaction_isolation') as isolation, current_setting('lock_timeout') as lock,
      current_setting('transaction_read_only') as reads, current_setting('statement_timeout') <> '0' as ends`
    for (const readOnly of [false, true]) {
      const { rows } = await db.transact((tx) => tx.query(text), { isolation, readOnly, lockWait: '777ms' })
      const reads = readOnly ? 'on' : 'off'
      expect(rows).toEqual([{ isolation: isolation.replace('-', ' '), lock: '777ms', reads, ends: true }])
    }
    expect(writes).toHaveLength(4)
  })

  it('begins with whatever comes first', async () => {
    const { db, writes } = await lone()
    type Db = Parameters<Parameters<typeof db.transact>[0]>[0]
    const firsts: Record<string, (tx: Db) => Promise<unknown>> = {
      config: (tx) => tx.db.query({ text: 'select $1::int as n', values: [1], rowMode: 'array' }),
      named: (tx) => tx.db.query({ name: 'mine', text: 'select $1::int as n', values: [1] }),
      savepoint: (tx) => tx.savepoint(async () => tx.query('select 1')),
      row: (tx) => tx.insertOnce('item', { id: 'first' }, ['id']),
      lock: (tx) => tx.lockRow('item', { id: 'first' }, { wait: 100 } as never),
      'several at once': (tx) => Promise.all([tx.query('select 1'), tx.query('select 2')]),
      'several in one text': (tx) => tx.query('select 1; select 2'),
      'nothing at all': (tx) => tx.query(''),
    }
    for (const [name, first] of Object.entries(firsts)) {
      writes.length = 0
      await db.transact(async (tx) => {
        await first(tx)
        const { rows } = await tx.query('select now() = statement_timestamp() as alone')
        expect(rows, name).toEqual([{ alone: false }])
      })
      expect(writes[0]?.toString('latin1'), name).toMatch(/BEGIN|reprise_/)
      expect(writes.at(-1)?.toString('latin1'), name).toContain('COMMIT')
    }
    // The name of the body's own statement is kept as pg keeps it.
    const { rows } = await db.transact((tx) =>
      tx.db.query({ name: 'mine', text: 'select $1::int as n', values: [7] } as never),
    )
    expect(rows).toEqual([{ n: 7 }])
  })

  it('begins with the first statement of a query builder', async () => {
    const { pool } = await lone()
    const db = postgres({
      pool,
      name: 'built',
      bind: (_client, inner) =>
        new Kysely<{ item: { id: string } }>({ dialect: new PostgresDialect({ pool: inner as never }) }),
    })
    await db.transact(async (tx) => {
      await tx.db.transaction().execute((inner) => inner.insertInto('item').values({ id: 'built' }).execute())
    })
    expect(await items()).toContain('built')
  })

  it('whose first statement fails has failed, and its connection is sound', async () => {
    const { db, client } = await lone()
    const { processID } = client as unknown as { processID: number }
    for (const text of ['select * from nowhere', 'select 1/0', 'this is no statement']) {
      expect(await codeOf(db.transact((tx) => tx.query(text)))).toMatch(/^(42P01|22012|42601)$/)
    }
    const circular: unknown[] = []
    circular.push({ circular })
    await expect(db.transact((tx) => tx.query('select $1::json', circular))).rejects.toThrow('circular')
    const { rows } = await db.transact((tx) => tx.query('select pg_backend_pid() as pid'))
    expect(rows).toEqual([{ pid: processID }])
  })

  it('gives an error of its first statement a stack that leads to whoever sent it', async () => {
    const { db } = await lone()
    const error = await db.transact((tx) => tx.query('select 1/0')).catch((error: unknown) => error)
    expect((error as Error).stack).not.toContain('onStreamRead')
  })
})

describe('what was prepared for BEGIN', () => {
  it.each(['DEALLOCATE ALL', 'DISCARD ALL'])(
    'and is gone after %s is prepared again, nothing run twice',
    async (text) => {
      const { db, pool } = await lone()
      for (let time = 1; time <= 5; time++) {
        await pool.query(text)
        let bodies = 0
        await db.transact(async (tx) => {
          bodies += 1
          await tx.query(...insert(`${text} ${time}`))
        })
        expect(bodies).toBe(1)
      }
      expect((await items()).filter((id) => id.startsWith(text))).toHaveLength(5)
      // After three surprises nothing is prepared any more.
      expect((await pool.query("select 1 from pg_prepared_statements where name like 'reprise%'")).rowCount).toBe(0)
    },
  )

  it('by somebody else under its name is parsed without a name', async () => {
    const { pool, db } = await lone()
    const { rows } = await pool.query<{ statement: string; name: string }>(
      "select name, statement from pg_prepared_statements where name like 'reprise%'",
    )
    expect(rows).toHaveLength(2)
    const other = await lone({}, false)
    await other.db.transact((tx) => tx.query('select 1'))
    for (const { name } of rows) await other.pool.query(`prepare ${name} as select 1`)
    expect((await other.db.transact((tx) => tx.query('select 2 as two'))).rows).toEqual([{ two: 2 }])
    expect((await db.transact((tx) => tx.query('select 3 as three'))).rows).toEqual([{ three: 3 }])
  })

  it('counts as prepared once it is parsed, also where the statement after it failed', async () => {
    const { pool, db } = await lone({}, false)
    await db.transact((tx) => tx.query('select 1'))
    expect(await codeOf(db.transact((tx) => tx.query('select 1/0')))).toBe('22012')
    const count = async () =>
      (await pool.query("select 1 from pg_prepared_statements where name like 'reprise%'")).rowCount
    expect(await count()).toBe(2)
    await db.transact((tx) => tx.query('select 1'))
    expect(await count()).toBe(2)
  })
})

describe('a server', () => {
  it('that ends idle transactions fast does not end one whose body has sent nothing', async () => {
    const { db, client } = await lone({ options: '-c idle_in_transaction_session_timeout=100' })
    const { processID } = client as unknown as { processID: number }
    const attempts: number[] = []
    const { rows } = await db.transact(async (tx) => {
      attempts.push(tx.attempt)
      await new Promise((resolve) => setTimeout(resolve, 400))
      return tx.query('select pg_backend_pid() as pid')
    })
    expect([attempts, rows]).toEqual([[1], [{ pid: processID }]])
  })

  it('that ends idle sessions may end it before the first statement: it is repeated on another connection', async () => {
    const { db, client } = await lone()
    const { processID } = client as unknown as { processID: number }
    const gone = async () =>
      (await world.raw.query('select 1 from pg_stat_activity where pid = $1', [processID])).rowCount === 0
    const attempts: number[] = []
    await db.transact(async (tx) => {
      attempts.push(tx.attempt)
      if (tx.attempt === 1) {
        // Past the handle, on the connection of this transaction, which is idle.
        await client.query("set idle_session_timeout = '150ms'").catch(() => undefined)
        await until('the server has ended it', gone)
      }
      await tx.query(...insert('ended'))
    })
    expect(attempts).toEqual([1, 2])
    expect((await items()).filter((id) => id === 'ended')).toHaveLength(1)
  })
})

it('begins its body once in vain at most, however many connections are dead', async () => {
  const pool = new pg.Pool({ connectionString: world.url, max: 6, idleTimeoutMillis: 0 })
  pool.on('error', () => undefined)
  opened.push(pool)
  const db = postgres({ pool, name: 'held', deadline: '60s', connectionWait: '30s' })
  // All of them known, so that BEGIN would be held back on each.
  for (let round = 0; round < 2; round++) {
    const all = gate(6)
    await Promise.all(
      Array.from({ length: 6 }, () => db.transact((tx) => tx.query('select 1').then(() => all.arrive()))),
    )
  }
  expect(pool.idleCount).toBe(6)
  // As where a machine in between forgot them: nobody is told, and what is sent is answered by a reset.
  let dead = 0
  const clients = await Promise.all(Array.from({ length: 6 }, () => pool.connect()))
  for (const client of clients as (pg.PoolClient & { connection: { stream: Socket } })[]) {
    const { stream } = client.connection
    stream.write = () => {
      dead += 1
      stream.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }))
      return false
    }
    client.release()
  }
  const attempts: number[] = []
  await db.transact(
    async (tx) => {
      attempts.push(tx.attempt)
      await tx.query(...insert('dead'))
    },
    { attempts: 2 },
  )
  expect(dead).toBe(6)
  expect(attempts).toEqual([1, 7])
  expect((await items()).filter((id) => id === 'dead')).toHaveLength(1)
})

describe('a tracer around the client', () => {
  type Query = (...values: unknown[]) => unknown
  const around: Record<
    string,
    { readonly wrap: (query: Query) => Query; readonly first: RegExp; readonly sees: string }
  > = {
    'that reads the text': { wrap: (query) => query, first: /^BEGIN .*; insert into item/s, sees: 'batch' },
    'that puts its own function in place of the callback': {
      wrap:
        (query) =>
        (config, ...rest) => {
          const given = config as { callback?: Query }
          const { callback } = given
          if (typeof callback === 'function') given.callback = (...values) => callback(...values)
          return query(config, ...rest)
        },
      first: /^BEGIN .*; insert into item/s,
      sees: 'batch',
    },
    'that sends it a moment later': {
      wrap:
        (query) =>
        async (...values) => {
          await undefined
          return query(...values)
        },
      first: /^BEGIN/,
      sees: 'texts',
    },
    'that makes a copy of it': {
      wrap:
        (query) =>
        (config, ...rest) =>
          query(typeof config === 'object' ? { ...config } : config, ...rest),
      first: /^BEGIN/,
      sees: 'texts',
    },
    'that takes texts alone': {
      wrap:
        (query) =>
        (config, ...rest) => {
          if (typeof config !== 'string') throw new TypeError('a text is needed')
          return query(config, ...rest)
        },
      first: /^BEGIN/,
      sees: 'texts',
    },
  }

  it.each(Object.entries(around))('%s leaves it right', async (name, { wrap, first, sees }) => {
    const { db, client } = await lone()
    const texts: string[] = []
    const wrapped = wrap(client.query.bind(client) as Query)
    Object.assign(client, {
      query: (...values: unknown[]) => {
        texts.push(typeof values[0] === 'string' ? values[0] : String((values[0] as { text?: string }).text))
        return wrapped(...values)
      },
    })
    for (const time of [1, 2]) {
      texts.length = 0
      const id = `${name} ${time}`
      await db.transact((tx) => tx.query(...insert(id)))
      expect(texts[0]).toMatch(first)
      if (time === 2) expect(texts).toHaveLength(sees === 'batch' ? 2 : 3)
      expect((await items()).filter((one) => one === id)).toHaveLength(1)
      // And one with a key beside it.
      const key = { scope: scope('traced'), key: mintKey() }
      expect(await db.transact(() => time, { key, content: 'none' })).toBe(time)
    }
  })

  it('finds a client in its pipeline mode begun before its body', async () => {
    const { db } = await lone({ pipeline: true } as pg.PoolConfig)
    const { rows } = await db.transact((tx) => tx.query('select 1 as one'))
    expect(rows).toEqual([{ one: 1 }])
  })
})

describe('a limit of the driver on a statement', () => {
  it('ends the wait for the first one too', async () => {
    // On a busy machine a short limit also ends what comes before the statement, and that has a code.
    let code: unknown = 'none yet'
    for (const limitMs of [1_500, 10_000, 40_000]) {
      const { db } = await lone({ query_timeout: limitMs })
      const sleeping = db.transact((tx) => tx.query('select pg_sleep(60)'), { attempts: 2, deadline: '100s' })
      code = await codeOf(sleeping)
      if (code === undefined) break
    }
    expect(code).toBe(undefined)
    await world.raw.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where query like '%pg_sleep(60)%' and pid <> pg_backend_pid() and datname = current_database()",
    )
  })
})
