// Claim and outcome prepared on a connection: called by name where the backend has them, sent as text where it does
// not, and right in both cases.

import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Key, scope } from '../../../src/identity/index.js'
import { type PostgresDomain, postgres } from '../../../src/stores/postgres/index.js'
import { codeOf, postgresWorld, type World } from './world.js'

let world: World
let pool: pg.Pool
let db: PostgresDomain<pg.PoolClient>
let texts: string[]
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
  const client = await pool.connect()
  const { query } = client
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

const says = (sent: readonly string[], word: string) => sent.filter((text) => text.includes(word)).length

describe('statements of a key', () => {
  it('are prepared by the second transaction of a connection, and called from then on', async () => {
    expect(says(await once(), 'EXECUTE')).toBe(0)
    const second = await once()
    expect([second.length, says(second, 'PREPARE'), says(second, 'EXECUTE')]).toEqual([3, 1, 2])
    const third = await once()
    expect([third.length, says(third, 'PREPARE'), says(third, 'EXECUTE')]).toEqual([3, 0, 2])
  })

  it('are shared by the stores on a pool', async () => {
    await once()
    await once()
    db = postgres({ pool, name: 'another' })
    await once()
    const sent = await once()
    expect([sent.length, says(sent, 'PREPARE'), says(sent, 'EXECUTE')]).toEqual([3, 0, 2])
  })

  it('are sent as text where the backend has lost them, with nothing run twice', async () => {
    await once()
    await once()
    await pool.query('DEALLOCATE ALL')
    let bodies = 0
    const sent = await once(() => {
      bodies += 1
    })
    // The call that failed, ROLLBACK, the same as text, the body, COMMIT.
    expect([sent.length, sent[1], says(sent, 'EXECUTE'), bodies]).toEqual([5, 'ROLLBACK', 1, 1])
    // And prepared again by the next one.
    expect(says(await once(), 'PREPARE')).toBe(1)
  })

  it('are sent as text where somebody else has prepared them', async () => {
    await once()
    const sent = await once()
    const [, prepared = ''] = /(PREPARE .*?); PREPARE/s.exec(sent[0] ?? '') ?? []
    await pool.end()
    pool = new pg.Pool({ connectionString: world.url, max: 1 })
    db = postgres({ pool, name: 'kept' })
    await once()
    await pool.query(prepared)
    await once()
    expect((await pool.query('select 1 from pg_prepared_statements')).rowCount).toBe(1)
  })

  it('are given up where that happens again and again', async () => {
    await once()
    for (let time = 0; time < 3; time++) {
      await once()
      await pool.query('DEALLOCATE ALL')
      await once()
    }
    const sent = await once()
    expect([sent.length, says(sent, 'PREPARE'), says(sent, 'EXECUTE')]).toEqual([3, 0, 0])
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
      expect(says(texts, 'EXECUTE')).toBe(2)
      const { rowCount } = await world.raw.query('select 1 from item where id = $1', [`kept-${number}`])
      expect(rowCount).toBe(0)
    }
  })
})
