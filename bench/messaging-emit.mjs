// A transaction that emits one message against the same with an outbox that is written by hand in its body.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { postgres } from '../dist/stores/postgres/index.js'
import { insertEntry } from './by-hand.mjs'
import { outboxByHand, outboxOf, placed } from './messaging-work.mjs'
import { effort, here, inTurn, text, there } from './operation-work.mjs'
import { backendsOf } from './postgres-server.mjs'
import { ownProcessorUs, processorUs } from './processor-time.mjs'
import { roundTripsOf } from './round-trips.mjs'

const ours = 'transact with an emit'
const notified = 'transact with an emit, NOTIFY on'
const inBody = 'transact with an outbox insert in its body'
const bare = 'by hand: BEGIN, INSERT, outbox INSERT, COMMIT'
const silent = 'transact without a message'
const insertMessage = 'INSERT INTO outbox (id, type, key, data) VALUES ($1, $2, $3, $4)'

/**
 * @param {import('pg').Pool} pool
 * @param {string} url
 * @param {string} place
 * @param {number} connections
 * @param {import('./harness.mjs').Subject} flushes
 */
export async function* emitCases(pool, url, place, connections, flushes) {
  await pool.query('CREATE TABLE IF NOT EXISTS entry (id bigserial PRIMARY KEY, text text NOT NULL)')
  const { db } = await outboxOf(pool, 'emit_')
  await outboxByHand(pool)
  const backends = await backendsOf(pool, connections)
  for (const [kind, key] of Object.entries({
    'a new key each time': randomUUID,
    'of 10,000 keys': inTurn(tenThousand),
  })) {
    const ways = waysOf(pool, db, key)
    await check(pool, ways)
    const trips = connections === 1 ? await tripsOf(pool, ways) : []
    yield {
      name: `one insert and one message, ${kind}, ${place}`,
      rates: true,
      subjects: [
        ...Object.entries(ways).map(([name, run]) => ({ name, run, waits: true, atOnce: connections })),
        { ...flushes },
      ],
      targets: [{ against: inBody, limit: 1 }],
      meters: [
        { name: here, read: ownProcessorUs },
        { name: there, read: () => processorUs(backends) },
      ],
      effort: { ...effort, warmUpCalls: 2_000 },
      notes: trips,
    }
  }
  yield* notifyCase(url, place, connections, waysOf(pool, db, randomUUID)[inBody])
}

/**
 * The same with NOTIFY, on a pool with the one connection more that it needs, and somebody who listens.
 * @param {string} url
 * @param {string} place
 * @param {number} connections
 * @param {() => Promise<unknown>} other
 */
async function* notifyCase(url, place, connections, other) {
  const pool = new pg.Pool({ connectionString: url, max: connections + 2, idleTimeoutMillis: 0 })
  const db = postgres({ pool, name: 'bench', prefix: 'emit_', notify: true })
  const unlisten = db.messages.onEmit(() => undefined)
  try {
    const subjects = Object.entries({ [notified]: waysOf(pool, db, randomUUID)[ours], [inBody]: other })
    yield {
      name: `one insert and one message, with NOTIFY, ${place}`,
      rates: true,
      subjects: subjects.map(([name, run]) => ({ name, run, waits: true, atOnce: connections })),
      targets: [{ against: inBody, limit: 0.9 }],
      effort: { ...effort, warmUpCalls: 2_000 },
    }
  } finally {
    unlisten()
    await db.close()
    await pool.end()
  }
}

const tenThousand = Array.from({ length: 10_000 }, (_, number) => `order/${number}`)

/**
 * @param {import('pg').Pool} pool
 * @param {Awaited<ReturnType<typeof outboxOf>>['db']} db
 * @param {() => string} key
 * @returns {Record<string, () => Promise<unknown>>}
 */
function waysOf(pool, db, key) {
  const message = () => [randomUUID(), 'order.placed', key(), JSON.stringify(placed)]
  return {
    [ours]: () =>
      db.transact(async (tx) => {
        await tx.query(insertEntry.postgres, [text])
        await tx.emit({ type: 'order.placed', subject: key(), data: placed })
      }),
    [inBody]: () =>
      db.transact(async (tx) => {
        await tx.query(insertEntry.postgres, [text])
        await tx.query(insertMessage, message())
      }),
    [bare]: () => emitByHand(pool, message()),
    [silent]: () => db.transact((tx) => tx.query(insertEntry.postgres, [text])),
  }
}

/**
 * @param {import('pg').Pool} pool
 * @param {string[]} message
 */
async function emitByHand(pool, message) {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    await client.query(insertEntry.postgres, [text])
    await client.query(insertMessage, message)
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}

/**
 * Each writes its row, and one message where it says so.
 * @param {import('pg').Pool} pool
 * @param {Record<string, () => Promise<unknown>>} ways
 */
async function check(pool, ways) {
  const counts = async () => {
    const tables = ['entry', 'emit_message', 'outbox'].map(
      (table) => `(SELECT count(*)::int FROM ${table}) AS ${table}`,
    )
    return (await pool.query(`SELECT ${tables.join(', ')}`)).rows[0]
  }
  for (const [name, run] of Object.entries(ways)) {
    const before = await counts()
    await run()
    const after = await counts()
    assert.equal(after.entry - before.entry, 1, name)
    const messages = [after.emit_message - before.emit_message, after.outbox - before.outbox]
    assert.deepEqual(messages, [name === ours ? 1 : 0, name === inBody || name === bare ? 1 : 0], name)
  }
}

/**
 * The round trips of each on a connection that was used before: a message adds none to ours.
 * @param {import('pg').Pool} pool
 * @param {Record<string, () => Promise<unknown>>} ways
 */
async function tripsOf(pool, ways) {
  /** @type {Record<string, number>} */
  const counts = {}
  for (const [name, run] of Object.entries(ways)) counts[name] = (await roundTripsOf(pool, run)).count
  assert.equal(counts[ours], counts[silent], 'round trips of an emit')
  return Object.entries(counts).map(([name, count]) => `round trips of ${name}: ${count}`)
}
