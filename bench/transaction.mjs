// A transaction that can be repeated, around one insert, against the bare one: the price where nothing goes wrong,
// which is nearly always.
//
// Both wait for the same disk, whose flushes take ten times as long when others use it; a raw flush takes its turns
// beside them, to show what there was to be had.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import Database from 'libsql'
import { parseKey, scope } from '../dist/identity/index.js'
import { postgres } from '../dist/stores/postgres/index.js'
import { sqlite } from '../dist/stores/sqlite/index.js'
import { bareOnPostgres, bareOnSqlite, insertEntry } from './by-hand.mjs'
import { contentionCase } from './contention.mjs'
import { withDisk } from './disk.mjs'
import { check, effort, here, text, there } from './operation-work.mjs'
import { backendsOf, startPostgres, withPool } from './postgres-server.mjs'
import { ownProcessorUs, processorUs } from './processor-time.mjs'
import { roundTripsOf } from './round-trips.mjs'

export const peers = ['pg', 'libsql']
export const peersFolder = new URL('../', import.meta.url)

const ours = 'transact'
const bare = 'bare BEGIN, INSERT, COMMIT'
const keyed = 'transact with a key'
const untraced = 'transact, resolvesUnkeyed: false'
const sameBegin = 'bare, with the BEGIN of transact'

/** The cases of this bench, each after a check that all its subjects do what their names say. */
export async function* cases() {
  yield* withDisk(async function* (folder, flushes) {
    yield* postgresCases(flushes)
    yield* sqliteCases(flushes, folder)
  })
}

/** @param {import('./harness.mjs').Subject} flushes */
async function* postgresCases(flushes) {
  const server = await startPostgres()
  try {
    for (const connections of [1, 16]) {
      yield* withPool(server.url, connections, async function* (pool) {
        yield await insertCase(pool, server.version, connections, flushes)
      })
    }
    yield* withPool(server.url, 50, async function* (pool) {
      yield await contentionCase(pool, postgres({ pool, name: 'bench' }))
    })
  } finally {
    await server.dispose()
  }
}

/**
 * @param {import('pg').Pool} pool
 * @param {number} version
 * @param {number} connections
 * @param {import('./harness.mjs').Subject} flushes
 */
async function insertCase(pool, version, connections, flushes) {
  await pool.query('CREATE TABLE IF NOT EXISTS entry (id bigserial PRIMARY KEY, text text NOT NULL)')
  const db = postgres({ pool, name: 'bench' })
  const plain = postgres({ pool, name: 'bench', resolvesUnkeyed: false })
  await db.migrate()
  const key = keys()
  /** @type {Record<string, () => Promise<unknown>>} */
  const ways = {
    [ours]: () => db.transact((tx) => tx.query(insertEntry.postgres, [text])),
    [bare]: () => bareOnPostgres(pool),
    [untraced]: () => plain.transact((tx) => tx.query(insertEntry.postgres, [text])),
    [keyed]: () =>
      db.transact(async (tx) => (await tx.query(insertEntry.postgres, [text])).rowCount, {
        key: key(),
        content: 'none',
      }),
  }
  const count = async () => Number((await pool.query('SELECT count(*) FROM entry')).rows[0].count)
  // On a connection that was used before; the first BEGIN of each asks for more.
  await ways[ours]()
  // A body that may run once is begun after BEGIN, which is then a text by itself.
  const alone = () => db.transact((tx) => tx.query(insertEntry.postgres, [text]), { attempts: 1 })
  const [begin] = (await roundTripsOf(pool, alone)).texts
  ways[sameBegin] = () => bareOnPostgres(pool, { begin })
  await check(ways, count, 1)
  const trips = await roundTripNotes(pool, ways)
  const backends = await backendsOf(pool, connections)
  return {
    name: `one insert, PostgreSQL ${version}, fsync on, ${connections} ${connections === 1 ? 'connection' : 'connections'}`,
    rates: true,
    subjects: [
      ...Object.entries(ways).map(([name, run]) => ({ name, run, waits: true, atOnce: connections })),
      { ...flushes },
    ],
    targets: [{ against: bare, limit: connections === 1 ? 1.1 : 1.05 }],
    meters: [
      { name: here, read: ownProcessorUs },
      { name: there, read: () => processorUs(backends) },
    ],
    effort,
    notes: (/** @type {import('./harness.mjs').Used} */ used) => [
      ...limitLines(used, connections),
      ...(connections === 1 ? trips : []),
    ],
  }
}

/**
 * What a transaction uses up more than the bare one, and where. By the processor's time: the disk is the same for all,
 * and varies by more than is asked for here.
 * @param {import('./harness.mjs').Used} used
 * @param {number} connections
 */
function limitLines(used, connections) {
  const more = (/** @type {string} */ one, /** @type {string} */ other, /** @type {string} */ meter) =>
    `${(used(one, meter) - used(other, meter)).toFixed(0)} us`
  return [
    connections === 1
      ? 'limit: all in a row, two round trips (the bare one three), the processor time of both sides, one flush of the log'
      : 'limit: the processors, which this process and the server share; commits share flushes',
    `  its BEGIN (three limits of time, the number of the transaction, the backend): ${more(sameBegin, bare, here)} here, ${more(sameBegin, bare, there)} in the server`,
    `  its own steps, beside the same statements: ${more(ours, sameBegin, here)} here, ${more(ours, sameBegin, there)} in the server`,
  ]
}

function keys() {
  const tenant = scope('bench', randomUUID())
  let number = 0
  return () => {
    number += 1
    return { scope: tenant, key: parseKey(`insert-${number}`) }
  }
}

/**
 * The round trips of each way on a connection that was used before; ours must not have more than the bare one.
 * @param {import('pg').Pool} pool
 * @param {Record<string, () => Promise<unknown>>} ways
 */
async function roundTripNotes(pool, ways) {
  const notes = []
  const counts = new Map()
  for (const [name, run] of Object.entries(ways)) {
    const { count, texts } = await roundTripsOf(pool, run)
    counts.set(name, count)
    notes.push(`round trips of ${name}: ${count}`, ...texts.map((sent, place) => `  ${place + 1}. ${sent}`))
  }
  assert.ok(counts.get(ours) <= counts.get(bare), `${counts.get(ours)} round trips`)
  return notes
}

/**
 * @param {import('./harness.mjs').Subject} flushes
 * @param {string} folder
 */
async function* sqliteCases(flushes, folder) {
  const db = sqlite({ name: 'bench', open: () => new Database(join(folder, 'ours.db')) })
  const table = 'CREATE TABLE entry (id INTEGER PRIMARY KEY, text TEXT NOT NULL)'
  await db.migrate()
  await db.transact((tx) => tx.query(table))
  const handle = new Database(join(folder, 'bare.db'))
  try {
    // As Reprise opens its own.
    handle.exec('PRAGMA journal_mode = WAL')
    handle.exec('PRAGMA synchronous = FULL')
    handle.exec(table)
    for (const atOnce of [1, 16]) yield await sqliteCase(db, handle, flushes, atOnce)
  } finally {
    handle.close()
    await db.close()
  }
}

/**
 * @param {import('../dist/stores/sqlite/index.js').SqliteDomain<unknown>} db
 * @param {InstanceType<typeof Database>} handle
 * @param {import('./harness.mjs').Subject} flushes
 * @param {number} atOnce How many of ours wait for one another; the bare ones have a thread that waits for each.
 */
async function sqliteCase(db, handle, flushes, atOnce) {
  const once = `${bare}, prepared once`
  const prepared = handle.prepare(insertEntry.sqlite)
  const key = keys()
  /** @type {Record<string, () => unknown>} */
  const bareWays = {
    [bare]: () => bareOnSqlite(handle, handle.prepare(insertEntry.sqlite)),
    [once]: () => bareOnSqlite(handle, prepared),
  }
  /** @type {Record<string, () => unknown>} */
  const ourWays = {
    [ours]: () => db.transact((tx) => tx.query(insertEntry.sqlite, [text])),
    [keyed]: () =>
      db.transact(async (tx) => (await tx.query(insertEntry.sqlite, [text])).rowCount, { key: key(), content: 'none' }),
  }
  const counted = 'SELECT count(*) AS count FROM entry'
  await check(bareWays, () => handle.prepare(counted).get().count, 1)
  await check(ourWays, () => db.transact(async (tx) => /** @type {any} */ ((await tx.query(counted)).rows[0]).count), 1)
  return {
    name: `one insert, SQLite (libsql), WAL, synchronous FULL, ${atOnce} waiting`,
    rates: true,
    subjects: [
      { name: ours, run: ourWays[ours], waits: true, atOnce },
      ...Object.entries(bareWays).map(([name, run]) => ({ name, run })),
      { name: keyed, run: ourWays[keyed], waits: true, atOnce },
      { ...flushes },
    ],
    targets: [{ against: bare, limit: atOnce === 1 ? 0.9 : 4 }],
    meters: [{ name: here, read: ownProcessorUs }],
    effort,
    notes: (/** @type {import('./harness.mjs').Used} */ used) => [
      atOnce === 1
        ? 'limit: one flush of the log, then the processor time of this thread'
        : 'limit: the processor time of this thread; those who wait share a flush',
      `  its own steps, beside the same statements: ${(used(ours, here) - used(once, here)).toFixed(0)} us`,
    ],
  }
}
