// A database of its own, the store on it, and a connection beside it that knows nothing of the store.

import pg from 'pg'
import { afterAll } from 'vitest'
import type { BeginSettings, TransactionControls } from '../../../src/atomicity/index.js'
import { systemClock } from '../../../src/kernel/index.js'
import { connectionsOf } from '../../../src/stores/postgres/connection/connections.js'
import { type PostgresEngine, postgresEngine } from '../../../src/stores/postgres/engine.js'
import type { PostgresTransaction, TransactionClient } from '../../../src/stores/postgres/handle.js'
import { type PostgresDomain, postgres } from '../../../src/stores/postgres/index.js'
import { postgresSchema } from '../../../src/stores/postgres/migrations.js'
import type { PostgresSession } from '../../../src/stores/postgres/session.js'
import { freshDatabase } from '../../servers/fresh-database.js'

/** What the tests work with. */
export interface World {
  readonly url: string
  readonly pool: pg.Pool
  readonly db: PostgresDomain<pg.PoolClient>
  /** The back door. */
  readonly raw: pg.Client
  readonly engine: PostgresEngine<TransactionClient>
}

/** Limits that no test comes to, however busy the machine is. Those that are about a limit set their own. */
export const patient = { deadline: '120s', connectionWait: '30s', bodyLimit: '60s', lockWait: '20s' } as const

/** Makes a world; everything is ended after the tests of the file. */
export async function postgresWorld(config: pg.PoolConfig = {}): Promise<World> {
  const { url } = await freshDatabase()
  const pool = new pg.Pool({ connectionString: url, max: 6, ...config })
  const raw = new pg.Client({ connectionString: url, application_name: 'back door' })
  raw.on('error', () => undefined)
  await raw.connect()
  afterAll(async () => {
    await pool.end()
    await raw.end()
  })
  const db = postgres({ pool, name: 'test', ...patient })
  await db.migrate()
  await raw.query(
    `create table item (id text primary key, state text not null default 'new', last_command text, amount int not null default 0)`,
  )
  return { url, pool, db, raw, engine: engineOn(pool) }
}

/** The engine alone, without the runner. */
export function engineOn(pool: pg.Pool): PostgresEngine<TransactionClient> {
  return postgresEngine({
    name: 'test',
    connections: connectionsOf(pool, systemClock),
    schema: postgresSchema(),
    clock: systemClock,
    bind: (client) => client,
  })
}

const controls: TransactionControls = {
  attempt: 1,
  signal: new AbortController().signal,
  deadline: { expiresAtMs: 0 },
  afterCommit: () => undefined,
}

/** A session with an open transaction. */
export async function begun(
  engine: PostgresEngine<TransactionClient>,
  settings: Partial<BeginSettings> = {},
): Promise<{ session: PostgresSession<TransactionClient>; tx: PostgresTransaction<TransactionClient> }> {
  const readOnly = settings.readOnly ?? false
  const session = await engine.acquire({ waitMs: 30_000, readOnly })
  const all = { isolation: 'read-committed' as const, readOnly, idleMs: 50_000, lockWaitMs: 20_000, ...settings }
  try {
    return { session, tx: await session.begin(all, controls) }
  } catch (error) {
    session.release('discard')
    throw error
  }
}

/** Makes two connections, so that a question beside a transaction need not wait until one is made. */
export async function warm(pool: pg.Pool): Promise<void> {
  const clients = await Promise.all([pool.connect(), pool.connect()])
  for (const client of clients) client.release()
}

/** Waits until something holds; a race is proven by what others can see of it. */
export async function until(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  const endMs = systemClock.monotonicMs() + 60_000
  while (!(await holds())) {
    if (systemClock.monotonicMs() > endMs) throw new Error(`Waited in vain until ${what}.`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** Waits until a number of backends of this database wait for a lock. */
export async function untilWaiting(raw: pg.Client, count = 1): Promise<void> {
  await until(`${count} wait for a lock`, async () => {
    const { rows } = await raw.query<{ n: number }>(
      `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return (rows[0]?.n ?? 0) >= count
  })
}

/** The code of what a promise is rejected with. */
export async function codeOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return (error as { code?: unknown }).code
  }
  return 'no error'
}
