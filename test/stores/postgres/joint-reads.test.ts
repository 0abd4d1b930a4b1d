// Reads of records that go together: which statements leave, who is answered by which of them, and that nobody is told
// less than what he knew.

import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RecordDraft, Seen } from '../../../src/atomicity/index.js'
import { parseKey, type StoredKey, scope } from '../../../src/identity/index.js'
import { deadlineAfter, eventLoopTurn } from '../../../src/kernel/index.js'
import { type PostgresDomain, postgres } from '../../../src/stores/postgres/index.js'
import { manualClock, type PostgresProxy, postgresProxy } from '../../../src/testing/index.js'
import { codeOf, postgresWorld, until, type World } from './world.js'

let world: World
let proxy: PostgresProxy
let pool: pg.Pool
let db: PostgresDomain<pg.PoolClient>
// The proxy's delays end when the test says so.
const held = manualClock()

beforeAll(async () => {
  world = await postgresWorld()
  const { hostname, port, pathname } = new URL(world.url)
  proxy = await postgresProxy({ upstream: { host: hostname, port: Number(port) }, clock: held })
  pool = new pg.Pool({ host: proxy.host, port: proxy.port, user: 'postgres', database: pathname.slice(1), max: 8 })
  db = postgres({ pool, name: 'together', connectionWait: '60s' })
  // Connections that were used before: the first statement of each asks who the server is.
  await Promise.all(Array.from({ length: 8 }, (_, n) => db.records.insert(id(`warm ${n}`), draft, limits())))
})
afterAll(async () => {
  await proxy.heal()
  await pool.end()
  await proxy.close()
})

const id = (name: string) => name as StoredKey
const limits = (deadline: `${number}s` | `${number}ms` = '60s') => ({ deadline: deadlineAfter(deadline) })
const draft: RecordDraft = { mode: 'leased', operation: 'charge', token: 'one', leaseMs: 60_000 }
const isRead = (text: string) => text.includes('LEFT JOIN') && text.includes('now_ms')
const isJoint = (text: string) => isRead(text) && text.includes('ANY')
const read = (name: string, more = {}): Promise<Seen> => db.records.read(id(name), { ...limits(), ...more })

/** Two reads whose answers were given by the server, and are kept from us; and what was sent since. */
async function twoOut(names: readonly [string, string] = ['out 1', 'out 2']) {
  const fault = proxy.arm({ statement: isRead, at: 'before-answer', action: 'delay', delayMs: 1_000, times: 2 })
  const out = names.map((name) => read(name))
  await until('both are out', () => fault.fired.length === 2)
  const before = proxy.statements.length
  return {
    out,
    sent: () => proxy.statements.slice(before).filter(isRead),
    letReturn: () => held.advance(1_000),
  }
}

describe('reads that come while others are out', () => {
  it('go together in one statement when the first of those returns, and each gets its own record', async () => {
    for (const name of ['a', 'b']) await world.db.records.insert(id(name), { ...draft, token: name }, limits())
    const { out, sent, letReturn } = await twoOut()
    const gathered = ['a', 'none', 'b', 'a'].map((name) => read(name))
    await letReturn()
    const seen = await Promise.all(gathered)
    expect(seen.map(({ record }) => record?.token)).toEqual(['a', undefined, 'b', 'a'])
    for (const { nowMs } of seen) expect(Math.abs(nowMs - Date.now())).toBeLessThan(600_000)
    await Promise.all(out)
    expect(sent().filter(isJoint)).toHaveLength(1)
    expect(sent()).toHaveLength(1)
  })

  it('are answered by no statement that began before they came', async () => {
    // Both have looked, and found nothing; then it is written, and somebody who knows that comes.
    const names = ['late', 'late too'] as const
    const { out, letReturn } = await twoOut(names)
    for (const name of names) await world.db.records.insert(id(name), draft, limits())
    const knowing = [...names, 'elsewhere'].map((name) => read(name))
    await letReturn()
    for (const { record } of await Promise.all(out)) expect(record).toBeUndefined()
    expect((await Promise.all(knowing)).map(({ record }) => record?.token)).toEqual(['one', 'one', undefined])
  })

  it('are answered by no joint statement that was out when they came', async () => {
    const names = ['late together', 'late as well'] as const
    const { out, letReturn } = await twoOut()
    const joint = proxy.arm({ statement: isJoint, at: 'before-answer', action: 'delay', delayMs: 1_000 })
    const early = names.map((name) => read(name))
    await letReturn()
    await Promise.all(out)
    await until('the joint statement has looked', () => joint.fired.length === 1)
    // It has found nothing. Now both are written, and those who know of that come: one goes alone, others together.
    for (const name of names) await world.db.records.insert(id(name), draft, limits())
    const knowing = [...names, ...names].map((name) => read(name))
    await held.advance(1_000)
    expect((await Promise.all(knowing)).map(({ record }) => record?.token)).toEqual(['one', 'one', 'one', 'one'])
    for (const { record } of await Promise.all(early)) expect(record).toBeUndefined()
  })

  it('do not wait for a connection that has fallen silent', async () => {
    const { out, sent, letReturn } = await twoOut()
    // Nothing returns, and they are read all the same.
    await Promise.all([read('a'), read('b'), read('c')])
    expect(sent()).toHaveLength(1)
    // Those that are silent count no more: a lone one goes at once, and by itself.
    await read('a')
    expect(sent().map(isJoint)).toEqual([true, false])
    await letReturn()
    await Promise.all(out)
  })

  it('end each by itself: a signal, a deadline, and an error of its own where the statement fails', async () => {
    const { out, letReturn } = await twoOut()
    const stop = new AbortController()
    const aborted = read('a', { signal: stop.signal })
    const tooLate = codeOf(read('a', limits('1ms')))
    const patient = read('a')
    stop.abort(new Error('no more'))
    await expect(aborted).rejects.toThrow('no more')
    expect(await tooLate).toBe('DEADLINE_EXCEEDED')
    expect((await patient).record).toMatchObject({ token: 'a' })
    await letReturn()
    await Promise.all(out)

    const again = await twoOut()
    const cut = proxy.arm({ statement: isJoint, at: 'after-forward', action: 'rst' })
    const failing = ['a', 'b', 'c'].map((name) => read(name).then(undefined, (error: unknown) => error))
    const errors = (await Promise.all(failing)) as Error[]
    expect(cut.fired).toHaveLength(1)
    for (const error of errors) {
      expect(error).toBeInstanceOf(Error)
      expect(error.message).toBe(errors[0]?.message)
    }
    expect(new Set(errors).size).toBe(3)
    await again.letReturn()
    await Promise.all(again.out)
    expect((await read('a')).record).toMatchObject({ token: 'a' })
  })

  it('go in groups of at most 64', async () => {
    const { out, sent, letReturn } = await twoOut()
    const many = Array.from({ length: 150 }, (_, n) => read(n % 2 === 0 ? 'a' : `none ${n}`))
    // The first 64 and the next need nobody to return.
    await until('two groups are full', () => sent().length >= 2)
    await letReturn()
    const seen = await Promise.all([...many, ...out])
    expect(seen.filter(({ record }) => record?.token === 'a')).toHaveLength(75)
    expect(sent()).toHaveLength(3)
    expect(sent().every(isJoint)).toBe(true)
  })
})

it('a read that is urgent goes alone, and so does every one that finds nobody out', async () => {
  const { out, sent, letReturn } = await twoOut()
  await read('a', { urgent: true })
  expect(sent().map(isJoint)).toEqual([false])
  await letReturn()
  await Promise.all(out)
  await eventLoopTurn()
  for (let n = 0; n < 3; n += 1) await read('a')
  expect(sent().map(isJoint)).toEqual([false, false, false, false])
})

it('a store that is closed tells everybody who waits', async () => {
  const other = postgres({ pool, name: 'closing', connectionWait: '60s' })
  const fault = proxy.arm({ statement: isRead, at: 'before-answer', action: 'delay', delayMs: 1_000, times: 2 })
  const out = ['a', 'b'].map((name) => other.records.read(id(name), limits()))
  await until('both are out', () => fault.fired.length === 2)
  const waiting = ['a', 'b'].map((name) => codeOf(other.records.read(id(name), limits())))
  await other.close()
  await held.advance(1_000)
  await Promise.all(out)
  expect(await Promise.all(waiting)).toEqual(['STORE_CLOSED', 'STORE_CLOSED'])
})

it('many repeats and first calls at once: nobody is told less than he knew, and nothing is done twice', async () => {
  await world.raw.query('create table effect (name text not null)')
  // Writers commit by another pool, so that a reader knows of what was committed after its own reads had begun.
  const writers = world.db
  const define = (domain: PostgresDomain<pg.PoolClient>) =>
    domain.operation('race', {
      scope: () => scope('race'),
      key: (name: string) => parseKey(name),
      window: '24h',
      run: async (tx, name) => {
        await tx.query('insert into effect (name) values ($1)', [name])
        return { name }
      },
    })
  const [pay, payThere] = [define(db), define(writers)]
  // Sixteen at once take longer than the usual ten seconds where others work.
  const patient = { deadline: '60s' } as const
  const before = proxy.statements.length
  let known = 0
  const worker = async (number: number): Promise<void> => {
    for (let round = 0; round < 12; round += 1) {
      const name = `race-${number}-${round}`
      // A record that was just committed, by somebody else: whoever knows of it must find it.
      const marker = id(`marker ${name}`)
      await writers.records.insert(marker, { ...draft, token: name }, limits())
      const seen = await db.records.read(marker, limits())
      if (seen.record?.token === name) known += 1
      const first = round % 2 === 0 ? pay : payThere
      expect(await first(name, patient)).toEqual({ name })
      const repeats = await Promise.all([pay, payThere, pay].map((operation) => operation.outcome(name, patient)))
      for (const { replayed, ...outcome } of repeats) {
        expect([replayed, outcome]).toEqual([true, { outcome: 'succeeded', value: { name } }])
      }
    }
  }
  await Promise.all(Array.from({ length: 16 }, (_, number) => worker(number)))
  expect(known).toBe(16 * 12)
  const { rows } = await world.raw.query('select count(*)::int as n, count(distinct name)::int as names from effect')
  expect(rows).toEqual([{ n: 192, names: 192 }])
  // It happened: some of them went together.
  expect(proxy.statements.slice(before).filter(isJoint).length).toBeGreaterThan(0)
})
