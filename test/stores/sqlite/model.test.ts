// The store in SQLite against a plain model: drawn transactions and operations that come at the same time and share
// their COMMITs, with savepoints, failures and repeats of keys. The file holds what the model says, and every caller is
// told its own.

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import fc from 'fast-check'
import Database from 'libsql'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { parseKey, scope } from '../../../src/identity/index.js'
import { systemClock } from '../../../src/kernel/index.js'
import { type SqliteClient, type SqliteDomain, sqlite } from '../../../src/stores/sqlite/index.js'
import type { TransactionSharedEvent } from '../../../src/telemetry/index.js'
import { property } from '../../property.js'
import { type Case, drawnCase, inModel, inStore, type Model, rowsOf, unlessExpected } from '../transaction-model.js'
import { freshFile, rowsIn } from './files.js'

/** One that comes: a transaction, or a call of an operation under a key of a few. */
interface Comer extends Case {
  readonly key: number | undefined
}

const comer: fc.Arbitrary<Comer> = fc
  .tuple(drawnCase, fc.option(fc.integer({ min: 0, max: 2 }), { nil: undefined }))
  .map(([drawn, key]) => ({ ...drawn, key }))
const crowds = fc.array(fc.array(comer, { minLength: 1, maxLength: 6 }), { maxLength: 4 })

// The milliseconds that a shared COMMIT stays open are never over.
const clock = { ...systemClock, monotonicMs: () => 1_000 }
const file = freshFile()
let db: SqliteDomain<SqliteClient>
let play: (call: Call) => Promise<number>
let ran: number[] = []
let drawn = 0
let comers = 0
const members: number[] = []
const onShared = (event: unknown) => members.push((event as TransactionSharedEvent).members)

interface Call {
  readonly key: string
  readonly number: number
  readonly body: Case
}

/** Notes who ran, in the order of their last runs: one body at a time has the file. */
function note(number: number): void {
  ran = [...ran.filter((other) => other !== number), number]
}

beforeAll(async () => {
  subscribe('reprise.transaction.shared', onShared)
  db = sqlite({ name: 'model', open: () => new Database(file), clock })
  await db.migrate()
  await db.transact((tx) => tx.query('CREATE TABLE player (id INTEGER PRIMARY KEY, team INTEGER)'))
  play = db.operation('play', {
    scope: () => scope('model'),
    key: ({ key }: Call) => parseKey(key),
    content: 'none',
    window: '1h',
    run: async (tx, { number, body }) => {
      note(number)
      await inStore(tx, body)
      return number
    },
  })
})
afterAll(async () => {
  unsubscribe('reprise.transaction.shared', onShared)
  await db.close()
})

function come({ key, ...body }: Comer, number: number, run: number): Promise<number | undefined> {
  if (key !== undefined) return unlessExpected(play({ key: `case-${run}-${key}`, number, body }))
  const transaction = db.transact(async (tx) => {
    note(number)
    await inStore(tx, body)
    return number
  })
  return unlessExpected(transaction)
}

property(
  'commits, rolls back, undoes and replays exactly as the model does, one after the other',
  [crowds],
  async (drawnCrowds) => {
    drawn += 1
    const run = drawn
    await db.transact((tx) => tx.query('DELETE FROM player'))
    const model: Model = new Map()
    const outcomes = new Map<number, number>()
    for (const crowd of drawnCrowds) {
      ran = []
      const first = comers
      comers += crowd.length
      const told = await Promise.all(crowd.map((one, index) => come(one, first + index, run)))
      const done = new Set<number>()
      for (const number of ran) {
        const one = crowd[number - first] as Comer
        // Whoever has a finished key does not run.
        if (one.key !== undefined) expect(outcomes.has(one.key)).toBe(false)
        if (!inModel(model, one)) continue
        done.add(number)
        if (one.key !== undefined) outcomes.set(one.key, number)
      }
      const expected = crowd.map(({ key }, index) => {
        const number = first + index
        if (ran.includes(number)) return done.has(number) ? number : undefined
        return key === undefined ? 'a run' : outcomes.get(key)
      })
      expect(told).toEqual(expected)
      expect(rowsIn(file, 'SELECT id, team FROM player ORDER BY id')).toEqual(rowsOf(model))
    }
  },
  { cases: 150, timeLimitMs: 600_000 },
)

it('they did share their COMMITs', () => {
  expect(Math.max(0, ...members)).toBeGreaterThan(2)
})
