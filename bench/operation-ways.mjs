// The same payment by an operation, by the bare transaction and by hand, on a pool.

import { randomUUID } from 'node:crypto'
import { postgres } from '../dist/stores/postgres/index.js'
import { bareOnPostgres, insertEntry, payByHand, prepareByHand } from './by-hand.mjs'
import { request, response, sharedOptions, text } from './operation-work.mjs'

/**
 * @param {import('pg').Pool} pool
 * @param {number} outcomeBytes How large the outcome is, at least; 0: the usual one.
 * @returns {Promise<Record<string, () => Promise<unknown>>>}
 */
export async function waysOf(pool, outcomeBytes) {
  const db = postgres({ pool, name: 'bench' })
  // Of many processes that begin at once, one makes the tables after the other.
  await db.migrate()
  const client = await pool.connect()
  try {
    await client.query('SELECT pg_advisory_lock(1)')
    await client.query('CREATE TABLE IF NOT EXISTS entry (id bigserial PRIMARY KEY, text text NOT NULL)')
    await prepareByHand(pool)
  } finally {
    await client.query('SELECT pg_advisory_unlock(1)')
    client.release()
  }
  const outcome = outcomeBytes === 0 ? response : { ...response, padding: '.'.repeat(outcomeBytes) }
  const pay = db.operation('pay-much', {
    ...sharedOptions(),
    run: async (/** @type {any} */ tx) => {
      await tx.query(insertEntry.postgres, [text])
      return outcome
    },
  })
  const own = randomUUID()
  let number = 0
  const next = () => {
    number += 1
    return { ...request(number), key: `${own}-${number}` }
  }
  return {
    operation: () => pay(next()),
    bare: () => bareOnPostgres(pool),
    'by hand': () => payByHand(pool, next(), outcome),
  }
}
