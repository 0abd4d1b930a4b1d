// Waiting for a connection: bounded, never leaking, never ending the process.

import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { connectionsOf } from '../../../src/stores/postgres/connection/connections.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { manualClock } from '../../../src/testing/index.js'
import { begun, codeOf, engineOn, postgresWorld, until, type World } from './world.js'

let world: World
beforeAll(async () => {
  world = await postgresWorld()
})

const poolOf = (config: pg.PoolConfig) => new pg.Pool({ connectionString: world.url, ...config })

describe('a pool that is exhausted', () => {
  it('fails fast with its figures, and is not tried again', async () => {
    const pool = poolOf({ max: 1 })
    const engine = engineOn(pool)
    const { session } = await begun(engine)
    const error = await engine.acquire({ waitMs: 50, readOnly: false }).catch((error: unknown) => error)
    expect(error).toMatchObject({ code: 'POOL_EXHAUSTED', details: { waitMs: 50, connections: 1, idle: 0 } })
    expect(engine.classify(error, 'waiting')).toMatchObject({ help: 'permanent', outcome: 'aborted' })
    await session.rollback()
    session.release('keep')
    // The one that came too late went back: the pool is whole again.
    await until('the late one is back', () => pool.idleCount === 1 && pool.waitingCount === 0)
    const again = await begun(engine)
    await again.session.commit()
    again.session.release('keep')
    await pool.end()
  })

  it('says so through the runner, and calls the body never', async () => {
    const pool = poolOf({ max: 1 })
    const held = await pool.connect()
    const db = postgres({ pool, name: 'small', connectionWait: 50 })
    let calls = 0
    expect(await codeOf(db.transact(async () => calls++))).toBe('POOL_EXHAUSTED')
    expect(calls).toBe(0)
    held.release()
    await until('the late one is back', () => pool.idleCount === 1)
    await pool.end()
  })

  it('is recognised by the pool’s own time-out too', async () => {
    const pool = poolOf({ max: 1 })
    const held = await pool.connect()
    // From now on: that the one connection is made may take longer.
    pool.options.connectionTimeoutMillis = 30
    const engine = engineOn(pool)
    const error = await engine.acquire({ waitMs: 60_000, readOnly: false }).catch((error: unknown) => error)
    expect(engine.classify(error, 'waiting')).toMatchObject({ sign: 'POOL_EXHAUSTED', help: 'permanent' })
    held.release()
    await pool.end()
  })
})

it.each([undefined, null, {}, 'postgres://127.0.0.1', () => new pg.Client()])(
  'what is no pool is refused when the domain is made: %s',
  (given) => {
    const pool = typeof given === 'function' ? given() : given
    const make = () => postgres({ pool: pool as unknown as pg.Pool, name: 'none' })
    expect(make).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID', details: { option: 'pool' } }))
  },
)

describe('a wait', () => {
  it('ends when its signal does', async () => {
    const pool = poolOf({ max: 1 })
    const held = await pool.connect()
    const controller = new AbortController()
    const waiting = engineOn(pool).acquire({ waitMs: 60_000, readOnly: false, signal: controller.signal })
    controller.abort(new Error('called off'))
    await expect(waiting).rejects.toThrow('called off')
    await expect(
      engineOn(pool).acquire({ waitMs: 60_000, readOnly: false, signal: controller.signal }),
    ).rejects.toThrow('called off')
    held.release()
    await until('the late one is back', () => pool.idleCount === 1)
    await pool.end()
  })

  it.each([null, { aborted: false }])(
    'with a signal that is none, %j, fails at once and leaves no timer',
    async (signal) => {
      const clock = manualClock()
      const pool = poolOf({ max: 1 })
      const connections = connectionsOf(pool, clock)
      const waiting = connections.take({ waitMs: 1_000, signal: signal as unknown as AbortSignal })
      await expect(waiting).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
      expect([clock.pendingTimers, pool.totalCount, pool.waitingCount]).toEqual([0, 0, 0])
      await pool.end()
    },
  )

  it('for a connection that is slow to make ends as such', async () => {
    // A listener that never answers.
    const { createServer } = await import('node:net')
    const silent = createServer(() => undefined)
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const address = silent.address() as { port: number }
    const pool = new pg.Pool({ host: '127.0.0.1', port: address.port, connectionTimeoutMillis: 500 })
    const engine = engineOn(pool)
    const error = await engine.acquire({ waitMs: 50, readOnly: false }).catch((error: unknown) => error)
    expect(error).toMatchObject({ code: 'CONNECT_TIMEOUT' })
    expect(engine.classify(error, 'waiting')).toMatchObject({ help: 'transient', outcome: 'aborted' })
    await until('the attempt is over', () => pool.totalCount === 0)
    silent.close()
    await pool.end()
  })
})

describe('a connection', () => {
  it('that somebody gave back with a transaction open is not used', async () => {
    const pool = poolOf({ max: 1 })
    const careless = await pool.connect()
    await careless.query('begin')
    const { rows } = await careless.query('select pg_backend_pid() as pid')
    careless.release()
    const { session } = await begun(engineOn(pool))
    expect(session.trace?.['pid']).not.toBe(String(rows[0].pid))
    await session.commit()
    session.release('keep')
    await pool.end()
  })

  it('that is killed while it is idle ends neither the process nor the store', async () => {
    const pool = poolOf({ max: 1 })
    const engine = engineOn(pool)
    const { session } = await begun(engine)
    await session.commit()
    session.release('keep')
    expect(pool.idleCount).toBe(1)
    await world.raw.query('select pg_terminate_backend($1)', [session.trace?.['pid']])
    await until('the pool dropped it', () => pool.totalCount === 0)
    const again = await begun(engine)
    await again.session.commit()
    again.session.release('keep')
    await pool.end()
  })

  it('is thrown away where its transaction did not end', async () => {
    const pool = poolOf({ max: 1 })
    const engine = engineOn(pool)
    const { session } = await begun(engine)
    session.release('keep')
    session.release('keep')
    await until('it is gone', () => pool.totalCount === 0)
    await pool.end()
  })

  it('of a driver that cannot tell the state of a transaction is refused', async () => {
    const pool = poolOf({ max: 1 })
    pool.on('connect', (client) => {
      Object.defineProperty(client, 'getTransactionStatus', { value: undefined })
    })
    expect(await codeOf(engineOn(pool).acquire({ waitMs: 60_000, readOnly: false }))).toBe('RUNTIME_UNSUPPORTED')
    expect(pool.idleCount).toBe(1)
    await pool.end()
  })

  it('is heard once, however many domains share the pool', async () => {
    const pool = poolOf({ max: 1 })
    const domains = Array.from({ length: 12 }, (_, number) => postgres({ pool, name: `domain ${number}` }))
    for (const db of domains) await db.transact((tx) => tx.query('select 1'))
    const client = await pool.connect()
    expect([pool.listenerCount('error'), client.listenerCount('error')]).toEqual([1, 1])
    client.release()
    for (const db of domains.slice(1)) await Promise.all([db.close(), db.close()])
    expect(pool.listenerCount('error')).toBe(1)
    await domains[0]?.close()
    expect(pool.listenerCount('error')).toBe(0)
    await pool.end()
  })

  it('is refused after close, and the pool goes on', async () => {
    const pool = poolOf({ max: 1 })
    const db = postgres({ pool, name: 'closed' })
    await db.close()
    expect(await codeOf(db.transact(async () => 1))).toBe('STORE_CLOSED')
    expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }])
    await pool.end()
  })
})
