// The statement by which a message from a broker arrives, inside the transaction of its handler: prepared where the
// backend stays the same one, and right where it does not.

import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest'
import type { Arrival, Message } from '../../../src/messaging/index.js'
import { type PostgresDomain, postgres } from '../../../src/stores/postgres/index.js'
import { startPgbouncer } from '../../servers/pgbouncer.js'
import { patient, postgresWorld, type World } from './world.js'

const reader = { name: 'receipts', kind: 'consumer', reads: 'inbox' } as const

const arrival = (id: string, order: Arrival['order'] = 'key'): Arrival => {
  const message = { source: '/shop', id, type: 't', subject: undefined, key: `of ${id}`, atMs: 0 } as Message<never>
  return { reader, order, message, stored: { codec: undefined, data: '1' }, fingerprint: `of ${id}` }
}

let world: World
let pool: pg.Pool
let db: PostgresDomain<pg.PoolClient>
let bodies = 0

const arrives = async (given: Arrival, on: PostgresDomain<pg.PoolClient> = db): Promise<string> => {
  const { is } = await on.transact((tx) => {
    bodies += 1
    return on.messages.arrive(tx, given, 0)
  }, patient)
  return is
}
const kept = async (): Promise<readonly string[]> => {
  const { rows } = await pool.query<{ statement: string }>('select statement from pg_prepared_statements')
  return rows.map(({ statement }) => statement).filter((text) => text.includes('reprise_processed'))
}

beforeAll(async () => {
  world = await postgresWorld()
})
beforeEach(async () => {
  await world.raw.query('TRUNCATE reprise_lane, reprise_processed, reprise_inbox')
  bodies = 0
  // One connection, so that each transaction is on the one before it.
  pool = new pg.Pool({ connectionString: world.url, max: 1 })
  db = postgres({ pool, name: 'kept' })
})
afterEach(() => pool.end())

describe('the arrival of a message', () => {
  it('is prepared once on a connection, from its second transaction on', async () => {
    expect(await arrives(arrival('1'))).toBe('new')
    expect(await kept()).toEqual([])
    for (const id of ['2', '3', '4']) expect(await arrives(arrival(id))).toBe('new')
    expect(await arrives(arrival('3'))).toBe('duplicate')
    expect(await arrives(arrival('5', 'none'))).toBe('new')
    expect(await arrives(arrival('6', 'none'))).toBe('new')
    // In order per key, and in none.
    expect(await kept()).toHaveLength(2)
    expect(bodies).toBe(7)
  })

  it.each(['DEALLOCATE ALL', 'DISCARD ALL'])('is repeated once after %s, and not prepared any more', async (text) => {
    for (const id of ['1', '2']) await arrives(arrival(id))
    await pool.query(text)
    expect(await arrives(arrival('3'))).toBe('new')
    expect(bodies).toBe(4)
    for (const id of ['4', '5']) expect(await arrives(arrival(id))).toBe('new')
    expect(bodies).toBe(6)
    expect(await kept()).toEqual([])
    const { rows } = await world.raw.query('SELECT id FROM reprise_processed ORDER BY id')
    expect(rows.map(({ id }) => id)).toEqual(['1', '2', '3', '4', '5'])
  })
})

describe('behind a pooler of transactions', () => {
  it('is new once for each message, though backends change under its connections', async () => {
    const { hostname, port } = new URL(inject('postgresUrl'))
    const bouncer = await startPgbouncer({
      mode: 'transaction',
      upstream: { host: hostname, port: Number(port) },
      poolSize: 2,
    })
    afterAll(() => bouncer.dispose())
    const pooled = new pg.Pool({ connectionString: bouncer.url(new URL(world.url).pathname.slice(1)), max: 6 })
    const behind = postgres({ pool: pooled, name: 'behind' })
    const answers: string[] = []
    for (let round = 0; round < 6; round += 1) {
      const ids = Array.from({ length: 12 }, (_, place) => `${round}-${place}`)
      answers.push(...(await Promise.all(ids.map((id) => arrives(arrival(id), behind)))))
    }
    await pooled.end()
    expect(answers).toEqual(Array.from({ length: 72 }, () => 'new'))
    // Some found another backend behind their connection, and were repeated.
    expect(bodies).toBeGreaterThan(72)
    const { rows } = await world.raw.query('SELECT count(*)::int AS processed FROM reprise_processed')
    expect(rows).toEqual([{ processed: 72 }])
  })
})
