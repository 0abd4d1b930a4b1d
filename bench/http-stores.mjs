// Where the services of the bench keep what they do: the same insert in a transaction of ours, and by the driver alone.
//
// Each loads its own driver when it is opened: a run starts dozens of services, and most of the time of a start is
// loading.

import { join } from 'node:path'

/** How many connections are kept busy. */
export const connections = 16

/**
 * @typedef {object} Kept
 * @property {'memory' | 'sqlite' | 'postgres'} kind
 * @property {any} db Of ours.
 * @property {(tx: any, text: string) => Promise<unknown>} insert In a transaction of ours.
 * @property {(text: string) => unknown} bare The same in a transaction by the driver alone.
 * @property {(input: { key: string }) => Promise<unknown>} byHand With its key and its outcome, as people write it.
 * @property {() => Promise<number>} effects How many rows there are.
 * @property {number[]} backends Of PostgreSQL.
 * @property {string} [file] Of SQLite.
 * @property {import('pg').Pool} [pool] Of PostgreSQL.
 * @property {{ exec(sql: string): unknown }[]} handles Of SQLite, all that write.
 * @property {() => Promise<void>} close
 */

/** Nothing is written: what is left is the layer. @returns {Promise<Kept>} */
async function memory() {
  const { memory: inMemory } = await import('../dist/stores/memory/index.js')
  let count = 0
  const insert = async () => {
    count += 1
  }
  return {
    kind: 'memory',
    db: inMemory({ name: 'bench' }),
    insert,
    bare: insert,
    byHand: insert,
    effects: async () => count,
    backends: [],
    handles: [],
    close: async () => {},
  }
}

/**
 * @param {{ folder: string }} place
 * @param {string} way
 * @returns {Promise<Kept>}
 */
async function sqlite({ folder }, way) {
  const { default: Database } = await import('libsql')
  const { sqlite: inSqlite } = await import('../dist/stores/sqlite/index.js')
  const { bareOnSqlite, byHandOnSqlite, insertEntry } = await import('./by-hand.mjs')
  const file = join(folder, `${way}-${process.pid}.db`)
  /** @type {InstanceType<typeof Database>[]} */
  const handles = []
  const open = () => {
    const handle = new Database(file)
    handles.push(handle)
    return handle
  }
  const db = inSqlite({ name: 'bench', open })
  await db.migrate()
  await db.transact((tx) => tx.query('CREATE TABLE entry (id INTEGER PRIMARY KEY, text TEXT NOT NULL)'))
  const handle = open()
  // As Reprise opens its own.
  handle.exec('PRAGMA journal_mode = WAL')
  handle.exec('PRAGMA synchronous = FULL')
  const prepared = handle.prepare(insertEntry.sqlite)
  return {
    kind: 'sqlite',
    db,
    insert: (tx, value) => tx.query(insertEntry.sqlite, [value]),
    bare: (value) => bareOnSqlite(handle, prepared, value),
    byHand: byHandOnSqlite(handle),
    effects: async () => handle.prepare('SELECT count(*) AS count FROM entry').get().count,
    backends: [],
    handles,
    file,
    close: async () => {
      handle.close()
      await db.close()
    },
  }
}

/**
 * @param {{ url: string }} place
 * @returns {Promise<Kept>}
 */
async function postgres({ url }) {
  const { default: pg } = await import('pg')
  const { postgres: inPostgres } = await import('../dist/stores/postgres/index.js')
  const { bareOnPostgres, insertEntry, payByHand } = await import('./by-hand.mjs')
  const { backendsOf } = await import('./postgres-server.mjs')
  const pool = new pg.Pool({ connectionString: url, max: connections, min: connections, idleTimeoutMillis: 0 })
  const db = inPostgres({ pool, name: 'bench' })
  return {
    kind: 'postgres',
    db,
    insert: (tx, value) => tx.query(insertEntry.postgres, [value]),
    bare: (value) => bareOnPostgres(pool, { value }),
    byHand: (input) => payByHand(pool, input),
    effects: async () => Number((await pool.query('SELECT count(*) FROM entry')).rows[0].count),
    backends: await backendsOf(pool, connections),
    handles: [],
    pool,
    close: () => pool.end(),
  }
}

/** By name. @type {Record<string, (place: any, way: string) => Promise<Kept>>} */
export const stores = { memory, sqlite, postgres }

/**
 * What the services on PostgreSQL share, made once.
 * @param {string} url
 */
export async function preparePostgres(url) {
  const { default: pg } = await import('pg')
  const { postgres: inPostgres } = await import('../dist/stores/postgres/index.js')
  const { prepareByHand } = await import('./by-hand.mjs')
  const pool = new pg.Pool({ connectionString: url, max: 1 })
  try {
    await pool.query('CREATE TABLE IF NOT EXISTS entry (id bigserial PRIMARY KEY, text text NOT NULL)')
    await prepareByHand(pool)
    await inPostgres({ pool, name: 'bench' }).migrate()
  } finally {
    await pool.end()
  }
}
