// The work that the operations of this bench do, and the keys they do it under.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { parseKey, scope } from '../dist/identity/index.js'

/** Long turns, since flushes vary, and a warm-up by calls, since the compiler goes by how often something was called. */
export const effort = { rounds: 41, turnMs: 100, warmUpMs: 2000, warmUpCalls: 5000 }

export const here = 'processor time of this process in us'
export const there = 'processor time of the server in us'

/** What one row holds. */
export const text = 'one row'

/** How many keys take turns in being repeated. */
export const repeated = 500

/**
 * Who pays: an input of some 200 bytes as JSON.
 * @param {number} number
 */
export function request(number) {
  return {
    key: `order-${number}-payment`,
    customer: 'c-20417',
    amount: 1999,
    currency: 'EUR',
    lines: [
      { item: 'book', count: 2, price: 750 },
      { item: 'pen', count: 1, price: 499 },
    ],
    note: 'deliver to the neighbour',
  }
}

/** What comes of it: some 450 bytes as JSON. */
export const response = {
  payment: 'p-993817264',
  state: 'captured',
  amount: 1999,
  currency: 'EUR',
  capturedAt: '2026-03-04T05:06:07.089Z',
  card: { brand: 'example', last: '4242', expires: '2029-11', country: 'DE' },
  receipt: {
    number: 'R-2026-000123',
    url: 'https://pay.example/receipts/R-2026-000123',
    lines: [
      { item: 'book', count: 2, price: 750, total: 1500 },
      { item: 'pen', count: 1, price: 499, total: 499 },
    ],
  },
  risk: { score: 0.12, checks: ['address', 'velocity', 'device'] },
}

/** The scope and the options that all operations of the bench share; each call of it is a scope of its own. */
export function sharedOptions() {
  const tenant = scope('bench', randomUUID())
  return {
    scope: () => tenant,
    key: (/** @type {{ key: string }} */ { key }) => parseKey(key),
    window: /** @type {const} */ ('24h'),
  }
}

/** A fresh request each time. */
export function fresh() {
  let number = 0
  return () => {
    number += 1
    return request(number)
  }
}

/** The same requests, one after the other, again and again. */
export function rotating(most = repeated) {
  const requests = Array.from({ length: most }, (_, number) => request(number))
  return { requests, next: inTurn(requests) }
}

/**
 * The members of a list, one after the other, again and again.
 * @template Member
 * @param {readonly Member[]} list
 * @returns {() => Member}
 */
export function inTurn(list) {
  let place = 0
  return () => {
    place = place + 1 === list.length ? 0 : place + 1
    return /** @type {Member} */ (list[place])
  }
}

/**
 * An operation around one insert, called with a fresh request each time.
 * @param {import('../dist/idempotency/index.js').Operations<any>} db
 * @param {string} insert
 */
export function paying(db, insert) {
  const next = fresh()
  const pay = db.operation('pay', {
    ...sharedOptions(),
    run: async (/** @type {any} */ tx) => {
      await tx.query(insert, [text])
      return response
    },
  })
  return () => pay(next())
}

/**
 * An operation that was carried out for all requests that take turns, under the name `replayed`.
 * @param {import('../dist/idempotency/index.js').Operations<any>} db
 */
export async function replaying(db) {
  const { requests, next } = rotating()
  let executed = 0
  const pay = db.operation('replayed', {
    ...sharedOptions(),
    run: async () => {
      executed += 1
      return response
    },
  })
  for (const one of requests) await pay(one)
  return {
    replay: () => pay(next()),
    /**
     * Each way gives what was stored, and nothing is carried out again.
     * @param {Record<string, () => unknown>} ways
     */
    async agree(ways) {
      for (const [name, run] of Object.entries(ways)) assert.deepEqual(await run(), response, name)
      assert.equal(executed, requests.length)
    },
  }
}

/**
 * Each way does what it says once, when nobody disturbs it.
 * @param {Record<string, () => unknown>} ways
 * @param {() => number | Promise<number>} count
 * @param {number} more How much the count grows with each.
 */
export async function check(ways, count, more) {
  for (const [name, run] of Object.entries(ways)) {
    const before = await count()
    await run()
    assert.equal((await count()) - before, more, name)
  }
}
