// A consumer against the transaction that people write: the id of the message, the effect, COMMIT, and then the
// acknowledgement. Both take from the same broker in memory, and as many at a time.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { memoryBroker } from '../dist/brokers/memory/index.js'
import { deadlineAfter, systemClock } from '../dist/kernel/index.js'
import { consume } from '../dist/messaging/index.js'
import { insertEntry } from './by-hand.mjs'
import { effort, outboxByHand, outboxOf, placed, shortEffort } from './messaging-work.mjs'
import { text } from './operation-work.mjs'

const ours = 'consumer, in order per key'
const unordered = "consumer, order: 'none'"
const byHand = 'by hand: BEGIN, id, INSERT, COMMIT, ack'
const fromDb = 'consumer, from: db, in order per key'
const jobs = 'loops by hand: BEGIN, SKIP LOCKED, INSERT, DELETE, COMMIT; no order'

/**
 * @param {import('pg').Pool} pool
 * @param {string} place
 * @param {number} concurrency
 */
export async function* consumerCases(pool, place, concurrency) {
  await pool.query('CREATE TABLE IF NOT EXISTS entry (id bigserial PRIMARY KEY, text text NOT NULL)')
  await pool.query(
    'CREATE TABLE IF NOT EXISTS inbox (consumer text, source text, id text, at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (consumer, source, id))',
  )
  const outbox = await outboxOf(pool, 'consumer_')
  const broker = memoryBroker({ most: 1_000_000 })
  const stop = new AbortController()
  const { signal } = stop
  const done = counter()
  const handle = async (/** @type {any} */ tx) => {
    await tx.query(insertEntry.postgres, [text])
    done.one()
  }
  const [ordered, any] = [watched(broker.source('ordered')), watched(broker.source('any'))]
  const running = [
    consume(outbox.db, { name: 'ordered', from: ordered.source, concurrency, handle }).run({ signal }),
    consume(outbox.db, { name: 'any', from: any.source, order: 'none', concurrency, handle }).run({ signal }),
    broker.source('hand').open(
      async (delivery) => {
        await takeByHand(pool, /** @type {any} */ (delivery.content))
        await delivery.ack()
        done.one()
      },
      { inFlight: concurrency, signal },
    ),
  ]
  // What is published before somebody subscribes is delivered to nobody.
  await Promise.all([ordered.opened, any.opened, running[2]])
  const publish = (/** @type {string} */ topic) => async (/** @type {number} */ count) => {
    const to = broker.publisher(topic)
    const messages = Array.from({ length: count }, message)
    const start = process.hrtime.bigint()
    await to.publish(messages, { deadline: deadlineAfter(10_000, systemClock) })
    await done.reached(count)
    return Number(process.hrtime.bigint() - start)
  }
  const shared = { rates: true, effort, shortEffort }
  const ways = { [ours]: publish('ordered'), [byHand]: publish('hand'), [unordered]: publish('any') }
  await check(pool, ways)
  try {
    yield {
      ...shared,
      name: `consumer of a broker, ${concurrency} at a time, ${place}`,
      subjects: Object.entries(ways).map(([name, turn]) => ({ name, turn })),
      targets: [{ against: byHand, limit: 0.9 }],
    }
    yield { ...shared, ...(await outboxCase(pool, outbox, place, concurrency)) }
  } finally {
    stop.abort()
    await Promise.allSettled(running)
  }
}

/**
 * The outbox itself as a queue of work.
 * @param {import('pg').Pool} pool
 * @param {Awaited<ReturnType<typeof outboxOf>>} outbox
 * @param {string} place
 * @param {number} concurrency
 */
async function outboxCase(pool, outbox, place, concurrency) {
  const handle = (/** @type {any} */ tx) => tx.query(insertEntry.postgres, [text])
  const consumer = consume(outbox.db, { name: 'work', from: outbox.db, concurrency, handle })
  await consumer.drain()
  const hand = await outboxByHand(pool)
  const timed = async (/** @type {() => Promise<unknown>} */ work) => {
    const start = process.hrtime.bigint()
    await work()
    return Number(process.hrtime.bigint() - start)
  }
  const ways = {
    [fromDb]: async (/** @type {number} */ count) => {
      await outbox.fill({ keys: count, perKey: 1, reader: 'work' })
      return timed(() => consumer.drain())
    },
    [jobs]: async (/** @type {number} */ count) => {
      await pool.query('TRUNCATE outbox')
      await hand.fill({ keys: count, perKey: 1 })
      return timed(() => Promise.all(Array.from({ length: concurrency }, () => workByHand(pool))))
    },
  }
  await check(pool, ways)
  return {
    name: `consumer of the outbox itself, ${concurrency} at a time, ${place}, for information`,
    subjects: Object.entries(ways).map(([name, turn]) => ({ name, turn })),
    targets: [],
  }
}

/**
 * A source, and when it was first opened.
 * @param {import('../dist/messaging/index.js').Source} source
 */
function watched(source) {
  let isOpen = () => {}
  const opened = /** @type {Promise<void>} */ (
    new Promise((resolve) => {
      isOpen = resolve
    })
  )
  const open = async (/** @type {Parameters<typeof source.open>} */ ...given) => {
    const subscription = await source.open(...given)
    isOpen()
    return subscription
  }
  return { source: { ...source, open }, opened }
}

/** Counts what is done, and tells when it is enough. */
function counter() {
  let left = 0
  let enough = () => {}
  return {
    one: () => {
      left -= 1
      if (left === 0) enough()
    },
    reached: (/** @type {number} */ count) =>
      /** @type {Promise<void>} */ (
        new Promise((resolve) => {
          left += count
          enough = resolve
          if (left <= 0) resolve()
        })
      ),
  }
}

/** @returns {import('../dist/messaging/index.js').Message} */
function message() {
  const key = randomUUID()
  const none = { place: undefined, version: undefined, intent: undefined, traceparent: undefined, schema: undefined }
  return {
    source: 'urn:reprise:bench',
    id: key,
    type: 'order.placed',
    subject: key,
    key,
    ...none,
    atMs: 0,
    data: placed,
  }
}

const taken = 'INSERT INTO inbox (consumer, source, id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING'

/**
 * @param {import('pg').Pool} pool
 * @param {{ source: string, id: string }} message
 */
async function takeByHand(pool, { source, id }) {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const { rowCount } = await client.query(taken, ['hand', source, id])
    if (rowCount === 1) await client.query(insertEntry.postgres, [text])
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}

/** @param {import('pg').Pool} pool */
async function workByHand(pool) {
  const client = await pool.connect()
  try {
    for (;;) {
      await client.query('BEGIN')
      const { rows } = await client.query(
        'SELECT number, data FROM outbox ORDER BY number LIMIT 1 FOR UPDATE SKIP LOCKED',
      )
      if (rows.length > 0) {
        await client.query(insertEntry.postgres, [text])
        await client.query('DELETE FROM outbox WHERE number = $1', [rows[0].number])
      }
      await client.query('COMMIT')
      if (rows.length === 0) return
    }
  } finally {
    client.release()
  }
}

/**
 * Each has its effect once for each message.
 * @param {import('pg').Pool} pool
 * @param {Record<string, (count: number) => Promise<number>>} ways
 */
async function check(pool, ways) {
  const count = async () => (await pool.query('SELECT count(*)::int AS entries FROM entry')).rows[0].entries
  for (const [name, turn] of Object.entries(ways)) {
    const before = await count()
    await turn(20)
    // The handler's count is one step before its COMMIT.
    while ((await count()) < before + 20) {}
    assert.equal((await count()) - before, 20, name)
  }
}
