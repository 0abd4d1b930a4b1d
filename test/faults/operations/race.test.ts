// Duplicates race for their keys from several domains, as from several processes, while backends are killed and the
// answers to COMMITs get lost: one effect a key, and everybody who has a result has that of the one effect.

import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Key, mintKey, scope } from '../../../src/identity/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import {
  type ArmedFault,
  commits,
  type PostgresProxy,
  postgresProxy,
  seededRandom,
} from '../../../src/testing/index.js'
import { type FreshDatabase, freshDatabase } from '../../servers/fresh-database.js'

const seed = Number(process.env['REPRISE_SEED'] ?? 1)
const domainCount = 3
const keyCount = 40
const callersEach = 6
/** How often a caller repeats a call that told it nothing. */
const mostCalls = 60

interface Order {
  readonly key: Key
  readonly intent: string
}

let database: FreshDatabase
let proxy: PostgresProxy
let raw: pg.Client
beforeAll(async () => {
  database = await freshDatabase()
  const { hostname: host, port } = new URL(database.url)
  proxy = await postgresProxy({ upstream: { host, port: Number(port) } })
  raw = new pg.Client(database.url)
  await raw.connect()
  await raw.query('create table race_effect (intent text not null, token text not null)')
})
afterAll(async () => {
  await proxy.close()
  await raw.end()
})

async function domains() {
  const url = new URL(database.url)
  url.port = String(proxy.port)
  const pools = Array.from({ length: domainCount }, () => new pg.Pool({ connectionString: url.href, max: 8 }))
  const stores = pools.map((pool, index) => {
    pool.on('error', () => undefined)
    return postgres({ pool, name: `race-${index}`, deadline: '20s', connectionWait: '10s' })
  })
  await stores[0]?.migrate()
  return { stores, close: () => Promise.all(pools.map((pool) => pool.end())) }
}

const kill = `select pg_terminate_backend(pid) as killed from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
  order by state = 'idle', random() limit 1`

describe.each(['read-committed', 'repeatable-read', 'serializable'] as const)('at %s', (isolation) => {
  it(`one effect a key, and one result, with the seed ${seed}`, { timeout: 300_000 }, async () => {
    const random = seededRandom(`${seed}/${isolation}`)
    const { stores, close } = await domains()
    const operations = stores.map((db) =>
      db.operation(`race:${isolation}`, {
        scope: () => scope('race'),
        key: ({ key }: Order) => key,
        window: '1h',
        isolation,
        run: async (tx, { intent }) => {
          const token = randomUUID()
          await tx.query('insert into race_effect (intent, token) values ($1, $2)', [intent, token])
          if (random.next() < 0.3) await new Promise((resolve) => setTimeout(resolve, random.next() * 4))
          return token
        },
      }),
    )
    const cuts: ArmedFault[] = []
    let [calls, killed] = [0, 0]
    // Faults come with every so many calls: however slow the machine is, there are as many.
    const strike = async (): Promise<void> => {
      calls += 1
      if (calls % 8 === 0) {
        const at = random.next() < 0.5 ? 'before-forward' : 'after-forward'
        cuts.push(proxy.arm({ statement: commits, at, action: 'rst', server: 'close' }))
      }
      if (calls % 12 === 0) killed += (await raw.query(kill)).rowCount ?? 0
    }
    const call = async (order: Order, index: number): Promise<string> => {
      let last: unknown
      for (let tries = 0; tries < mostCalls; tries += 1) {
        await strike()
        const operation = operations[(index + tries) % operations.length] as (typeof operations)[number]
        try {
          return await operation(order)
        } catch (error) {
          last = error
        }
      }
      throw last
    }
    const told = new Map<string, string[]>()
    const keys = Array.from({ length: keyCount }, () => ({ key: mintKey(), intent: randomUUID() })).values()
    const group = async (): Promise<void> => {
      for (const order of keys) {
        const results = Array.from({ length: callersEach }, (_, index) => call(order, index))
        told.set(order.intent, await Promise.all(results))
      }
    }
    try {
      await Promise.all(Array.from({ length: 4 }, group))
    } finally {
      await proxy.heal()
      await close()
    }
    const { rows } = await raw.query<{ intent: string; token: string }>('select intent, token from race_effect')
    const effects = rows.filter(({ intent }) => told.has(intent))
    expect(effects).toHaveLength(keyCount)
    for (const { intent, token } of effects) expect(new Set(told.get(intent))).toEqual(new Set([token]))
    // It was a race under faults.
    expect(cuts.filter(({ fired }) => fired.length > 0).length).toBeGreaterThan(3)
    expect(killed).toBeGreaterThan(0)
  })
})
