// Many workers on few rows: how much gets done, and how much is done in vain.

import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { fullEffort, spread } from './harness.mjs'

const workers = 50
const rows = 4
const full = { rounds: 9, turnMs: 1500, warmUpMs: 1000 }
const short = { rounds: 1, turnMs: 500, warmUpMs: 200 }

const read = 'SELECT n FROM contended WHERE id = $1'
const write = 'UPDATE contended SET n = $2 WHERE id = $1'

/** @typedef {{ attempts: number, stopped: () => boolean }} Tally */
/** @typedef {(row: number, tally: Tally) => Promise<boolean>} Increment Adds one to a row; false: it did not happen. */

/**
 * The loop that one writes without thinking of others: again at once, on the same connection.
 * @param {import('pg').Pool} pool
 * @returns {Increment}
 */
function handLoop(pool) {
  return async (row, tally) => {
    const client = await pool.connect()
    try {
      while (!tally.stopped()) {
        tally.attempts += 1
        try {
          await client.query('BEGIN ISOLATION LEVEL SERIALIZABLE')
          const { rows } = await client.query(read, [row])
          await client.query(write, [row, rows[0].n + 1])
          await client.query('COMMIT')
          return true
        } catch (error) {
          await client.query('ROLLBACK')
          if (!['40001', '40P01'].includes(/** @type {any} */ (error).code)) throw error
        }
      }
      return false
    } finally {
      client.release()
    }
  }
}

/**
 * @param {import('../dist/stores/postgres/index.js').PostgresDomain<unknown>} db
 * @returns {Increment}
 */
function transactions(db) {
  return async (row, tally) => {
    try {
      await db.transact(
        async (tx) => {
          tally.attempts += 1
          const { rows } = await tx.query(read, [row])
          await tx.query(write, [row, /** @type {any} */ (rows[0]).n + 1])
        },
        { isolation: 'serializable' },
      )
      return true
    } catch (error) {
      // It gave up, as it may: all its attempts were in vain. Anything else is no part of this.
      if (['40001', '40P01'].includes(/** @type {any} */ (error).code)) return false
      throw error
    }
  }
}

/**
 * @param {import('pg').Pool} pool
 * @param {Increment} increment
 * @param {number} turnMs
 */
async function turn(pool, increment, turnMs) {
  let done = false
  const before = await sum(pool)
  const tally = { attempts: 0, stopped: () => done }
  let commits = 0
  const start = performance.now()
  const all = Array.from({ length: workers }, async (_, worker) => {
    for (let step = 0; !done; step++) if (await increment((worker + step) % rows, tally)) commits += 1
  })
  await wait(turnMs)
  done = true
  const seconds = (performance.now() - start) / 1e3
  const within = { commits, attempts: tally.attempts }
  await Promise.all(all)
  // What was counted here is what is in the table: no increment was lost, and none was done twice.
  assert.equal((await sum(pool)) - before, commits)
  return { goodput: within.commits / seconds, wasted: (within.attempts - within.commits) / within.commits }
}

/** @param {import('pg').Pool} pool */
async function sum(pool) {
  const { rows } = await pool.query('SELECT sum(n)::integer AS n FROM contended')
  return rows[0].n
}

/**
 * The case: our transactions against the loop by hand, in turns.
 * @param {import('pg').Pool} pool
 * @param {import('../dist/stores/postgres/index.js').PostgresDomain<unknown>} db
 */
export async function contentionCase(pool, db) {
  await pool.query('CREATE TABLE contended (id integer PRIMARY KEY, n integer NOT NULL)')
  await pool.query('INSERT INTO contended SELECT id, 0 FROM generate_series(0, $1 - 1) AS id', [rows])
  return {
    name: `contention: ${workers} workers add to ${rows} rows, SERIALIZABLE, read then write`,
    targets: [
      { what: 'goodput', least: 1 },
      { what: 'wasted', most: 0.5 },
    ],
    measure: (/** @type {{ name: string, targets: any[] }} */ one, /** @type {unknown} */ effort) =>
      measure(pool, db, one, effort === fullEffort ? full : short),
    lines,
  }
}

/**
 * @param {import('pg').Pool} pool
 * @param {import('../dist/stores/postgres/index.js').PostgresDomain<unknown>} db
 * @param {{ name: string, targets: { what: string, least?: number, most?: number }[] }} one
 * @param {typeof full} effort
 */
async function measure(pool, db, { name, targets }, { rounds, turnMs, warmUpMs }) {
  const ways = [
    { name: 'transact', increment: transactions(db) },
    { name: 'loop by hand, no backoff', increment: handLoop(pool) },
  ]
  /** @type {Awaited<ReturnType<typeof turn>>[][]} */
  const turns = ways.map(() => [])
  for (const { increment } of ways) await turn(pool, increment, warmUpMs)
  for (let round = 0; round < rounds; round++) {
    for (let place = 0; place < ways.length; place++) {
      const index = (place + round) % ways.length
      turns[index].push(await turn(pool, ways[index].increment, turnMs))
    }
  }
  for (const some of turns) assert.ok(some.some((one) => one.goodput > 0))
  const results = ways.map((way, index) => ({
    name: way.name,
    goodput: spread(turns[index].map((one) => one.goodput)),
    wasted: spread(turns[index].map((one) => one.wasted)),
  }))
  const ratios = /** @type {const} */ (['goodput', 'wasted']).map((what) => {
    const ratio = spread(turns[0].map((one, round) => one[what] / turns[1][round][what]))
    const target = targets.find((candidate) => candidate.what === what)
    return { against: ways[1].name, what, ratio, ...(target && judge(ratio.median, target)) }
  })
  return { name, results, ratios }
}

/**
 * @param {number} ratio
 * @param {{ least?: number, most?: number }} target
 */
function judge(ratio, { least, most }) {
  if (least !== undefined) return { target: `>= ${least.toFixed(2)}`, met: ratio >= least }
  return { target: `<= ${most?.toFixed(2)}`, met: most === undefined || ratio <= most }
}

/** @param {Awaited<ReturnType<typeof measure>>} measured */
function lines({ name, results, ratios }) {
  const width = Math.max(...results.map((result) => result.name.length))
  const text = (/** @type {{ low: number, median: number, high: number }} */ { low, median, high }, digits = 0) =>
    `${median.toFixed(digits)} (${low.toFixed(digits)} .. ${high.toFixed(digits)})`
  return [
    name,
    ...results.map(
      (result) =>
        `  ${result.name.padEnd(width)}  ${text(result.goodput)} commits/s, ${text(result.wasted, 2)} attempts in vain for each`,
    ),
    ...ratios.map(({ what, ratio, ...judged }) => {
      const line = `  transact has ${text(ratio, 2)} x the ${what === 'goodput' ? 'commits' : 'attempts in vain for each commit'}`
      return 'target' in judged ? `${line}, target ${judged.target}: ${judged.met ? 'met' : 'MISSED'}` : line
    }),
  ]
}
