// NOTIFY between processes: here two pools, which is all that the server sees of two processes.

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { memoryBroker } from '../../../src/brokers/memory/index.js'
import { systemRandom } from '../../../src/kernel/index.js'
import { consume, relay } from '../../../src/messaging/index.js'
import { connectionsOf } from '../../../src/stores/postgres/connection/connections.js'
import { Notifications } from '../../../src/stores/postgres/connection/notifications.js'
import { type PostgresDomain, postgres } from '../../../src/stores/postgres/index.js'
import { postgresSchema } from '../../../src/stores/postgres/migrations.js'
import { manualClock } from '../../../src/testing/index.js'
import { startPgbouncer } from '../../servers/pgbouncer.js'
import { patient, postgresWorld } from './world.js'

const { url, raw } = await postgresWorld()

// So long that nothing is found by it.
const poll = '1h'

interface ChannelEvent {
  readonly is: string
  readonly dropped: number
}

/** What a channel tells while a test runs. */
function toldBy(channel: string): ChannelEvent[] {
  const told: ChannelEvent[] = []
  const listener = (event: unknown): void => void told.push(event as ChannelEvent)
  subscribe(channel, listener)
  onTestFinished(() => void unsubscribe(channel, listener))
  return told
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10))
}

function domain(connectionString: string): PostgresDomain<pg.PoolClient> {
  const pool = new pg.Pool({ connectionString, max: 4 })
  pool.on('error', () => undefined)
  onTestFinished(() => pool.end())
  return postgres({ pool, name: 'test', notify: true, ...patient })
}

/** A relay in a pool of its own; gives the ids that it has published. */
function running(connectionString: string, name: string, every: '1h' | '100ms' = poll) {
  const broker = memoryBroker()
  const stop = new AbortController()
  const work = relay(domain(connectionString), { name, to: broker.publisher('t'), poll: every })
  const over = work.run({ signal: stop.signal })
  onTestFinished(async () => {
    stop.abort()
    await over
  })
  return () => broker.published('t').map(({ id }) => id)
}

const emit = (db: PostgresDomain<pg.PoolClient>, id: string): Promise<unknown> =>
  db.transact((tx) => tx.emit({ type: 't', key: id, id, data: 1 }), patient)

describe('readers of other processes', () => {
  it('are woken by what is committed elsewhere: relays, and consumers of the outbox', async () => {
    const told = toldBy('reprise.messages.listening')
    const published = running(url, 'woken')
    const handled: string[] = []
    const stop = new AbortController()
    const other = domain(url)
    const handle = (_tx: unknown, { id }: { readonly id: string }): void => void handled.push(id)
    const over = consume(other, { name: 'worker', from: other, poll, handle }).run({ signal: stop.signal })
    await until(() => told.filter(({ is }) => is === 'listening').length === 2)
    const db = domain(url)
    await emit(db, 'one')
    await until(() => published().includes('one') && handled.includes('one'))
    await emit(db, 'two')
    await until(() => published().includes('two') && handled.includes('two'))
    stop.abort()
    await over
  })

  it('listen again when their connection is ended, and find what was emitted meanwhile', async () => {
    const told = toldBy('reprise.messages.listening')
    const published = running(url, 'ended')
    await until(() => told.length === 1)
    const ended = "SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity WHERE query LIKE 'LISTEN %'"
    expect((await raw.query(ended)).rows).toEqual([{ ended: true }])
    const db = domain(url)
    await emit(db, 'meanwhile')
    await until(() => told.length >= 3 && published().includes('meanwhile'))
    await emit(db, 'after')
    await until(() => published().includes('after'))
    expect(told.map(({ is }) => is)).toEqual(['listening', 'lost', 'listening'])
  })

  it('keep no connection when they have ended', async () => {
    const db = domain(url)
    const count = async (): Promise<unknown> =>
      (await raw.query("SELECT count(*)::int AS n FROM pg_stat_activity WHERE query LIKE 'LISTEN %'")).rows[0]?.['n']
    const ends = [db.messages.onEmit(() => undefined), db.messages.onEmit(() => undefined)]
    while ((await count()) !== 1) {}
    ends[0]?.()
    // On a busy machine it may be between two connections just now; one that was closed for good would not come back.
    while ((await count()) !== 1) {}
    ends[1]?.()
    while ((await count()) !== 0) {}
  })

  it('say behind a pooler of transactions that they hear nothing, and find messages by asking', async () => {
    const warnings: Error[] = []
    const onWarning = (warning: Error): void => void warnings.push(warning)
    process.on('warning', onWarning)
    onTestFinished(() => void process.removeListener('warning', onWarning))
    const { hostname, port, pathname } = new URL(url)
    const bouncer = await startPgbouncer({ mode: 'transaction', upstream: { host: hostname, port: Number(port) } })
    onTestFinished(() => bouncer.dispose())
    const behind = bouncer.url(pathname.slice(1))
    const told = toldBy('reprise.messages.listening')
    const untold = toldBy('reprise.messages.untold')
    const published = running(behind, 'behind', '100ms')
    await emit(domain(behind), 'behind')
    await until(() => published().includes('behind') && told.some(({ is }) => is !== 'lost'))
    // A busy machine may take so long to connect that it begins again.
    expect(told.map(({ is }) => is).filter((is) => is !== 'lost')).toEqual(['deaf'])
    expect(untold).toEqual([])
    expect(warnings).toEqual([expect.objectContaining({ code: 'NOTIFY_UNHEARD' })])
  })
})

describe('commits', () => {
  const schema = postgresSchema()

  it('of ten ms share one NOTIFY, and one that cannot be sent is counted', async () => {
    const clock = manualClock()
    const pool = new pg.Pool({ connectionString: url, max: 2 })
    const connections = connectionsOf(pool, clock)
    const notifications = new Notifications({ domain: 'test', connections, schema, clock, random: systemRandom })
    const heard: (string | undefined)[] = []
    raw.on('notification', ({ payload }) => heard.push(payload))
    await raw.query(`LISTEN "${notifications.channel}"`)
    for (let time = 0; time < 50; time += 1) notifications.committed()
    await clock.advance(10)
    await until(() => heard.length > 0)
    for (let time = 0; time < 50; time += 1) notifications.committed()
    await clock.advance(10)
    await until(() => heard.length > 1)
    expect(heard).toHaveLength(2)
    const untold = toldBy('reprise.messages.untold')
    await pool.end()
    notifications.committed()
    await clock.advance(10)
    await until(() => untold.length > 0)
    expect(untold).toEqual([expect.objectContaining({ domain: 'test', dropped: 1, error: expect.any(Error) })])
  })

  it('need a second connection', async () => {
    const pool = new pg.Pool({ connectionString: url, max: 1 })
    onTestFinished(() => pool.end())
    expect(() => postgres({ pool, name: 'test', notify: true })).toThrow(
      expect.objectContaining({ code: 'ARGUMENT_INVALID', details: { option: 'notify' } }),
    )
  })
})
