// Two ways to pay: `right` has marker and effect in one commit, `wrong` in two. On the SQLite file that PROOF_FILE
// names, or on the PostgreSQL that the proof hands over.

import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { scope } from 'reprise'
import { postgres } from 'reprise/stores/postgres'
import { sqlite } from 'reprise/stores/sqlite'

/** @typedef {import('reprise').Key} Key */
/** @typedef {import('reprise/testing').ProofPlace} ProofPlace */
/** @typedef {{ insertOnce(table: string, row: object, key: readonly string[]): Promise<unknown> }} Inserting */

const table = 'CREATE TABLE IF NOT EXISTS proven (number text PRIMARY KEY, intent text NOT NULL)'

/** @param {ProofPlace} place */
export async function world({ databaseUrl }) {
  const { db, outside, count, close } = databaseUrl === undefined ? await onSqlite() : await onPostgres(databaseUrl)
  const options = {
    scope: () => scope('proof'),
    key: (/** @type {string} */ intent) => /** @type {Key} */ (intent),
    window: /** @type {const} */ ('24h'),
  }
  const right = db.operation('right', {
    ...options,
    run: async (/** @type {Inserting} */ tx, /** @type {string} */ intent) => {
      await tx.insertOnce('proven', { number: randomUUID(), intent }, ['number'])
      return { receipt: intent }
    },
  })
  // Writes through the pool in place of `tx`: what is rolled back, or dies before COMMIT, leaves its effect behind.
  const wrong = db.operation('wrong', {
    ...options,
    run: async (/** @type {Inserting} */ _tx, /** @type {string} */ intent) => {
      await outside(intent)
      return { receipt: intent }
    },
  })
  return { right, wrong, count, close }
}

async function onSqlite() {
  const db = sqlite({ file: process.env['PROOF_FILE'] ?? '', name: 'proof' })
  await db.migrate()
  await db.transact((tx) => tx.query(table))
  const outside = async () => undefined
  const count = async (/** @type {string} */ intent) => {
    const { rows } = await db.transact((tx) => tx.query('SELECT number FROM proven WHERE intent = ?', [intent]))
    return rows.length
  }
  return { db, outside, count, close: () => db.close() }
}

async function onPostgres(/** @type {string} */ url) {
  const pool = new pg.Pool({ connectionString: url, max: 6 })
  pool.on('error', () => undefined)
  const db = postgres({ pool, name: 'proof' })
  await db.migrate()
  await pool.query(table)
  const outside = (/** @type {string} */ intent) =>
    pool.query('INSERT INTO proven VALUES ($1, $2)', [randomUUID(), intent])
  const count = async (/** @type {string} */ intent) => {
    const { rows } = await pool.query('SELECT number FROM proven WHERE intent = $1', [intent])
    return rows.length
  }
  const close = async () => {
    await db.close()
    await pool.end()
  }
  return { db, outside, count, close }
}

export const input = (/** @type {string} */ id) => id
