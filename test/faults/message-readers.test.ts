// Relays and consumers on a PostgreSQL whose connections are cut and whose server starts again, and behind a pooler:
// each message is published at least once, has one effect in each consumer, and keys stay in order.

import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { memoryBroker } from '../../src/brokers/memory/index.js'
import { consume, relay } from '../../src/messaging/index.js'
import { fullJitter } from '../../src/retry/index.js'
import { postgres } from '../../src/stores/postgres/index.js'
import { commits, type PostgresProxy, type ProxyFault, postgresProxy } from '../../src/testing/index.js'
import { startPgbouncer } from '../servers/pgbouncer.js'
import { type Postgres, startPostgres } from '../servers/postgres.js'
import { cells } from './commit-cells.js'

let server: Postgres
beforeAll(async () => {
  server = await startPostgres({ settings: { max_connections: '100' } })
})
afterAll(() => server?.dispose())

/** Limits that no machine is too busy for. */
const patient = { deadline: '60s', connectionWait: '30s', bodyLimit: '30s', lockWait: '20s' } as const
const quick = {
  poll: '20ms',
  backoff: fullJitter({ baseMs: 5, capMs: 50 }),
  budget: false,
  // A claim whose answer was lost holds until its lease is over.
  lease: '6s',
  storeLimit: '2s',
} as const
const keys = ['a', 'b', 'c']

interface Readers {
  /** What consumers have done, by consumer and key: the numbers of the messages, in order. */
  effects(): Promise<Record<string, readonly number[]>>
  /** The numbers that were published for a key, each as often as it was. */
  published(key: string): readonly number[]
  /** Emits the next number of each key. */
  emit(number: number): Promise<void>
  /** Counts of what went wrong. */
  failures(): { readonly failed: number; readonly parked: number; readonly refused: number }
  pauses(): number
}

/**
 * Two relays, two consumers of the outbox and two of the broker at work, each with connections of its own.
 *
 * @param url Where they reach the store. What is counted goes to the server itself.
 * @param emitsBeside Whether what is emitted goes to the server itself too.
 */
async function withReaders(
  url: string,
  emitsBeside: boolean,
  work: (readers: Readers) => Promise<void>,
): Promise<void> {
  const database = `readers_${Math.round(performance.now() * 1_000)}`
  const [own, theirs] = [new URL(server.url), new URL(url)]
  const admin = new pg.Client(server.url)
  await admin.connect()
  await admin.query(`create database ${database}`)
  await admin.end()
  own.pathname = theirs.pathname = database
  const pools: pg.Pool[] = []
  const poolAt = (place: URL, max: number): pg.Pool => {
    const pool = new pg.Pool({ connectionString: place.href, max })
    pool.on('error', () => undefined)
    pools.push(pool)
    return pool
  }
  const raw = poolAt(own, 3)
  const db = postgres({ name: 'shop', pool: raw, ...patient })
  await db.migrate()
  await raw.query('create table effect (at bigserial, reader text not null, key text not null, number int not null)')
  const broker = memoryBroker()
  const stop = new AbortController()
  const domain = () => postgres({ name: 'shop', pool: poolAt(theirs, 4), ...patient })
  const relays = [1, 2].map(() =>
    relay(domain(), { name: 'out', to: broker.publisher('shop'), deadline: '1s', ...quick }),
  )
  const consumers = [1, 2].flatMap(() =>
    (['direct', 'delivered'] as const).map((name) => {
      const store = domain()
      return consume(store, {
        ...{ name, from: name === 'direct' ? store : broker.source('shop', 'delivered'), redelivered: '1h', ...quick },
        handle: async (tx, { key, data }) => {
          await tx.query('insert into effect (reader, key, number) values ($1, $2, $3)', [name, key, data])
        },
      })
    }),
  )
  const running = [...relays, ...consumers].map((reader) => reader.run({ signal: stop.signal }))
  try {
    // A consumer that is new sees what is there; so it is known before the first message is emitted.
    const known = 'select count(*)::int as n from reprise_reader'
    await expect.poll(async () => (await raw.query(known)).rows[0]?.n, { timeout: 30_000 }).toBe(3)
    const emitting = emitsBeside ? db : domain()
    await work({
      async effects() {
        const { rows } = await raw.query('select reader, key, number from effect order by at')
        const found: Record<string, number[]> = {}
        for (const { reader, key, number } of rows) {
          const lane = `${reader} ${key}`
          found[lane] = [...(found[lane] ?? []), number]
        }
        return found
      },
      published: (key) => broker.published('shop').flatMap((one) => (one.key === key ? [one.data as number] : [])),
      async emit(number) {
        for (const key of keys) await emitting.transact((tx) => tx.emit({ type: 'counted', key, data: number }))
      },
      failures: () => ({
        failed: consumers.reduce((sum, { counts }) => sum + counts.failed, 0),
        parked: [...relays, ...consumers].reduce((sum, { counts }) => sum + counts.parked, 0),
        refused: relays.reduce((sum, { counts }) => sum + counts.refused, 0),
      }),
      pauses: () => [...relays, ...consumers].reduce((sum, { counts }) => sum + counts.pauses, 0),
    })
  } finally {
    stop.abort()
    await Promise.all(running)
    await Promise.all(pools.map((pool) => pool.end()))
  }
}

/** Waits until each consumer has done each message once, in the order of its key. */
async function expectAllOnce({ effects }: Readers, numbers: number): Promise<void> {
  const all = Array.from({ length: numbers }, (_, index) => index + 1)
  const lanes = ['direct', 'delivered'].flatMap((reader) => keys.map((key) => [`${reader} ${key}`, all] as const))
  await expect.poll(effects, { timeout: 120_000, interval: 100 }).toEqual(Object.fromEntries(lanes))
}

/** Each key was published in order; what came again is counted. */
function duplicatesOn({ published }: Readers, numbers: number): number {
  let duplicates = 0
  for (const key of keys) {
    const all = published(key)
    const first = [...new Set(all)]
    expect(first, `the order of ${key}`).toEqual(Array.from({ length: numbers }, (_, index) => index + 1))
    duplicates += all.length - first.length
  }
  return duplicates
}

const none = { failed: 0, parked: 0, refused: 0 }

it('a server that is stopped at once and started again, under relays and consumers: each effect once', {
  timeout: 300_000,
}, async () => {
  await withReaders(server.url, true, async (readers) => {
    let number = 0
    for (let restarts = 0; restarts < 2; restarts += 1) {
      for (let more = 0; more < 5; more += 1) await readers.emit(++number)
      await server.stop('immediate')
      await server.restart()
    }
    await readers.emit(++number)
    await expectAllOnce(readers, number)
    const duplicates = duplicatesOn(readers, number)
    // The store was away, and no message is to blame: no attempt is burnt.
    expect(readers.failures()).toMatchObject({ parked: 0, refused: 0 })
    expect(readers.pauses()).toBeGreaterThan(0)
    console.log(`${number * keys.length} messages, ${duplicates} twice on the wire, ${readers.pauses()} pauses`)
  })
})

describe('connections of relays and consumers, cut', () => {
  let proxy: PostgresProxy
  let url: string
  beforeAll(async () => {
    proxy = await postgresProxy({ upstream: { host: '127.0.0.1', port: server.port } })
    const through = new URL(server.url)
    through.port = String(proxy.port)
    url = through.href
  })
  afterAll(() => proxy?.close())

  // What is held open costs a time-out each time.
  const sudden = cells.filter(
    ({ fault: { action, server } }) => ['fin', 'rst', 'late'].includes(action) && server !== 'keep',
  )
  const claims = (text: string): boolean => text.startsWith('WITH due AS') && text.includes('"reprise_lane"')
  const marks = (text: string): boolean => text.includes('of_owner') && text.includes('"reprise_lane"')

  it.each<[what: string, statement: (text: string) => boolean]>([
    ['COMMIT of what a consumer has handled', commits],
    ['claims of relays and consumers', claims],
    ['what says that a relay or consumer is through', marks],
  ])('at %s, in every way: each effect once, in order', { timeout: 600_000 }, async (_what, statement) => {
    await withReaders(url, true, async (readers) => {
      const missed: string[] = []
      let number = 0
      for (const { name, fault } of sudden) {
        const armed = proxy.arm({ statement, ...fault } as ProxyFault)
        await readers.emit(++number)
        const fired = await Promise.race([armed.first.then(() => true), late(20_000)])
        if (!fired) missed.push(name)
        armed.disarm()
      }
      await proxy.heal()
      await expectAllOnce(readers, number)
      const duplicates = duplicatesOn(readers, number)
      expect(missed).toEqual([])
      expect(readers.failures()).toMatchObject({ parked: 0, refused: 0 })
      console.log(`${sudden.length} cuts, ${number * keys.length} messages, ${duplicates} twice on the wire`)
    })
  })
})

it('behind a pooler that assigns connections per transaction: each effect once, in order', {
  timeout: 300_000,
}, async () => {
  const pooler = await startPgbouncer({ mode: 'transaction', upstream: server, poolSize: 4 })
  try {
    await withReaders(pooler.url('postgres'), false, async (readers) => {
      for (let number = 1; number <= 40; number += 1) await readers.emit(number)
      await expectAllOnce(readers, 40)
      expect(duplicatesOn(readers, 40)).toBe(0)
      expect(readers.failures()).toEqual(none)
    })
  } finally {
    await pooler.dispose()
  }
})

const late = (ms: number): Promise<false> => new Promise((resolve) => setTimeout(() => resolve(false), ms).unref())
