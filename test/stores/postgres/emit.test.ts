// What a transaction emits on PostgreSQL: in the write that commits, with the heads of its keys locked in one order, and
// with an end to every wait for them that leaves nothing unknown.

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import pg from 'pg'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { mintKey, scope } from '../../../src/identity/index.js'
import { type PostgresDomain, postgres } from '../../../src/stores/postgres/index.js'
import {
  type TransactionAttemptEvent,
  type TransactionResolvedEvent,
  transactionAttempt,
  transactionResolved,
} from '../../../src/telemetry/index.js'
import { gate } from '../../../src/testing/conformance/gate.js'
import { writesOf } from './counted-writes.js'
import { codeOf, patient, postgresWorld, untilWaiting, type World } from './world.js'

let world: World
const opened: { end(): Promise<void> }[] = []
const attempts: TransactionAttemptEvent[] = []
const resolved: TransactionResolvedEvent[] = []
const onAttempt = (event: unknown): void => void attempts.push(event as TransactionAttemptEvent)
const onResolved = (event: unknown): void => void resolved.push(event as TransactionResolvedEvent)

beforeAll(async () => {
  world = await postgresWorld()
})
beforeEach(async () => {
  await world.raw.query('truncate reprise_head, reprise_message, reprise_lane, reprise_reader, item')
  attempts.length = 0
  resolved.length = 0
  subscribe(transactionAttempt.name, onAttempt)
  subscribe(transactionResolved.name, onResolved)
})
afterEach(async () => {
  unsubscribe(transactionAttempt.name, onAttempt)
  unsubscribe(transactionResolved.name, onResolved)
  await Promise.all(opened.splice(0).map((one) => one.end()))
})

const placed = (key: string, data: unknown = null) => ({ type: 'placed', key, data })
const messages = async (): Promise<{ key: string; number: number; data: string }[]> =>
  (await world.raw.query('select key, number::int, data from reprise_message order by key, number')).rows
const keyed = () => ({ key: { scope: scope('emit'), key: mintKey() }, content: 'none' }) as const
const insert = ['insert into item (id) values ($1)', ['a']] as const

/** A store on one connection that has begun and emitted before, one message and several; its writes are counted. */
async function lone() {
  const pool = new pg.Pool({ connectionString: world.url, max: 1 })
  opened.push(pool)
  const db = postgres({ pool, name: 'lone', ...patient })
  for (const options of [{}, keyed(), keyed()]) await db.transact((tx) => tx.emit(placed('warm')), options)
  await db.transact((tx) => tx.emit([placed('warm'), placed('warm')]))
  const client = await pool.connect()
  const writes = writesOf(client)
  client.release()
  return { db, writes, texts: () => writes.map((write) => write.toString('latin1')) }
}

describe('what is emitted', () => {
  it('leaves in the write that commits, with a key and without: no trip more than without it', async () => {
    for (const options of [() => ({}), keyed]) {
      const { db, writes, texts } = await lone()
      await db.transact((tx) => tx.query(insert[0], [`without ${options.name}`]), options())
      const without = writes.length
      writes.length = 0
      await db.transact(async (tx) => {
        await tx.emit(placed('a', 'first'))
        await tx.query(insert[0], [`with ${options.name}`])
        await tx.emit([placed('b', 'second'), placed('a', 'third')])
      }, options())
      expect(writes).toHaveLength(without)
      expect(texts().at(-1)).toContain('third')
      expect(texts().slice(0, -1).join()).not.toContain('first')
      // It is prepared: its text is not sent again.
      expect(texts().at(-1)).not.toContain('INSERT')
      writes.length = 0
      await db.transact(async (tx) => {
        await tx.query(insert[0], [`with one ${options.name}`])
        await tx.emit(placed('c', 'alone'))
      }, options())
      expect(writes).toHaveLength(without)
      expect(texts().at(-1)).toContain('alone')
      expect(texts().at(-1)).not.toContain('INSERT')
    }
    expect((await messages()).filter(({ key }) => key === 'a').map(({ number }) => number)).toEqual([1, 2, 3, 4])
  })

  it('alone begins a transaction that was held back, before COMMIT, so that it can be asked for', async () => {
    const { db, texts } = await lone()
    await db.transact((tx) => tx.emit(placed('alone')))
    expect(texts()).toHaveLength(2)
    expect(texts()[0]).toContain('SELECT 1')
    expect(texts()[1]).toContain('alone')
    expect(await messages()).toContainEqual({ key: 'alone', number: 1, data: 'null' })
  })

  it('is dropped with nothing sent where all of it was undone', async () => {
    const { db, writes } = await lone()
    await db.transact(async (tx) => {
      await tx.savepoint(() => tx.emit(placed('gone'))).catch(() => undefined)
    })
    writes.length = 0
    await db.transact(async (tx) => {
      const undone = tx.savepoint(async () => {
        await tx.emit(placed('undone'))
        throw new Error('of the savepoint')
      })
      await undone.catch(() => undefined)
    })
    expect((await messages()).map(({ key }) => key)).not.toContain('undone')
  })

  it('is prepared anew where the body has thrown away what was prepared', async () => {
    const { db } = await lone()
    let runs = 0
    await db.transact(async (tx) => {
      runs += 1
      if (runs === 1) await tx.query('deallocate all')
      await tx.emit(placed('kept'))
    })
    expect(runs).toBe(2)
    expect(attempts.map(({ phase, outcome, sqlState }) => [phase, outcome, sqlState])).toEqual([
      ['committing', 'aborted', '26000'],
    ])
    expect((await messages()).filter(({ key }) => key === 'kept')).toHaveLength(1)
  })

  it('is refused in words where the tables are not there', async () => {
    const pool = new pg.Pool({ connectionString: world.url, max: 1 })
    opened.push(pool)
    const db = postgres({ pool, name: 'elsewhere', prefix: 'elsewhere_', ...patient })
    expect(await codeOf(db.transact((tx) => tx.emit(placed('a'))))).toBe('MIGRATION_MISSING')
    expect(attempts.map(({ phase, outcome }) => [phase, outcome])).toEqual([['committing', 'aborted']])
  })
})

describe('the head of a key that somebody else holds', () => {
  let holder: pg.Client
  beforeEach(async () => {
    await world.db.transact((tx) => tx.emit(placed('held')))
    holder = new pg.Client({ connectionString: world.url })
    opened.push(holder)
    await holder.connect()
    await holder.query('begin')
    await holder.query("select * from reprise_head where key = 'held' for update")
  })

  it.each([
    ['without a key', () => ({})],
    ['with a key', keyed],
  ])('ends COMMIT before its own time does, as a certain abort: %s', async (_title, options) => {
    const call = world.db.transact(
      async (tx) => {
        await tx.query(...(['insert into item (id) values ($1)', ['held']] as [string, string[]]))
        await tx.emit(placed('held'))
      },
      { deadline: '3s', lockWait: '60s', attempts: 1, ...options() },
    )
    await untilWaiting(world.raw)
    expect(await codeOf(call)).toBe('LOCK_TIMEOUT')
    const seen = attempts.map(({ phase, outcome, sqlState, help }) => [phase, outcome, sqlState, help])
    expect(seen).toEqual([['committing', 'aborted', '55P03', 'transient']])
    expect(resolved).toEqual([])
    await holder.query('rollback')
    expect([await messages(), (await world.raw.query('select 1 from item')).rowCount]).toEqual([
      [{ key: 'held', number: 1, data: 'null' }],
      0,
    ])
  })

  it('lets two transactions that want it and others wait in one order, whatever order they emitted in', async () => {
    // Of the three keys the held one is in the middle: who had locked what comes after it would wait in a circle.
    const first = world.db.transact((tx) => tx.emit(['early', 'held', 'late'].map((key) => placed(key))))
    await untilWaiting(world.raw, 1)
    const second = world.db.transact((tx) => tx.emit(['late', 'held', 'early'].map((key) => placed(key))))
    await untilWaiting(world.raw, 2)
    await holder.query('rollback')
    await Promise.all([first, second])
    expect(attempts).toEqual([])
    expect((await messages()).map(({ key, number }) => `${key} ${number}`)).toEqual([
      'early 1',
      'early 2',
      'held 1',
      'held 2',
      'held 3',
      'late 1',
      'late 2',
    ])
  })

  it('waits no longer than the lock wait of the call, and is repeated', async () => {
    const let_go = async (event: unknown): Promise<void> => {
      if ((event as TransactionAttemptEvent).sqlState === '55P03') await holder.query('rollback')
    }
    const onFirst = (event: unknown): void => void let_go(event)
    subscribe(transactionAttempt.name, onFirst)
    await world.db.transact((tx) => tx.emit(placed('held')), { lockWait: '50ms', attempts: 20 })
    unsubscribe(transactionAttempt.name, onFirst)
    expect(attempts.length).toBeGreaterThan(0)
    expect(attempts.every(({ sqlState, outcome }) => sqlState === '55P03' && outcome === 'aborted')).toBe(true)
    expect((await messages()).map(({ number }) => number)).toEqual([1, 2])
  })
})

/** Many writers over few keys, each with several messages a transaction, of which every third one is rolled back. */
async function manyWriters(
  db: PostgresDomain<pg.PoolClient>,
  isolation: 'read-committed' | 'repeatable-read' | 'serializable',
) {
  const [writers, rounds, keys] = [12, 8, ['a', 'b', 'c']]
  const ready = gate(writers)
  const ends: { readonly ids: readonly string[]; readonly began: number; readonly ended: number }[] = []
  let moment = 0
  let runs = 0
  const own = new Error('of the body')
  const writer = async (number: number): Promise<void> => {
    await ready.arrive()
    for (let round = 0; round < rounds; round += 1) {
      const began = ++moment
      const order = number % 2 === 0 ? keys : [...keys].reverse()
      const work = db.transact(
        async (tx) => {
          runs += 1
          await tx.query('select 1')
          const ids = await tx.emit([...order, ...order.slice(0, 1)].map((key) => placed(key, [number, round])))
          if (round % 3 === 2) throw own
          return ids
        },
        { isolation, attempts: 50, budget: false },
      )
      if (round % 3 === 2) await expect(work).rejects.toBe(own)
      else ends.push({ ids: await work, began, ended: ++moment })
    }
  }
  await Promise.all(Array.from({ length: writers }, (_, number) => writer(number)))
  const { rows } = await world.raw.query<{ id: string; key: string; number: number }>(
    'select id, key, number::int from reprise_message order by key, number',
  )
  for (const key of keys) {
    const numbers = rows.filter((row) => row.key === key).map(({ number }) => number)
    expect(numbers).toEqual(numbers.map((_, place) => place + 1))
  }
  expect(rows).toHaveLength(ends.length * (keys.length + 1))
  // In the order of their commits: whoever began after another one had committed has the higher numbers.
  const numberOf = new Map(rows.map(({ id, key, number }) => [id, { key, number }]))
  const spans = ends.map(({ ids, began, ended }) => {
    const inA = ids.map((id) => numberOf.get(id)).filter((place) => place?.key === 'a')
    return { began, ended, numbers: inA.map((place) => place?.number ?? 0) }
  })
  let ordered = 0
  for (const one of spans)
    for (const other of spans)
      if (one.ended < other.began) {
        ordered += 1
        expect(Math.max(...one.numbers)).toBeLessThan(Math.min(...other.numbers))
      }
  expect(ordered).toBeGreaterThan(100)
  return { committed: ends.length, rolledBack: writers * rounds - ends.length, runs }
}

describe('many writers over few keys', () => {
  it('number them without a gap and in the order of their commits, and never wait for each other in a circle', async () => {
    await manyWriters(world.db, 'read-committed')
    expect(attempts.filter(({ stop }) => stop === undefined)).toEqual([])
  })

  it.each(['repeatable-read', 'serializable'] as const)('at %s cost repeats, and hold too', async (isolation) => {
    const { committed, rolledBack, runs } = await manyWriters(world.db, isolation)
    const repeats = attempts.filter(({ sqlState, stop }) => sqlState !== undefined && stop === undefined)
    expect(new Set(repeats.map(({ sqlState, phase }) => `${sqlState} ${phase}`))).toEqual(new Set(['40001 committing']))
    expect(runs).toBe(committed + rolledBack + repeats.length)
    console.log(
      `${isolation}: ${committed} transactions over 3 keys by 12 writers on 6 connections took ${repeats.length} repeats`,
    )
  })
})
