// Duplicates that are to be refused at once, between connections: what each manifest says of it holds, also where much
// else is going on.

import pg from 'pg'
import { describe, expect, inject, it } from 'vitest'
import { type Key, mintKey } from '../../../src/identity/index.js'
import { postgres, postgresManifest } from '../../../src/stores/postgres/index.js'
import { sqliteManifest } from '../../../src/stores/sqlite/index.js'
import { gate } from '../../../src/testing/conformance/gate.js'
import { createDatabase } from '../../servers/fresh-database.js'
import { identity, type Order } from './worlds.js'

const order = (key: Key = mintKey(), amount = 5): Order => ({ key, amount })

describe('PostgreSQL', () => {
  /** Two domain objects, each with a pool of its own. */
  async function pair(
    work: (payOf: (place: 0 | 1) => ReturnType<typeof paying>) => Promise<void>,
    body: (key: Key) => Promise<void>,
  ) {
    const database = await createDatabase(inject('postgresUrl'))
    const pools = [0, 1].map(() => new pg.Pool({ connectionString: database.url, max: 8 }))
    const domains = pools.map((pool) =>
      postgres({ name: 'refuse', pool, connectionWait: '100s', deadline: '200s', bodyLimit: '60s', lockWait: '30s' }),
    )
    await domains[0]?.migrate()
    const operations = domains.map((db) => paying(db, body))
    await work((place) => operations[place] as ReturnType<typeof paying>)
    await Promise.all(pools.map((pool) => pool.end()))
    await database.drop()
  }

  const paying = (db: ReturnType<typeof postgres>, body: (key: Key) => Promise<void>) =>
    db.operation('pay', {
      ...identity,
      duplicates: 'refuse',
      run: async (tx, { key }: Order) => {
        await tx.query('select 1')
        await body(key)
        return key
      },
    })

  it('says that it can tell the very key', () => {
    expect([postgresManifest.refuse, postgresManifest.because.refuse]).toEqual(['exact', expect.any(String)])
  })

  it('refuses no other key, however many are claimed side by side', async () => {
    await pair(
      async (payOf) => {
        const orders = Array.from({ length: 600 }, () => order())
        const results = await Promise.all(
          orders.map((one, place) => payOf(place % 2 === 0 ? 0 : 1)(one, { deadline: '200s' })),
        )
        expect(new Set(results).size).toBe(orders.length)
      },
      async () => undefined,
    )
  })

  it('refuses the key at once, also with other content, which can be told only after the commit', async () => {
    const inside = gate(2)
    await pair(
      async (payOf) => {
        const one = order()
        const first = payOf(0)(one)
        await inside.waiting(1)
        const refused = { code: 'OPERATION_IN_FLIGHT', details: { certain: true, retryable: true } }
        await expect(payOf(1)(one)).rejects.toMatchObject(refused)
        await expect(payOf(1)(order(one.key, 6))).rejects.toMatchObject(refused)
        await expect(payOf(0)(order(one.key, 6))).rejects.toMatchObject({ code: 'OPERATION_MISMATCH' })
        await inside.arrive()
        expect(await first).toBe(one.key)
        await expect(payOf(1)(order(one.key, 6))).rejects.toMatchObject({ code: 'OPERATION_MISMATCH' })
        expect(await payOf(1)(one)).toBe(one.key)
      },
      () => inside.arrive(),
    )
  })
})

it('SQLite says that it can only tell that somebody writes', () => {
  // That it does is the conformance case store.operation.claim.06.
  expect([sqliteManifest.refuse, sqliteManifest.because.refuse]).toEqual(['coarse', expect.any(String)])
})
