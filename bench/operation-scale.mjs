// Operations on PostgreSQL where there is much of something: large outcomes, many connections, many processes.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { waysOf } from './operation-ways.mjs'
import { effort } from './operation-work.mjs'
import { withPool } from './postgres-server.mjs'

const [ours, bare, byHand] = /** @type {const} */ (['operation', 'bare', 'by hand'])
const processes = 8
const connectionsEach = 4

/**
 * @param {string} url
 * @param {import('./harness.mjs').Subject} flushes
 */
export async function* scaleCases(url, flushes) {
  yield* withPool(url, 16, (pool) => oneProcess(pool, '64 kB outcomes, 16 connections', 16, 64_000, [0.35, 1], flushes))
  yield* withPool(url, 64, (pool) => oneProcess(pool, '64 connections', 64, 0, [0.55, 1.15], flushes))
  yield* manyProcesses(url, flushes)
}

/**
 * @param {import('pg').Pool} pool
 * @param {string} name
 * @param {number} connections
 * @param {number} outcomeBytes
 * @param {[number, number]} limits Of the bare transaction, and of what is written by hand.
 * @param {import('./harness.mjs').Subject} flushes
 */
async function* oneProcess(pool, name, connections, outcomeBytes, limits, flushes) {
  const ways = await waysOf(pool, outcomeBytes)
  yield caseOf(
    name,
    Object.entries(ways).map(([way, run]) => ({ name: way, run, waits: true, atOnce: connections })),
    limits,
    flushes,
  )
}

/**
 * @param {string} url
 * @param {import('./harness.mjs').Subject} flushes
 */
async function* manyProcesses(url, flushes) {
  const program = fileURLToPath(new URL('./operation-process.mjs', import.meta.url))
  const children = Array.from({ length: processes }, () => fork(program, [url, String(connectionsEach)]))
  try {
    await Promise.all(children.map((child) => once(child, 'message')))
    const turnOf = (/** @type {string} */ way) => async (/** @type {number} */ count) => {
      const start = process.hrtime.bigint()
      await Promise.all(
        children.map(async (child) => {
          child.send({ way, count: Math.ceil(count / processes) })
          const [{ failed }] = await once(child, 'message')
          if (failed !== undefined) throw new Error(failed)
        }),
      )
      return Number(process.hrtime.bigint() - start)
    }
    const subjects = [ours, bare, byHand].map((name) => ({ name, turn: turnOf(name), atOnce: processes }))
    yield caseOf(`${processes} processes of ${connectionsEach} connections`, subjects, [0.5, 1.15], flushes)
  } finally {
    for (const child of children) child.kill()
  }
}

/**
 * @param {string} name
 * @param {import('./harness.mjs').Subject[]} subjects
 * @param {[number, number]} limits
 * @param {import('./harness.mjs').Subject} flushes
 */
function caseOf(name, subjects, [ofBare, ofByHand], flushes) {
  return {
    name: `operation around one insert, PostgreSQL, ${name}`,
    rates: true,
    subjects: [...subjects, { ...flushes }],
    targets: [
      { against: bare, limit: ofBare },
      { against: byHand, limit: ofByHand },
    ],
    effort,
  }
}
