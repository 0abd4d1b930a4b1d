// What is behind, or parked, and whether it slows down what is published: the same work with and without it. And how
// much memory a relay and a consumer have while there is a backlog.

import { consume } from '../dist/messaging/index.js'
import { effort, outboxOf, publishing, shortEffort } from './messaging-work.mjs'

const empty = 'without one'

/**
 * @param {import('pg').Pool} pool
 * @param {string} place
 * @param {{ rows: number, keys: number }} backlog
 */
export async function* backlogCases(pool, place, backlog) {
  const shapes = [
    { keys: Math.ceil(backlog.rows / 100), perKey: 100 },
    { keys: backlog.keys, perKey: 1 },
  ]
  for (const { keys, perKey } of shapes) {
    const full = await readersOf(pool, `full${perKey}_`)
    const bare = await readersOf(pool, `bare${perKey}_`)
    await full.fill({ keys, perKey })
    await pool.query('VACUUM ANALYZE')
    const ours = `with a backlog of ${(keys * perKey).toLocaleString('en')} messages of ${keys.toLocaleString('en')} keys`
    const shared = { effort, shortEffort, targets: [{ against: empty, limit: 1.2 }] }
    yield {
      ...shared,
      name: `relay, time a message, ${perKey} a key, ${place}`,
      subjects: [publishing(ours, full, perKey), publishing(empty, bare, perKey)],
      notes: () => memoryLines(full.sent.heapBytes, bare.sent.heapBytes),
    }
    if (perKey === 1) continue
    yield {
      ...shared,
      name: `consumer, from: db, time a message, ${perKey} a key, ${place}`,
      subjects: [taking(ours, full, perKey), taking(empty, bare, perKey)],
      notes: () => memoryLines(full.taken.heapBytes, bare.taken.heapBytes),
    }
  }
}

/**
 * Keys that are parked behind dead letters.
 * @param {import('pg').Pool} pool
 * @param {string} place
 * @param {number} parked
 */
export async function* parkedCase(pool, place, parked) {
  const full = await outboxOf(pool, 'parked_')
  const bare = await outboxOf(pool, 'free_')
  const empty = 'without them'
  await full.fill({ keys: parked, perKey: 1, state: 2 })
  await pool.query(`INSERT INTO parked_dead_letter (reader, kind, source, id, type, subject, key, epoch, number, at_ms, data,
      state, parks, code, reason, history, first_at_ms, last_at_ms)
    SELECT 'bench', 'relay', source, id, type, subject, key, epoch, number, at_ms, data, 'open', 1, 'MESSAGE_REFUSED', 'refused', '[]', at_ms, at_ms
    FROM parked_message`)
  await pool.query('VACUUM ANALYZE')
  yield {
    name: `relay, time a message, ten a key, ${place}`,
    effort,
    shortEffort,
    subjects: [publishing(`beside ${parked.toLocaleString('en')} parked keys`, full, 10), publishing(empty, bare, 10)],
    targets: [{ against: empty, limit: 1.1 }],
  }
}

/**
 * An outbox with a relay and a consumer.
 * @param {import('pg').Pool} pool
 * @param {string} prefix
 */
async function readersOf(pool, prefix) {
  const outbox = await outboxOf(pool, prefix)
  const taken = { messages: 0, heapBytes: 0 }
  let enough = () => {}
  let left = 0
  const consumer = consume(outbox.db, {
    name: 'work',
    from: outbox.db,
    concurrency: 4,
    handle: () => {
      taken.messages += 1
      taken.heapBytes = Math.max(taken.heapBytes, process.memoryUsage().heapUsed)
      left -= 1
      if (left === 0) enough()
    },
  })
  await consumer.drain()
  return {
    ...outbox,
    taken,
    /** Takes at least so many, and gives how long one took. */
    take: async (/** @type {number} */ count) => {
      const stop = new AbortController()
      const before = taken.messages
      left = count
      enough = () => stop.abort()
      const start = process.hrtime.bigint()
      await consumer.drain({ signal: stop.signal })
      return (Number(process.hrtime.bigint() - start) * count) / (taken.messages - before)
    },
  }
}

/**
 * @param {string} name
 * @param {Awaited<ReturnType<typeof readersOf>>} outbox
 * @param {number} perKey
 */
function taking(name, outbox, perKey) {
  return {
    name,
    turn: async (/** @type {number} */ count) => {
      await outbox.fill({ keys: Math.ceil(count / perKey), perKey, reader: 'work' })
      return outbox.take(count)
    },
  }
}

/**
 * @param {number} full
 * @param {number} bare
 */
function memoryLines(full, bare) {
  const megabytes = (/** @type {number} */ bytes) => `${(bytes / 1e6).toFixed(0)} MB`
  return [`most heap of this process at work: ${megabytes(full)} with the backlog, ${megabytes(bare)} without one`]
}
