// Lanes to the stage's PostgreSQL, each through a proxy of its own, as processes that lose their store.

import pg from 'pg'
import { afterAll } from 'vitest'
import type { Deadline } from '../../../src/kernel/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { type PostgresProxy, postgresProxy } from '../../../src/testing/index.js'
import { until } from '../../servers/server-process.js'
import type { Store } from './definitions.js'
import type { StagedStore } from './stage.js'

/** A way to the database, and the domain of a process behind it. */
export interface CutLane {
  readonly proxy: PostgresProxy
  readonly pool: pg.Pool
  readonly db: Store
  /** Ends the idle connections, so that the next call opens one. */
  empty(): Promise<void>
}

/** When a call of a test ends. */
export const within = (ms: number): Deadline => ({ expiresAtMs: performance.now() + ms })

/** Opens lanes; they are closed after the tests of the file. */
export async function openCutLanes({ address }: StagedStore, count: number): Promise<readonly CutLane[]> {
  if (!('postgres' in address)) throw new Error('only PostgreSQL has a wire')
  const url = new URL(address.postgres)
  const lanes = await Promise.all(Array.from({ length: count }, (_, index) => openLane(url, `lane ${index + 1}`)))
  afterAll(async () => {
    await Promise.all(lanes.map(({ proxy }) => proxy.close()))
    await Promise.all(lanes.map(({ pool }) => pool.end()))
  })
  return lanes
}

async function openLane({ hostname, port, username, pathname }: URL, name: string): Promise<CutLane> {
  const proxy = await postgresProxy({ upstream: { host: hostname, port: Number(port) } })
  const pool = new pg.Pool({ host: proxy.host, port: proxy.port, user: username, database: pathname.slice(1), max: 3 })
  pool.on('error', () => undefined)
  const limits = { deadline: '10s', lockWait: '2s', connectionWait: '600ms', bodyLimit: '600ms' } as const
  const db = postgres({ pool, name, ...limits }) as never as Store
  return {
    proxy,
    pool,
    db,
    async empty() {
      const clients = await Promise.all(Array.from({ length: pool.idleCount }, () => pool.connect()))
      for (const client of clients) client.release(true)
      await until(() => pool.totalCount === 0, 'the pool is empty')
    },
  }
}
