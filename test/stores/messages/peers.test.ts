// Bugs of other outboxes that need a server with several connections, on the same input here. Each is named after where
// it was reported. Those that need none are in test/messaging/peers.test.ts.

import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { memoryBroker } from '../../../src/brokers/memory/index.js'
import { consume, relay } from '../../../src/messaging/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { postgresProxy } from '../../../src/testing/index.js'
import { createDatabase } from '../../servers/fresh-database.js'

type Database = Awaited<ReturnType<typeof createDatabase>>

let database: Database
const pools: pg.Pool[] = []
beforeAll(async () => {
  database = await createDatabase(inject('postgresUrl'))
  await open().migrate()
})
afterAll(async () => {
  await Promise.all(pools.map((pool) => pool.end()))
  await database?.drop()
})

const patient = { deadline: '60s', connectionWait: '30s', bodyLimit: '60s', lockWait: '30s' } as const

/** The domain with connections of its own, as another process has it. */
function open(url: string = database.url, max = 5) {
  const pool = new pg.Pool({ connectionString: url, max })
  pools.push(pool)
  return postgres({ name: 'shop', pool, ...patient })
}

/** A promise that a test fulfils. */
function gate(): { readonly opened: Promise<void>; open(): void } {
  let release = (): void => undefined
  const opened = new Promise<void>((resolve) => {
    release = resolve
  })
  return { opened, open: () => release() }
}

describe('reading', () => {
  it('watermill#311, eventuous#222, SQLStreamStore#121, kamu-cli#1398, CAP#1419: what commits late is read, and once', async () => {
    const db = open()
    const seen: string[] = []
    const reader = consume(db, { name: 'late', from: db, handle: (_tx, { id }) => seen.push(id) })
    await reader.drain()
    const [emitted, late] = [gate(), gate()]
    const long = db.transact(async (tx) => {
      await tx.query('select txid_current()')
      await tx.emit({ type: 't', id: 'begun-first', subject: 'late a', data: 1 })
      emitted.open()
      await late.opened
    })
    await emitted.opened
    await db.transact((tx) => tx.emit({ type: 't', id: 'committed-first', subject: 'late b', data: 1 }))
    await reader.drain()
    expect(seen).toEqual(['committed-first'])
    late.open()
    await long
    await reader.drain()
    await reader.drain()
    expect(seen).toEqual(['committed-first', 'begun-first'])
  })

  it('nisshi#713: an open transaction that has nothing to do with it holds up nobody', async () => {
    const db = open()
    const stranger = new pg.Client(database.url)
    await stranger.connect()
    await stranger.query('create table if not exists elsewhere (id int)')
    await stranger.query('begin')
    await stranger.query('insert into elsewhere values (1)')
    const seen: string[] = []
    const reader = consume(db, { name: 'stalled', from: db, handle: (_tx, { key }) => seen.push(key) })
    await db.transact((tx) => tx.emit({ type: 't', subject: 'while it is open', data: 1 }))
    await reader.drain()
    expect(seen).toContain('while it is open')
    await stranger.query('rollback')
    await stranger.end()
  })
})

describe('relays', () => {
  it.each(['repeatable read', 'serializable'])(
    'MassTransit#5114, dialogporten#1763: no flood of 40001 where the default of the database is %s',
    async (isolation) => {
      const own = await createDatabase(inject('postgresUrl'))
      try {
        await open(own.url).migrate()
        const admin = new pg.Client(own.url)
        await admin.connect()
        const { rows } = await admin.query('select current_database() as name')
        await admin.query(`alter database "${rows[0].name}" set default_transaction_isolation = '${isolation}'`)
        await admin.end()
        const broker = memoryBroker()
        const stop = new AbortController()
        const { signal } = stop
        const relays = [1, 2, 3].map(() =>
          relay(open(own.url), { name: 'out', to: broker.publisher('shop'), batch: 20, poll: '5ms' }),
        )
        const db = open(own.url)
        const seen: number[] = []
        const readers = [1, 2].map(() => {
          const store = open(own.url)
          return consume(store, {
            ...{ name: 'in', from: store, poll: '5ms' },
            handle: (_tx, { data }) => void seen.push(Number(data)),
          })
        })
        const running = [...relays, ...readers].map((one) => one.run({ signal }))
        for (let round = 0; round < 20; round += 1) {
          await Promise.all(
            Array.from({ length: 10 }, (_, key) =>
              db.transact((tx) => tx.emit({ type: 't', subject: `key ${key}`, data: round * 10 + key })),
            ),
          )
        }
        await expect.poll(() => broker.published('shop').length, { timeout: 60_000 }).toBeGreaterThanOrEqual(200)
        await expect.poll(() => new Set(seen).size, { timeout: 60_000 }).toBe(200)
        stop.abort()
        await Promise.all(running)
        const pauses = [...relays, ...readers].map(({ counts }) => counts.pauses)
        expect(pauses).toEqual(pauses.map(() => 0))
        await db.close()
      } finally {
        await Promise.all(pools.splice(1).map((pool) => pool.end()))
        await own.drop()
      }
    },
  )

  it('factcast#3911: a transaction that emits has no NOTIFY in it, which would let all others wait at COMMIT', async () => {
    const url = new URL(database.url)
    const proxy = await postgresProxy({ upstream: { host: url.hostname, port: Number(url.port) } })
    url.port = String(proxy.port)
    const db = open(url.href, 1)
    await db.transact((tx) => tx.emit({ type: 't', subject: 'warm', data: 1 }))
    const before = proxy.statements.length
    await db.transact((tx) => tx.emit({ type: 't', subject: 'quiet', data: 1 }))
    const sent = proxy.statements.slice(before)
    const inside = sent.slice(0, sent.findIndex((text) => /\bCOMMIT\b/.test(text)) + 1)
    expect(inside.some((text) => text.includes('"reprise_message"'))).toBe(true)
    expect(inside.filter((text) => /notify/i.test(text))).toEqual([])
    await proxy.close()
  })
})
