// Lanes on PostgreSQL beside transactions that are open: what they hold is waited for or passed over, and never skipped.
// And what claims and ends read, by their plans.

import diagnostics from 'node:diagnostics_channel'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { deadlineAfter } from '../../../src/kernel/index.js'
import { type ClaimedLane, consume, type LaneEnd, type Reader } from '../../../src/messaging/index.js'
import { messageTables, postgresDialect } from '../../../src/stores/sql/index.js'
import { claiming } from '../../../src/stores/sql/messages/claim.js'
import { ending } from '../../../src/stores/sql/messages/ends.js'
import type { Procedure } from '../../../src/stores/sql/records/procedures.js'
import { patient, postgresWorld, untilWaiting } from './world.js'

const { db, raw } = await postgresWorld()
const relay: Reader = { name: 'relay', kind: 'relay', reads: 'outbox' }
const limits = () => ({ deadline: deadlineAfter('60s') })
const query = { reader: relay, owner: 'me', leaseMs: 60_000, lanes: 10, perLane: 10 }
const claim = async (): Promise<readonly ClaimedLane[]> => (await db.messages.claim(query, limits())).lanes
const emit = (key: string, id: string): Promise<unknown> =>
  db.transact((tx) => tx.emit({ type: 't', key, id, data: 1 }), patient)
const free = ({ key, attempt, messages }: ClaimedLane): LaneEnd => {
  const then = { is: 'free' } as const
  return { reader: relay, key, owner: 'me', attempt, done: messages[0]?.place, then }
}
const idsOf = (lanes: readonly ClaimedLane[]): readonly (readonly string[])[] =>
  lanes.map(({ messages }) => messages.map(({ id }) => id))

beforeEach(async () => {
  await raw.query('TRUNCATE reprise_head, reprise_message, reprise_reader, reprise_lane, reprise_dead_letter')
  await db.messages.register(relay, limits())
})

describe('beside a transaction that is open', () => {
  it('no message is seen before one with a lower number', async () => {
    await emit('a', 'first')
    // Somebody has emitted the second message, and not committed it.
    await raw.query('BEGIN')
    await raw.query("UPDATE reprise_head SET number = 2 WHERE key = 'a'")
    await raw.query(
      "INSERT INTO reprise_message (source, id, type, key, epoch, number, at_ms, data) SELECT 'test', 'second', 't', key, epoch, 2, at_ms, '1' FROM reprise_head",
    )
    const third = emit('a', 'third')
    await untilWaiting(raw)
    const lanes = await claim()
    expect(idsOf(lanes)).toEqual([['first']])
    await raw.query('COMMIT')
    await third
    expect(await db.messages.end(lanes.map(free), limits())).toEqual([true])
    expect(idsOf(await claim())).toEqual([['second', 'third']])
  })

  it('a lane that it has locked is passed over, and the others are not', async () => {
    await emit('a', 'a1')
    await emit('b', 'b1')
    await raw.query('BEGIN')
    await raw.query("UPDATE reprise_lane SET claims = claims WHERE key = 'a'")
    expect(idsOf(await claim())).toEqual([['b1']])
    await raw.query('ROLLBACK')
    expect(idsOf(await claim())).toEqual([['a1']])
  })

  it('the end of a lane that it writes to waits for it, and sees what it wrote', async () => {
    await emit('a', 'a1')
    const lanes = await claim()
    await raw.query('BEGIN')
    await raw.query("UPDATE reprise_lane SET known_number = 2 WHERE key = 'a'")
    const ended = db.messages.end(lanes.map(free), limits())
    await untilWaiting(raw)
    await raw.query('COMMIT')
    expect(await ended).toEqual([true])
    const { rows } = await raw.query('SELECT state, owner FROM reprise_lane')
    expect(rows).toEqual([{ state: 1, owner: null }])
  })
})

describe('handlers that emit to the keys of each other', () => {
  it('wait in one order, also beside others who emit to these keys, and never for each other', async () => {
    const signs: unknown[] = []
    const hear = (event: unknown): void => void signs.push((event as { readonly sign?: unknown }).sign)
    diagnostics.subscribe('reprise.transaction.attempt', hear)
    onTestFinished(() => void diagnostics.unsubscribe('reprise.transaction.attempt', hear))
    const consumer = consume(db, {
      name: 'pairs',
      from: db,
      deadline: '60s',
      storeLimit: '60s',
      // Its partner, and itself.
      handle: async (tx, { key, data }) => {
        if (data.hops === 0) return
        const partner = String(Number(key) ^ 1)
        await tx.emit(
          [partner, key].map((to, own) => ({ type: 't', key: to, data: { hops: own ? 0 : data.hops - 1 } })),
        )
      },
    })
    const hops = 25
    const keys = ['0', '1', '2', '3', '4', '5', '6', '7']
    const seed = (given: object): Promise<unknown> =>
      db.transact((tx) => tx.emit(keys.map((key) => ({ type: 't', key, data: given }))), patient)
    await consumer.drain()
    await seed({ hops })
    const stop = new AbortController()
    const running = consumer.run({ signal: stop.signal })
    const all = keys.length * (2 * hops + 1)
    const rounds = 30
    for (let round = 0; round < rounds; round += 1) await seed({ hops: 0 })
    await expect.poll(() => consumer.counts.handled, { timeout: 120_000 }).toBe(all + rounds * keys.length)
    stop.abort()
    await running
    expect(signs.filter((sign) => sign === '40P01')).toEqual([])
    expect(consumer.counts).toMatchObject({ failed: 0, parked: 0, fenced: 0 })
  })
})

it('a reader that a transaction did not know of is told of its messages later', async () => {
  await emit('a', 'a1')
  // As if it had read the table of readers before this one was there.
  await raw.query("DELETE FROM reprise_lane WHERE key = 'a'")
  expect(await claim()).toEqual([])
  expect(await db.messages.register(relay, limits())).toBe(true)
  expect(idsOf(await claim())).toEqual([['a1']])
})

it('a reader is told of many keys page by page, and goes round again', async () => {
  await raw.query("INSERT INTO reprise_head SELECT 'k' || n, 7, 1, NULL, 0 FROM generate_series(1, 4001) AS n")
  const told = async () => Number((await raw.query('SELECT count(*) AS lanes FROM reprise_lane')).rows[0].lanes)
  const answers: unknown[] = []
  for (let call = 1; call <= 4; call += 1) answers.push(await db.messages.register(relay, limits()), await told())
  expect(answers).toEqual([false, 2_000, false, 4_000, true, 4_001, false, 4_001])
})

it('claims and ends find lanes, messages and letters by their indexes, however many there are', async () => {
  const keys = 'generate_series(1, 20000) AS k'
  await raw.query(
    `INSERT INTO reprise_message (source, id, type, key, epoch, number, at_ms, data) SELECT 's', k || '-' || n, 't', 'k' || k, 7, n, 0, '1' FROM ${keys}, generate_series(1, 5) AS n`,
  )
  await raw.query(
    `INSERT INTO reprise_lane (reader, key, known_epoch, known_number, state, due_at_ms) SELECT 'relay', 'k' || k, 7, 5, 1, k FROM ${keys}`,
  )
  await raw.query(
    `INSERT INTO reprise_dead_letter (reader, kind, source, id, type, key, epoch, number, at_ms, data, state, parks, code, reason, history, first_at_ms, last_at_ms) SELECT 'relay', 'relay', 's', k || '-1', 't', 'k' || k, 7, 1, 0, '1', 'closed', 1, 'C', 'r', '[]', 0, 0 FROM ${keys}`,
  )
  await raw.query(`INSERT INTO reprise_head (key, epoch, number, at_ms) SELECT 'k' || k, 7, 5, 0 FROM ${keys}`)
  await raw.query('VACUUM ANALYZE reprise_message, reprise_lane, reprise_dead_letter, reprise_head')
  const sql = { dialect: postgresDialect, tables: messageTables((table) => `reprise_${table}`) }
  const planOf = async (procedure: Procedure<unknown>): Promise<string> => {
    const { value } = procedure.next()
    const { text, values } = value as { readonly text: string; readonly values: unknown[] }
    const { rows } = await raw.query(`EXPLAIN ${text}`, values)
    return rows.map((row) => row['QUERY PLAN']).join('\n')
  }
  const lanes = Array.from({ length: 100 }, (_, place) => ({ key: `k${place}`, attempt: 1, messages: [] }))
  const ends = lanes.map((lane) => free(lane as unknown as ClaimedLane))
  const single = await planOf(ending(sql, ends.slice(0, 1)))
  const plans = [await planOf(claiming(sql, { ...query, lanes: 100 })), await planOf(ending(sql, ends)), single]
  for (const plan of plans) expect(plan).not.toMatch(/Seq Scan on reprise_/)
  for (const plan of plans.slice(1)) expect(plan).toMatch(/Index Scan using reprise_lane_pkey/)
  // What was found is written where it was found.
  expect(plans[0]).toMatch(/Tid Scan on reprise_lane/)
  expect(plans[0]).toMatch(/Full Join/)
  // With what a handler has emitted.
  const emitting = await planOf(ending(sql, ends.slice(0, 1), ['k7', 'k8', 'k9']))
  expect(emitting).not.toMatch(/Seq Scan on reprise_(lane|head|dead_letter)/)
  expect(plans[0]).toMatch(/Index Scan using reprise_lane_due/)
  expect(plans[0]).toMatch(/Index (Only )?Scan using reprise_message_pkey/)
  // Whatever waits under a key is not sorted: only what is handed out is.
  expect(plans[0]?.match(/Sort Key: .*/g)).toEqual([expect.stringMatching('due.due_at_ms, t.key')])
})

describe('a table that was empty when its readers began', () => {
  it('has no plan of claims and ends from that time: they are planned each time', async () => {
    for (let time = 0; time < 8; time += 1) {
      await emit('a', `a${time}`)
      expect(await db.messages.end((await claim()).map(free), limits())).toEqual([true])
    }
    const kept = await db.transact((tx) => tx.query('SELECT statement FROM pg_prepared_statements'), patient)
    const texts = kept.rows.map(({ statement }) => String(statement))
    // The connection is the one that had them all: it keeps the statements of emits, of one message and of several.
    const emits = texts.filter((text) => text.includes('INSERT INTO "public"."reprise_message"'))
    expect([1, 2]).toContain(emits.length)
    expect(texts.filter((text) => /^WITH (?:due|given)/.test(text))).toEqual([])
  })
})
