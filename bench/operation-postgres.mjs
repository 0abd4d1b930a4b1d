// Operations on PostgreSQL against the bare transaction, and replays against one look into the index.

import assert from 'node:assert/strict'
import { hold, leased } from '../dist/idempotency/index.js'
import { Batch, sendBatch } from '../dist/stores/postgres/connection/batch.js'
import { postgres } from '../dist/stores/postgres/index.js'
import { bareOnPostgres, insertEntry, payByHand, prepareByHand } from './by-hand.mjs'
import {
  check,
  effort,
  fresh,
  here,
  inTurn,
  paying,
  replaying,
  response,
  rotating,
  sharedOptions,
  text,
  there,
} from './operation-work.mjs'
import { backendsOf } from './postgres-server.mjs'
import { ownProcessorUs, processorUs } from './processor-time.mjs'
import { roundTripsOf } from './round-trips.mjs'

const ours = 'operation'
const bare = 'bare BEGIN, INSERT, COMMIT'
const byHand = 'by hand: BEGIN, key, INSERT, outcome, COMMIT'
const repeatedByHand = 'by hand: BEGIN, key, SELECT, COMMIT'
const sameStatements = 'bare, with the statements of an operation'
const replayed = 'replay'
const select = 'one indexed SELECT'
const named = 'one indexed SELECT, prepared once'
const sameSelect = 'the SELECT of a replay, by pg alone'

/**
 * @param {import('pg').Pool} pool
 * @param {number} version
 * @param {number} connections
 * @param {import('./harness.mjs').Subject} flushes
 */
export async function* postgresCases(pool, version, connections, flushes) {
  await pool.query('CREATE TABLE IF NOT EXISTS entry (id bigserial PRIMARY KEY, text text NOT NULL)')
  const db = postgres({ pool, name: 'bench' })
  await db.migrate()
  const backends = await backendsOf(pool, connections)
  const shared = {
    rates: true,
    meters: [
      { name: here, read: ownProcessorUs },
      { name: there, read: () => processorUs(backends) },
    ],
    effort,
  }
  const place = `PostgreSQL ${version}, fsync on, ${connections} ${connections === 1 ? 'connection' : 'connections'}`
  const subjectsOf = (/** @type {Record<string, () => Promise<unknown>>} */ ways) =>
    Object.entries(ways).map(([name, run]) => ({ name, run, waits: true, atOnce: connections }))
  const first = await firstWays(pool, db, connections)
  yield {
    ...shared,
    name: `operation around one insert, ${place}`,
    subjects: [...subjectsOf(first.ways), { ...flushes }],
    targets: targetsOf(connections === 1 ? { [bare]: 0.75, [byHand]: 1.2 } : { [bare]: 0.6, [byHand]: 1.15 }),
    notes: (/** @type {import('./harness.mjs').Used} */ used) => [
      ...firstLimits(used, connections),
      ...(connections === 1 ? first.trips : []),
    ],
  }
  const replays = await replayWays(pool, db)
  yield {
    ...shared,
    name: `replay, ${place}`,
    subjects: subjectsOf(replays.ways),
    targets: targetsOf(
      connections === 1 ? { [select]: 1.1, [repeatedByHand]: 1.3 } : { [select]: 1.5, [repeatedByHand]: 2 },
    ),
    notes: (/** @type {import('./harness.mjs').Used} */ used) => [
      ...replayLimits(used),
      ...(connections === 1 ? replays.trips : []),
    ],
  }
  const lease = await leasedWays(pool, db)
  yield {
    ...shared,
    name: `leased operation, ${place}, for information`,
    subjects: [...subjectsOf(lease.ways), { ...flushes }],
    targets: [],
    notes: [
      'limit: two commits, each of one statement (the claim before the work, the outcome after it), each with its flush',
      ...(connections === 1 ? lease.trips : []),
    ],
  }
}

/** @param {Record<string, number>} limits By whom ours is compared with. */
const targetsOf = (limits) => Object.entries(limits).map(([against, limit]) => ({ against, limit }))

/**
 * @param {import('pg').Pool} pool
 * @param {import('../dist/stores/postgres/index.js').PostgresDomain<any>} db
 * @param {number} connections
 */
async function firstWays(pool, db, connections) {
  /** @type {Record<string, () => Promise<unknown>>} */
  const ways = {
    [ours]: paying(db, insertEntry.postgres),
    [bare]: () => bareOnPostgres(pool),
    [byHand]: await handWritten(pool),
  }
  // On connections that were used before: the first BEGIN of each asks for more, and the second prepares statements.
  for (let time = 0; time < 3; time++) await Promise.all(Array.from({ length: connections }, ways[ours]))
  const { sent } = await roundTripsOf(pool, ways[ours])
  ways[sameStatements] = otherNames(pool, sent[0].steps, sent[2].steps, connections)
  const count = async () => Number((await pool.query('SELECT count(*) FROM entry')).rows[0].count)
  await check(ways, count, 1)
  const { notes, counts } = await tripsOf(pool, ways)
  assert.equal(counts.get(ours), counts.get(bare), 'round trips of an operation')
  return { ways, trips: notes }
}

/**
 * A fresh request each time.
 * @param {import('pg').Pool} pool
 */
async function handWritten(pool) {
  await prepareByHand(pool)
  await pool.query('TRUNCATE seen')
  const next = fresh()
  return () => payByHand(pool, next())
}

/**
 * The same statements, each time under another name of the same length.
 * @param {import('pg').Pool} pool
 * @param {import('../dist/stores/postgres/connection/batch.js').Step[]} begin
 * @param {import('../dist/stores/postgres/connection/batch.js').Step[]} end
 * @param {number} connections
 */
function otherNames(pool, begin, end, connections) {
  const isId = (/** @type {string | null} */ value) => /^sha256:[\w-]{43}$/.test(value ?? '')
  const id = end.flatMap(({ values = [] }) => values).find(isId)
  assert.ok(id && begin.some(({ values }) => values?.includes(id)))
  let number = 0
  return () => {
    number += 1
    const other = `bench0:${connections}.${String(number).padStart(43 - 1 - String(connections).length, '0')}`
    const renamed = (/** @type {typeof begin} */ steps) =>
      steps.map(({ statement, values }) => ({
        statement,
        values: values?.map((value) => (value === id ? other : value)),
      }))
    return sameTransaction(pool, renamed(begin), renamed(end))
  }
}

/**
 * @param {import('pg').Pool} pool
 * @param {import('../dist/stores/postgres/connection/batch.js').Step[]} begin
 * @param {import('../dist/stores/postgres/connection/batch.js').Step[]} end
 */
async function sameTransaction(pool, begin, end) {
  const client = await pool.connect()
  const send = (/** @type {typeof begin} */ steps) =>
    sendBatch(/** @type {any} */ (client), { batches: true }, new Batch(steps, undefined, undefined, true))
  try {
    await send(begin)
    await client.query(insertEntry.postgres, [text])
    await send(end)
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}

/**
 * @param {import('pg').Pool} pool
 * @param {import('../dist/stores/postgres/index.js').PostgresDomain<any>} db
 */
async function replayWays(pool, db) {
  const { replay, agree } = await replaying(db)
  const { rows } = await pool.query("SELECT id FROM reprise_marker WHERE operation = 'replayed'")
  const id = inTurn(rows.map((row) => row.id))
  const { texts } = await roundTripsOf(pool, replay)
  const plain = 'SELECT value FROM reprise_marker WHERE id = $1'
  await prepareByHand(pool)
  const { requests, next } = rotating()
  for (const one of requests) await payByHand(pool, one)
  /** @type {Record<string, () => Promise<any>>} */
  const ways = {
    [replayed]: replay,
    [select]: async () => JSON.parse((await pool.query(plain, [id()])).rows[0].value),
    [named]: async () => JSON.parse((await pool.query({ name: 'bench', text: plain, values: [id()] })).rows[0].value),
    [repeatedByHand]: () => payByHand(pool, next()),
    [sameSelect]: async () =>
      JSON.parse((await pool.query({ name: 'bench-same', text: texts[0], values: [id()] })).rows[0].value),
  }
  await agree(ways)
  const { notes, counts } = await tripsOf(pool, ways)
  assert.equal(counts.get(replayed), 1, 'round trips of a replay')
  return { ways, trips: notes }
}

/**
 * @param {import('pg').Pool} pool
 * @param {import('../dist/stores/postgres/index.js').PostgresDomain<any>} db
 */
async function leasedWays(pool, db) {
  const { requests, next } = rotating()
  const another = fresh()
  let executed = 0
  const define = (/** @type {string} */ name) =>
    leased(name, {
      ...sharedOptions(),
      store: db,
      lease: '30s',
      recover: hold(),
      run: async () => {
        executed += 1
        return response
      },
    })
  const first = define('leased')
  const repeats = define('leased-again')
  for (const one of requests) await repeats(one)
  /** @type {Record<string, () => Promise<unknown>>} */
  const ways = {
    'leased operation, first call': () => first(another()),
    'leased operation, replay': () => repeats(next()),
  }
  executed = 0
  for (const [name, run] of Object.entries(ways)) assert.deepEqual(await run(), response, name)
  assert.equal(executed, 1)
  return { ways, trips: (await tripsOf(pool, ways)).notes }
}

/**
 * The round trips of each way on a connection that was used before.
 * @param {import('pg').Pool} pool
 * @param {Record<string, () => Promise<unknown>>} ways
 */
async function tripsOf(pool, ways) {
  const notes = []
  const counts = new Map()
  for (const [name, run] of Object.entries(ways)) {
    const { count, texts } = await roundTripsOf(pool, run)
    counts.set(name, count)
    const shown = (/** @type {string} */ sent) => sent.replaceAll(/\s+/g, ' ')
    notes.push(`round trips of ${name}: ${count}`, ...texts.map((sent, place) => `  ${place + 1}. ${shown(sent)}`))
  }
  return { notes, counts }
}

/**
 * @param {import('./harness.mjs').Used} used
 * @param {number} connections
 */
function firstLimits(used, connections) {
  return [
    connections === 1
      ? 'limit: all in a row, three round trips, the processor time of both sides, one flush of the log'
      : 'limit: the processors, which this process and the server share; commits share flushes',
    `  claim and outcome (two writes to one row, its two indexes, their log) with BEGIN and COMMIT: ${more(used, sameStatements, bare)}`,
    `  its own steps, beside the same statements: ${more(used, ours, sameStatements)}`,
  ]
}

/** @param {import('./harness.mjs').Used} used */
function replayLimits(used) {
  return [
    'limit: one round trip, the processor time of both sides',
    `  a record in place of one column: ${more(used, sameSelect, named)}`,
    `  identity, queue, comparison: ${more(used, replayed, sameSelect)}`,
  ]
}

/**
 * @param {import('./harness.mjs').Used} used
 * @param {string} one
 * @param {string} other
 */
function more(used, one, other) {
  const us = (/** @type {string} */ meter) => `${(used(one, meter) - used(other, meter)).toFixed(0)} us`
  return `${us(here)} here, ${us(there)} in the server`
}
