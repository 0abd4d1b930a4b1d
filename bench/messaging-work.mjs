// What the bench of messages has in common: the event, a publisher that confirms at once, and outboxes that are full
// before the time is taken, ours and the one that is written by hand.

import { randomBytes, randomUUID } from 'node:crypto'
import { relay } from '../dist/messaging/index.js'
import { postgres } from '../dist/stores/postgres/index.js'

/** How much is published together, by everybody. */
export const batch = 500

/** Turns of some thousand messages, since whoever works in batches is not measured by less. */
export const effort = { rounds: 15, turnMs: 150, warmUpMs: 1_500 }
export const shortEffort = { rounds: 1, turnMs: 1, warmUpMs: 1 }

/** An event of some 300 bytes as JSON. */
export const placed = {
  customer: 'c-20417',
  amount: 1999,
  currency: 'EUR',
  lines: [
    { item: 'book', count: 2, price: 750, total: 1500 },
    { item: 'pen', count: 1, price: 499, total: 499 },
  ],
  address: { name: 'A. Example', street: 'Example street 1', city: 'Exampletown', country: 'DE' },
  note: 'deliver to the neighbour',
}

/**
 * @typedef {object} Filling
 * @property {number} keys
 * @property {number} perKey
 * @property {number} [state] Of the lanes. Default: ready.
 * @property {number} [dataBytes] How much larger the data is. Default 0.
 * @property {string} [reader] Who is told. Default: all.
 */

/** The data of a message, with so many bytes more, which cannot be compressed. */
const dataOf = (/** @type {number} */ more) =>
  JSON.stringify(more === 0 ? placed : { ...placed, padding: randomBytes((more * 3) / 4).toString('base64') })

/**
 * A publisher that has every message as text, as a broker is sent it, and confirms at once: what is measured is the
 * way to it.
 */
export function publisher() {
  const manifest = {
    broker: 'bench',
    order: /** @type {const} */ ('key'),
    confirm: /** @type {const} */ ('memory'),
    delay: false,
    deliveryCount: /** @type {const} */ ('none'),
    dedupeMs: 0,
    redeliveryMs: undefined,
    because: {},
  }
  const sent = { messages: 0, bytes: 0, heapBytes: 0 }
  const confirmed = /** @type {const} */ ({ is: 'confirmed' })
  return {
    sent,
    to: {
      manifest,
      publish: async (/** @type {readonly unknown[]} */ messages) => {
        for (const message of messages) sent.bytes += JSON.stringify(message).length
        sent.messages += messages.length
        sent.heapBytes = Math.max(sent.heapBytes, process.memoryUsage().heapUsed)
        return messages.map(() => confirmed)
      },
    },
  }
}

/**
 * An outbox of ours with one relay.
 * @param {import('pg').Pool} pool
 * @param {string} prefix
 */
export async function outboxOf(pool, prefix) {
  const db = postgres({ pool, name: 'bench', prefix })
  await db.migrate()
  const { to, sent } = publisher()
  const out = relay(db, { name: 'bench', to, batch })
  // Makes the reader known.
  await out.drain()
  const fill = filling(pool, prefix)
  return {
    db,
    sent,
    fill,
    /** How long it takes to publish at least so many of what is there, in ns for each. */
    publish: async (/** @type {number} */ count) => {
      const before = sent.messages
      const enough = new AbortController()
      const { publish } = to
      to.publish = async (messages) => {
        const answers = await publish(messages)
        if (sent.messages - before >= count) enough.abort()
        return answers
      }
      const start = process.hrtime.bigint()
      await out.drain({ signal: enough.signal })
      const time = Number(process.hrtime.bigint() - start)
      to.publish = publish
      if (sent.messages - before < count) throw new Error(`${sent.messages - before} of ${count} were published`)
      return (time * count) / (sent.messages - before)
    },
  }
}

/**
 * Fills an outbox as emits would have done, by one statement for each table.
 * @param {import('pg').Pool} pool
 * @param {string} prefix
 */
function filling(pool, prefix) {
  return async (/** @type {Filling} */ { keys, perKey, state = 1, dataBytes = 0, reader }) => {
    const data = dataOf(dataBytes)
    const run = randomUUID()
    const now = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'
    const statements = [
      {
        text: `INSERT INTO ${prefix}head (key, epoch, number, at_ms) SELECT $1 || k, 1, $3, ${now} FROM generate_series(1, $2::int) k`,
        values: [run, keys, perKey],
      },
      {
        text: `INSERT INTO ${prefix}message (source, id, type, subject, key, epoch, number, at_ms, data)
          SELECT 'urn:reprise:bench', $1 || k || '-' || n, 'order.placed', $1 || k, $1 || k, 1, n, ${now}, $4
          FROM generate_series(1, $2::int) k, generate_series(1, $3::int) n ORDER BY n, k`,
        values: [run, keys, perKey, data],
      },
      {
        text: `INSERT INTO ${prefix}lane (reader, key, known_epoch, known_number, state, due_at_ms)
          SELECT r.name, $1 || k, 1, $3, $4, ${now} FROM generate_series(1, $2::int) k, ${prefix}reader r
          WHERE r.name = coalesce($5, r.name) ORDER BY k`,
        values: [run, keys, perKey, state, reader],
      },
    ]
    for (const statement of statements) await pool.query(statement)
    return keys * perKey
  }
}

/**
 * The outbox that people write: a table, from which a loop takes what nobody else has, publishes it and deletes it, all
 * in one transaction. Nothing is in order.
 * @param {import('pg').Pool} pool
 */
export async function outboxByHand(pool) {
  await pool.query(`CREATE TABLE IF NOT EXISTS outbox (number bigserial PRIMARY KEY, id text NOT NULL UNIQUE,
    type text NOT NULL, key text NOT NULL, at timestamptz NOT NULL DEFAULT now(), data text NOT NULL)`)
  await pool.query('TRUNCATE outbox')
  const { to, sent } = publisher()
  return {
    sent,
    fill: async (/** @type {Filling} */ { keys, perKey, dataBytes = 0 }) => {
      const data = dataOf(dataBytes)
      await pool.query(
        `INSERT INTO outbox (id, type, key, data) SELECT $1 || k || '-' || n, 'order.placed', $1 || k, $4
         FROM generate_series(1, $2::int) k, generate_series(1, $3::int) n ORDER BY n, k`,
        [randomUUID(), keys, perKey, data],
      )
      return keys * perKey
    },
    publish: async (/** @type {number} */ count) => {
      const before = sent.messages
      const start = process.hrtime.bigint()
      const client = await pool.connect()
      try {
        while (sent.messages - before < count) await publishByHand(client, to.publish)
      } finally {
        client.release()
      }
      const time = Number(process.hrtime.bigint() - start)
      return (time * count) / (sent.messages - before)
    },
  }
}

const take = {
  name: 'take',
  text: 'SELECT number, id, type, key, at, data FROM outbox ORDER BY number LIMIT $1 FOR UPDATE SKIP LOCKED',
}
const remove = { name: 'remove', text: 'DELETE FROM outbox WHERE number = ANY ($1)' }

/**
 * @param {import('pg').PoolClient} client
 * @param {(messages: readonly unknown[]) => Promise<unknown>} publish
 */
async function publishByHand(client, publish) {
  await client.query('BEGIN')
  try {
    const { rows } = await client.query({ ...take, values: [batch] })
    if (rows.length === 0) throw new Error('nothing is left')
    await publish(rows.map(({ id, type, key, at, data }) => ({ id, type, key, at, data: JSON.parse(data) })))
    await client.query({ ...remove, values: [rows.map(({ number }) => number)] })
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  }
}

/**
 * A subject that publishes so many messages in a turn, which are there before its time is taken.
 * @param {string} name
 * @param {{ fill(wanted: Filling): Promise<number>, publish(count: number): Promise<number> }} outbox
 * @param {number} perKey Infinity: all have one key.
 * @param {number} [dataBytes]
 */
export function publishing(name, outbox, perKey, dataBytes) {
  return {
    name,
    turn: async (/** @type {number} */ count) => {
      const whole = Math.max(count, batch)
      const each = Math.min(whole, perKey)
      await outbox.fill({ keys: Math.ceil(whole / each), perKey: each, ...(dataBytes !== undefined && { dataBytes }) })
      return ((await outbox.publish(whole)) * count) / whole
    },
  }
}
