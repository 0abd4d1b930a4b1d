// What old rows cost: the same calls on a table of records that is full and on one that is empty.

import assert from 'node:assert/strict'
import { postgres } from '../dist/stores/postgres/index.js'
import { effort, fresh, here, response, rotating, sharedOptions, there } from './operation-work.mjs'
import { backendsOf } from './postgres-server.mjs'
import { ownProcessorUs, processorUs } from './processor-time.mjs'

const empty = 'an empty table'

/**
 * First calls and replays on a table with many old rows against those on an empty one.
 * @param {import('pg').Pool} pool
 * @param {number} rows
 */
export async function* oldRowsCases(pool, rows) {
  const full = `${rows.toLocaleString('en')} old rows`
  const tables = [await ageOf(pool, 'full_', full), await ageOf(pool, 'empty_', empty)]
  await fill(pool, 'full_', rows)
  const backends = await backendsOf(pool, 1)
  for (const kind of /** @type {const} */ (['first', 'replay'])) {
    yield {
      name: `${kind === 'first' ? 'first call' : 'replay'}, PostgreSQL, 1 connection: ${full} against ${empty}`,
      subjects: tables.map((table) => ({ name: table.name, run: table[kind], waits: true })),
      targets: [{ against: empty, limit: 1.1 }],
      meters: [
        { name: here, read: ownProcessorUs },
        { name: there, read: () => processorUs(backends) },
      ],
      effort,
      notes: [
        'limit: the depth of the index, and the pages of it that a name lands on: names are digests, so each is another page, which is logged',
        '  whole when it is first changed after a checkpoint',
      ],
    }
  }
}

/**
 * The same on tables that grow, up to a size: for a look at the curve, with a target at its end.
 * @param {import('pg').Pool} pool
 * @param {number} most
 */
export async function* curveCase(pool, most) {
  const table = await ageOf(pool, 'curve_', 'growing')
  const none = await ageOf(pool, 'none_', empty)
  let rows = 0
  for (const share of [0.01, 0.1, 0.3, 1]) {
    const more = Math.round(most * share) - rows
    await fill(pool, 'curve_', more)
    rows += more
    for (const kind of /** @type {const} */ (['first', 'replay'])) {
      yield {
        name: `curve: ${kind === 'first' ? 'first call' : 'replay'}, ${rows.toLocaleString('en')} old rows`,
        subjects: [table, none].map((one) => ({ name: one.name, run: one[kind], waits: true })),
        targets: share === 1 ? [{ against: empty, limit: 1.1 }] : [],
        effort: { ...effort, warmUpMs: 1000 },
      }
    }
  }
}

/**
 * @param {import('pg').Pool} pool
 * @param {string} prefix
 * @param {string} name
 */
async function ageOf(pool, prefix, name) {
  const db = postgres({ pool, name: prefix, prefix })
  await db.migrate()
  const { requests, next } = rotating()
  const another = fresh()
  let executed = 0
  const run = async () => {
    executed += 1
    return response
  }
  const first = db.operation('first', { ...sharedOptions(), run })
  const replay = db.operation('replay', { ...sharedOptions(), run })
  for (const one of requests) await replay(one)
  const before = executed
  assert.deepEqual(await first(another()), response)
  assert.deepEqual(await replay(next()), response)
  assert.equal(executed - before, 1)
  return { name, first: () => first(another()), replay: () => replay(next()) }
}

/**
 * Finished records of the month before, in the order of their ends, under names that lie anywhere.
 * @param {import('pg').Pool} pool
 * @param {string} prefix
 * @param {number} rows
 */
async function fill(pool, prefix, rows) {
  const most = 250_000
  for (let done = 0; done < rows; done += most) {
    await pool.query(
      `INSERT INTO ${prefix}marker (id, format, mode, operation, scope, fingerprint, state, token, claimed_at_ms, completed_at_ms, expires_at_ms, value)
       SELECT 'sha256:' || rtrim(translate(encode(sha256((random()::text || n)::bytea), 'base64'), '+/', '-_'), '='), 2, 'atomic', 'pay',
         'sha256:' || repeat('s', 43), 'sha256:' || repeat('f', 43), 'succeeded', 'token.' || n, at, at, at + 86400000, $2
       FROM (SELECT n, (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 2592000000 + n AS at FROM generate_series(1, $1::bigint) AS n) AS old`,
      [Math.min(most, rows - done), JSON.stringify(response)],
    )
  }
  await pool.query(`VACUUM ANALYZE ${prefix}marker`)
  await pool.query('CHECKPOINT')
}
