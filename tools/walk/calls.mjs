// The calls that are walked: a keyed POST on PostgreSQL through Express, first and repeated, and a policy around a
// call.

import { request } from 'node:http'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import express from 'express'
import pg from 'pg'
import { startCoverage } from './coverage.mjs'

/** @typedef {{ name: string, entered: import('./coverage.mjs').Entered }} Walked */

/**
 * Sends a payment under a key, and refuses any answer but that of a payment that was made.
 * @param {number} port
 * @param {string} key
 */
function postPayment(port, key) {
  const headers = { 'content-type': 'application/json', 'idempotency-key': key }
  const options = { host: '127.0.0.1', port, method: 'POST', path: '/payments', headers }
  return new Promise((resolve, reject) => {
    const sent = request(options, (response) => {
      response.resume().once('error', reject)
      response.once('end', () => {
        if (response.statusCode === 201) resolve(response.headers)
        else reject(new Error(`The payment was answered with ${response.statusCode}.`))
      })
    })
    sent.once('error', reject).end(JSON.stringify({ id: key, amount: 5 }))
  })
}

/**
 * Serves a route that makes a payment in one transaction. The answer is its port, and how to end it.
 * @param {(path: string) => Promise<any>} load a file of dist
 * @param {string} url of a PostgreSQL
 */
async function servePayments(load, url) {
  const { postgres } = await load('stores/postgres/index.js')
  const { idempotent, reply } = await load('http/express/index.js')
  // One connection: what is prepared once on each of them was prepared by the call before.
  const pool = new pg.Pool({ connectionString: url, max: 1 })
  const db = postgres({ pool, name: 'walk' })
  await db.migrate()
  await pool.query('CREATE TABLE payment (id text PRIMARY KEY, amount int)')
  const route = { name: 'pay', principal: () => ['alice'], window: '24h' }
  const pay = async (/** @type {any} */ { tx, request }) => {
    const { id, amount } = await request.json()
    await tx.query('INSERT INTO payment VALUES ($1, $2)', [id, amount])
    return reply(201, { id, amount })
  }
  const app = express()
  app.post('/payments', idempotent(db, route, pay))
  const server = app.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The server has no port.')
  const end = async () => {
    server.closeAllConnections()
    server.close()
    await pool.end()
  }
  return { port: address.port, end }
}

/**
 * Of the same work done a few times, the one that entered least: on a busy machine a timer may ring that would not have.
 * @param {import('./coverage.mjs').Entered[]} all
 */
function smallest(all) {
  const size = (/** @type {import('./coverage.mjs').Entered} */ entered) => [...entered.values()].flat().length
  return all.reduce((least, entered) => (size(entered) < size(least) ? entered : least))
}

/** A body for a policy that fails so often before it succeeds, each time before anything was sent. */
function failing(/** @type {number} */ times) {
  let left = times
  return async () => {
    if (left-- > 0) throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED', syscall: 'connect' })
  }
}

/**
 * Walks every call and answers what each entered.
 * @param {string} root
 * @param {string} url of a PostgreSQL
 * @returns {Promise<Walked[]>}
 */
export async function walkCalls(root, url) {
  const load = (/** @type {string} */ path) => import(pathToFileURL(join(root, 'dist', path)).href)
  const { retryPolicy, keyed, fullJitter } = await load('retry/index.js')
  const { mintKey } = await load('identity/index.js')
  const payments = await servePayments(load, url)
  const coverage = await startCoverage(root)
  const walked = async (/** @type {string} */ name, /** @type {(round: number) => Promise<unknown>} */ work) => {
    const all = []
    for (let round = 0; round < 5; round++) all.push(await coverage.enteredBy(() => work(round)))
    return { name, entered: smallest(all) }
  }
  try {
    const policy = retryPolicy({ attempts: 3, backoff: fullJitter({ baseMs: 1, capMs: 2 }) })
    const key = mintKey()
    await postPayment(payments.port, 'warm')
    await policy.run(keyed(key), failing(0))
    return [
      await walked('keyed POST', (round) => postPayment(payments.port, `key-${round}`)),
      await walked('keyed POST, replayed', (round) => postPayment(payments.port, `key-${round}`)),
      await walked('policy.run, success', () => policy.run(keyed(key), failing(0))),
      await walked('policy.run, one failure', () => policy.run(keyed(key), failing(1))),
    ]
  } finally {
    coverage.end()
    await payments.end()
  }
}
