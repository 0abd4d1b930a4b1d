// Real stores for the tests of operations: a ledger that only bodies write to, a pool that is watched, and a way past
// the store to count.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import pg from 'pg'
import { afterAll, inject } from 'vitest'
import type { Operations } from '../../../src/idempotency/index.js'
import { type Key, type Scope, scope } from '../../../src/identity/index.js'
import type { Upkeep } from '../../../src/messaging/index.js'
import type { Sequences } from '../../../src/sequence/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { sqlite } from '../../../src/stores/sqlite/index.js'
import type { ConformanceHandle } from '../../../src/testing/index.js'
import type { Domain } from '../../../src/transaction/index.js'
import { createDatabase } from '../../servers/fresh-database.js'

/** What is paid. */
export interface Order {
  readonly key: Key
  readonly amount: number
}

/** Who shares the keys, also with the processes of these tests. */
const shop: Scope = scope('operations')

/** The identity of all operations here. */
export const identity = { scope: (): Scope => shop, key: ({ key }: Order): Key => key, window: '24h' } as const

/** What a body can do. */
export type Handle = ConformanceHandle

/** A store under test. */
export interface LedgerWorld {
  readonly db: Domain<Handle> & Operations<Handle> & Sequences<Handle> & Upkeep
  /** Where another process finds it. */
  readonly place: string
  /** Writes an effect. */
  effect(tx: Handle, intent: string): Promise<void>
  /** How many effects each intent has, past the store. */
  ledger(): Promise<Record<string, number>>
  /** The connections of the pool and those who wait for one; undefined: the store has no pool. */
  readonly pool: pg.Pool | undefined
}

/** The real engines. */
export const engines: readonly (readonly [name: string, open: () => Promise<LedgerWorld>])[] = [
  ['PostgreSQL', onPostgres],
  ['SQLite', onSqlite],
]

// Limits that no machine is too busy for; whoever is about a limit sets its own.
const patient = { deadline: '120s', connectionWait: '60s', bodyLimit: '60s', lockWait: '30s' } as const

const counts = (rows: readonly { intent: string; n: number }[]): Record<string, number> =>
  Object.fromEntries(rows.map(({ intent, n }) => [intent, Number(n)]))
const count = 'select intent, count(*) as n from ledger group by intent order by intent'

async function onPostgres(): Promise<LedgerWorld> {
  const database = await createDatabase(inject('postgresUrl'))
  const pool = new pg.Pool({ connectionString: database.url, max: 10 })
  const raw = new pg.Client({ connectionString: database.url })
  await raw.connect()
  const db = postgres({ name: 'operations', pool, ...patient })
  await db.migrate()
  await raw.query('create table ledger (intent text not null, number text)')
  afterAll(async () => {
    await pool.end()
    await raw.end()
    await database.drop()
  })
  type Tx = Parameters<Parameters<typeof db.transact>[0]>[0]
  return {
    db,
    pool,
    place: database.url,
    effect: async (tx, intent) => void (await (tx as Tx).query('insert into ledger (intent) values ($1)', [intent])),
    ledger: async () => counts((await raw.query(count)).rows),
  }
}

async function onSqlite(): Promise<LedgerWorld> {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-operations-'))
  const file = join(folder, 'store.db')
  const db = sqlite({ name: 'operations', open: () => new Database(file), ...patient })
  await db.migrate()
  const raw = new Database(file)
  raw.exec('create table ledger (intent text not null, number text)')
  afterAll(async () => {
    await db.close()
    raw.close()
    rmSync(folder, { recursive: true })
  })
  type Tx = Parameters<Parameters<typeof db.transact>[0]>[0]
  return {
    db,
    pool: undefined,
    place: file,
    effect: async (tx, intent) => void (await (tx as Tx).query('insert into ledger (intent) values (?)', [intent])),
    ledger: async () => counts(raw.prepare(count).all([]) as { intent: string; n: number }[]),
  }
}
