// The statements of a key prepared on a connection: called by name where the backend has them, parsed again where it
// does not, and right in both cases.

import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Key, scope } from '../../../src/identity/index.js'
import { type PostgresDomain, postgres } from '../../../src/stores/postgres/index.js'
import { codeOf, postgresWorld, type World } from './world.js'

let world: World
let pool: pg.Pool
let db: PostgresDomain<pg.PoolClient>
let texts: string[]
let parsed: (string | undefined)[]
let number = 0

beforeAll(async () => {
  world = await postgresWorld()
  afterAll(() => pool.end())
})

// One connection, so that each transaction is on the one before it, and a store that has met no trouble yet.
beforeEach(async () => {
  await pool?.end()
  pool = new pg.Pool({ connectionString: world.url, max: 1 })
  db = postgres({ pool, name: 'kept' })
  texts = []
  parsed = []
  const client = (await pool.connect()) as pg.PoolClient & {
    connection: { parse(statement: { readonly name?: string }): void }
  }
  const { query, connection } = client
  const { parse } = connection
  connection.parse = (statement) => {
    parsed.push(statement.name)
    return parse.call(connection, statement)
  }
  Object.assign(client, {
    query: (...values: unknown[]) => {
      texts.push(typeof values[0] === 'string' ? values[0] : String((values[0] as { text?: string }).text))
      return Reflect.apply(query, client, values)
    },
  })
  client.release()
})

type Body = Parameters<typeof db.transact<unknown>>[0]

/** A transaction under a key of its own that inserts an item; its name, and what it sent. */
async function once(body: Body = () => undefined, options: { readonly attempts?: number } = {}) {
  number += 1
  const id = `kept-${number}`
  texts.length = 0
  parsed.length = 0
  const given = { key: { scope: scope('kept'), key: id as Key }, content: { value: id }, ...options }
  const insert = async (tx: Parameters<Body>[0]) => {
    await tx.query('insert into item (id) values ($1)', [id])
    await body(tx)
    return id
  }
  const first = await db.transact(insert, given)
  const sent = [...texts]
  // The repeat, on a connection of another pool, is told what was stored.
  expect([first, await world.db.transact(insert, given)]).toEqual([id, id])
  const { rowCount } = await world.raw.query('select 1 from item where id = $1', [id])
  expect(rowCount).toBe(1)
  return sent
}

/** The names that the last transaction had parsed for Reprise's own statements; those of the body have none. */
const prepared = () => parsed.filter((name) => name?.startsWith('reprise'))
const names = async () =>
  (await pool.query<{ name: string }>("select name from pg_prepared_statements where name like 'reprise%'")).rows.map(
    ({ name }) => name,
  )

describe('statements of a key', () => {
  it('are prepared by the second transaction of a connection, and called from then on', async () => {
    await once()
    expect((await once()).length).toBe(3)
    const first = prepared()
    expect(first.length).toBeGreaterThanOrEqual(2)
    expect(await names()).toEqual(expect.arrayContaining(first))
    expect([(await once()).length, prepared()]).toEqual([3, []])
  })

  it('are shared by the stores on a pool', async () => {
    await once()
    await once()
    db = postgres({ pool, name: 'another' })
    expect([(await once()).length, prepared()]).toEqual([3, []])
  })

  it.each(['DEALLOCATE ALL', 'DISCARD ALL'])('are prepared again after %s, with nothing run twice', async (text) => {
    await once()
    await once()
    await pool.query(text)
    let bodies = 0
    const sent = await once(() => {
      bodies += 1
    })
    // What failed, ROLLBACK, the same once more, the body, the end.
    expect([sent.length, sent[1], bodies]).toEqual([5, 'ROLLBACK', 1])
    expect([(await once()).length, prepared()]).toEqual([3, []])
  })

  it('are prepared once more where somebody else has them under their names, and then without names', async () => {
    await once()
    await once()
    const theirs = prepared()
    await pool.end()
    pool = new pg.Pool({ connectionString: world.url, max: 1 })
    db = postgres({ pool, name: 'kept' })
    await once()
    for (const name of theirs) await pool.query(`prepare ${name} as select 1`)
    await once()
    const before = await names()
    expect(before).toEqual(expect.arrayContaining(theirs))
    await once()
    expect(await names()).toEqual(before)
  })

  it('are given up where that happens again and again', async () => {
    await once()
    for (let time = 0; time < 3; time++) {
      await once()
      await pool.query('DEALLOCATE ALL')
      await once()
    }
    expect([(await once()).length, prepared()]).toEqual([3, []])
    expect(await names()).toEqual([])
  })

  it('are found missing at the end where a body threw them away: nothing is committed, and it is tried again', async () => {
    await once()
    await once()
    let bodies = 0
    const forget: Body = async (tx) => {
      bodies += 1
      if (bodies === 1) await tx.query('DEALLOCATE ALL')
    }
    await once(forget)
    expect(bodies).toBe(2)
  })

  it('do not commit over a marker that is gone or is of another claim', async () => {
    await once()
    await once()
    const strange: Body[] = [
      (tx) => tx.query("delete from reprise_marker where id = (select id from reprise_marker where state = 'claimed')"),
      (tx) => tx.query("update reprise_marker set token = 'another' where state = 'claimed'"),
    ]
    for (const body of strange) {
      expect(await codeOf(once(body))).toBe('MARKER_INVALID')
      const { rowCount } = await world.raw.query('select 1 from item where id = $1', [`kept-${number}`])
      expect(rowCount).toBe(0)
    }
  })
})

describe('the encoding that a body sets for its own statements', () => {
  it.each(['LATIN1', 'SJIS', 'SQL_ASCII'])('%s changes nothing of what is stored', async (encoding) => {
    const value = 'é日本€'
    const told: unknown[] = []
    // On a connection that was used before, and on a new one.
    for (const key of ['first', 'second']) {
      const call = () =>
        db.transact(
          async (tx) => {
            await tx.query(`SET LOCAL client_encoding = '${encoding}'`)
            return value
          },
          { content: 'none', key: { scope: scope(encoding), key: `encoded-${key}` as Key } },
        )
      told.push(await call(), await call())
    }
    expect(told).toEqual([value, value, value, value])
    // It ends with its transaction.
    expect((await pool.query('show client_encoding')).rows).toEqual([{ client_encoding: 'UTF8' }])
  })

  it('a text with NUL, which PostgreSQL cannot hold, is refused and leaves the key free', async () => {
    const store = db.operation('nul', {
      scope: () => scope('nul'),
      key: (key: Key) => key,
      window: '1h',
      codec: { name: 'plain', encode: (text: string) => text, decode: (text: string) => text },
      run: (tx: { readonly attempt: number }, key: Key) =>
        key === ('with-nul-1' as Key) && tx.attempt === 1 ? 'a\0b' : 'ab',
    } as never) as unknown as (key: Key) => Promise<string>
    expect(await codeOf(store('with-nul-1' as Key))).toBe('ARGUMENT_INVALID')
    expect(await store('with-nul-2' as Key)).toBe('ab')
  })
})
