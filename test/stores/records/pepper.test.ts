// A pepper on real databases: what a dump of the tables gives away, who may work on them beside each other, and how
// records come under a pepper without one of them being forgotten.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import Libsql from 'libsql'
import pg from 'pg'
import { describe, expect, inject, it } from 'vitest'
import type { Finding } from '../../../src/atomicity/index.js'
import {
  encrypted,
  happened,
  hold,
  leased,
  lookup,
  type Operations,
  operationId,
  settle,
} from '../../../src/idempotency/index.js'
import { fingerprint, type Key, type PepperSecret, pepperOf, scope, storedKey } from '../../../src/identity/index.js'
import { deadlineAfter } from '../../../src/kernel/index.js'
import { type MigrationOptions, type MigrationResult, postgres } from '../../../src/stores/postgres/index.js'
import { type SqliteHandle, sqlite } from '../../../src/stores/sqlite/index.js'
import { type ConformanceHandle, keyCases, operationCases, recordCases } from '../../../src/testing/index.js'
import type { Domain } from '../../../src/transaction/index.js'
import { printResolveToken } from '../../../src/transaction/run/resolve-token.js'
import { createDatabase } from '../../servers/fresh-database.js'
import { libsqlStack, pgStack } from '../callback/orms.js'
import { sqliteWorld } from '../conformance/sqlite-world.js'
import { inThisProcess } from '../conformance/store-under-test.js'

type Store = Domain<ConformanceHandle> & Operations<ConformanceHandle>
type Secrets = PepperSecret | readonly PepperSecret[] | undefined

interface PepperWorld {
  /** A process of its own: nothing that another store has in memory is shared. */
  open(pepper?: Secrets): Promise<Store>
  /** The store that can migrate the tables. */
  maker(pepper?: Secrets): Promise<
    Store & {
      migrate(options?: MigrationOptions): Promise<MigrationResult>
      migrationSql(): string
      doctor(): Promise<readonly Finding[]>
    }
  >
  /** All that is in Reprise's tables, as text. */
  dump(): Promise<string>
  /** Runs SQL past the stores. */
  raw(text: string): Promise<void>
}

const given = (pepper: Secrets) => (pepper === undefined ? {} : { pepper })

async function onPostgres(isCallback: boolean, work: (world: PepperWorld) => Promise<void>): Promise<void> {
  const database = await createDatabase(inject('postgresUrl'))
  const pools: pg.Pool[] = []
  const stacks: { close(): Promise<void> }[] = []
  const raw = new pg.Client({ connectionString: database.url })
  await raw.connect()
  const maker = async (pepper?: Secrets) => {
    const pool = new pg.Pool({ connectionString: database.url, max: 2 })
    pools.push(pool)
    return postgres({ name: 'shop', pool, ...given(pepper) })
  }
  const open = async (pepper?: Secrets): Promise<Store> => {
    if (!isCallback) return maker(pepper)
    const stack = pgStack(database.url, { name: 'shop', ...given(pepper) })
    stacks.push(stack)
    return stack.db
  }
  try {
    await work({
      open,
      maker,
      async dump() {
        const named = "select relname from pg_class where relkind = 'r' and relname like 'reprise%' order by relname"
        const tables: string[] = (await raw.query(named)).rows.map(({ relname }) => relname)
        const all: unknown[] = []
        for (const table of tables) all.push([table, (await raw.query(`select * from ${table}`)).rows])
        return JSON.stringify(all)
      },
      raw: async (text) => void (await raw.query(text)),
    })
  } finally {
    for (const stack of stacks) await stack.close()
    for (const pool of pools) await pool.end()
    await raw.end()
    await database.drop()
  }
}

async function onSqlite(isCallback: boolean, work: (world: PepperWorld) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-pepper-'))
  const file = join(folder, 'store.db')
  const raw = new Libsql(file)
  const opened: { close(): Promise<void> }[] = []
  const maker = async (pepper?: Secrets) => {
    const db = sqlite({ name: 'shop', open: () => new Libsql(file) as unknown as SqliteHandle, ...given(pepper) })
    opened.push(db)
    return db
  }
  const open = async (pepper?: Secrets): Promise<Store> => {
    if (!isCallback) return maker(pepper)
    const stack = libsqlStack(file, 2, { name: 'shop', ...given(pepper) })
    opened.push(stack.db, stack)
    return stack.db
  }
  try {
    await work({
      open,
      maker,
      async dump() {
        const named = "select name from sqlite_schema where type = 'table' and name like 'reprise%' order by name"
        const tables = (raw.prepare(named).all() as { name: string }[]).map(({ name }) => name)
        return JSON.stringify(tables.map((table) => [table, raw.prepare(`select * from ${table}`).all()]))
      },
      raw: async (text) => void raw.exec(text),
    })
  } finally {
    for (const one of opened) await one.close()
    raw.close()
    rmSync(folder, { recursive: true })
  }
}

const worlds: readonly [string, (work: (world: PepperWorld) => Promise<void>) => Promise<void>][] = [
  ['PostgreSQL', (work) => onPostgres(false, work)],
  ['PostgreSQL behind a callback', (work) => onPostgres(true, work)],
  ['SQLite', (work) => onSqlite(false, work)],
  ['SQLite behind a callback', (work) => onSqlite(true, work)],
]

const first = 'the-first-secret-of-the-shop'
const second = 'the-second-secret-of-the-shop'
const owner = scope('tenant-1')
const guessable = { key: '4711' as Key, amount: 100 }
const limits = () => ({ deadline: deadlineAfter('20s') })

interface Order {
  readonly key: Key
  readonly amount: number
}

const identity = { scope: () => owner, key: ({ key }: Order) => key, window: '1h' } as const

/** What a process of the shop runs: a transaction with a key, an atomic operation and a leased one. */
function shop(db: Store) {
  let bodies = 0
  const pay = db.operation('pay', { ...identity, run: async () => ({ body: ++bodies }) })
  const charge = leased('charge', {
    ...identity,
    store: db,
    lease: '10s',
    recover: hold(),
    run: (lease) => lease.effect('send', async () => ({ body: ++bodies })),
  })
  const book = (order: Order = guessable): Promise<{ body: number }> =>
    db.transact(async () => ({ body: ++bodies }), {
      key: { scope: owner, key: order.key },
      content: { value: order },
    })
  const all = async (order: Order = guessable): Promise<unknown[]> => [
    await book(order),
    await pay(order),
    await charge(order),
  ]
  return { pay, charge, book, all, bodies: () => bodies }
}

/** What whoever reads a dump computes out of a tenant, a key and an amount that he guesses. */
function guesses(): readonly string[] {
  const print = fingerprint({ value: guessable })
  const names = ['pay', 'charge'].map((name) => operationId(name, owner, guessable.key))
  return [storedKey(owner, guessable.key), ...names, owner, print].map((text) => text.slice(-43))
}

describe.each(worlds)('a pepper, on %s', (_name, inWorld) => {
  it('keeps a dump of the tables from confirming a tenant, a key or an amount that is guessed', () =>
    inWorld(async ({ open, maker, dump }) => {
      expect(await (await maker(first)).migrate()).toMatchObject({ from: 0, renamed: 0 })
      await shop(await open(first)).all()
      const hidden = await dump()
      for (const guess of guesses()) expect(hidden).not.toContain(guess)
      expect(hidden.split(`hmac256-${pepperOf(first).id}:`)).toHaveLength(1 + 3 + 2 + 3)
    }))

  it('is why the same guesses are found without one', () =>
    inWorld(async ({ open, maker, dump }) => {
      await (await maker()).migrate()
      await shop(await open()).all()
      const plain = await dump()
      for (const guess of guesses()) expect(plain).toContain(guess)
    }))

  it('changes nothing for callers: repeats get the outcome, other content is refused, a changed rule is no mismatch', () =>
    inWorld(async ({ open, maker }) => {
      await (await maker(first)).migrate()
      const here = shop(await open(first))
      const told = await here.all()
      expect(await here.all()).toEqual(told)
      const other = { ...guessable, amount: 500 }
      const there = await open(first)
      const again = shop(there)
      expect(await again.all()).toEqual(told)
      for (const call of [again.book, again.pay, again.charge]) {
        await expect(call(other)).rejects.toMatchObject({ code: 'OPERATION_MISMATCH' })
      }
      expect(again.bodies()).toBe(0)
      const omitting = (await open(first)).operation('pay', {
        ...identity,
        fields: { omit: ['/amount'] },
        run: () => expect.unreachable('the body of a repeat ran'),
      })
      expect(await omitting(guessable)).toEqual({ body: 2 })
      await expect(omitting(other)).rejects.toMatchObject({ code: 'OPERATION_MISMATCH' })
      const which = { operation: 'pay', scope: owner, key: guessable.key }
      expect(await there.lookup(which)).toMatchObject({ state: 'succeeded' })
      const id = operationId('pay', owner, guessable.key)
      expect(await there.lookup({ id })).toMatchObject({ state: 'succeeded' })
      const named = storedKey(owner, guessable.key, there.records.pepper)
      expect((await there.records.read(named, limits())).record?.state).toBe('succeeded')
    }))

  it('lets nobody work beside it who has another one, or none, though he was at work before', () =>
    inWorld(async ({ open, maker }) => {
      await (await maker()).migrate()
      const before = await open()
      const plain = shop(before)
      await plain.all()
      await (await maker(first)).migrate({ rename: true })
      const stranger = await open(second)
      for (const [db, process] of [
        [before, plain],
        [stranger, shop(stranger)],
      ] as const) {
        const bodies = process.bodies()
        for (const call of [process.book, process.pay, process.charge]) {
          for (const order of [guessable, { key: 'new' as Key, amount: 1 }]) {
            await expect(call(order)).rejects.toMatchObject({ code: 'MIGRATION_MISSING' })
          }
        }
        expect(process.bodies()).toBe(bodies)
        await expect(db.records.read(storedKey(owner, guessable.key), limits())).rejects.toMatchObject({
          code: 'MIGRATION_MISSING',
        })
      }
      const mismatch = { code: 'PEPPER_MISMATCH', details: { stored: pepperOf(first).id } }
      await expect((await maker()).migrate()).rejects.toMatchObject(mismatch)
      await expect((await maker()).migrate({ rename: true })).rejects.toMatchObject(mismatch)
      await expect((await maker(second)).migrate({ rename: true })).rejects.toMatchObject(mismatch)
      const peppers = async (pepper: Secrets) =>
        (await (await maker(pepper)).doctor()).filter(({ code }) => /pepper/i.test(code))
      expect(await peppers(second)).toMatchObject([{ severity: 'broken' }])
      expect(await peppers(undefined)).toMatchObject([{ severity: 'broken' }])
      expect(await peppers(first)).toEqual([])
    }))

  it('does not take over records by itself: they are renamed when that is asked for, and none is forgotten', () =>
    inWorld(async ({ open, maker, dump }) => {
      await (await maker()).migrate()
      const before = await open()
      const told = await shop(before).all()
      const unknown = leased('send', {
        ...identity,
        store: before,
        lease: '1s',
        recover: hold(),
        run: (lease) => lease.effect('send', () => Promise.reject(new Error('the answer got lost'))),
      })
      await expect(unknown(guessable)).rejects.toMatchObject({ code: 'OPERATION_UNKNOWN' })
      const peppered = await maker(first)
      await expect(peppered.migrate()).rejects.toMatchObject({
        code: 'PEPPER_MISMATCH',
        message: expect.stringContaining('migrate({ rename: true })'),
        details: { stored: 'none', given: pepperOf(first).id },
      })
      await expect(peppered.migrate({ rename: true })).rejects.toMatchObject({
        code: 'PEPPER_RENAME_REFUSED',
        details: { unfinished: 1 },
      })
      // Nothing was changed by what was refused.
      expect(await shop(await open()).all()).toEqual(told)
      const sent = { operation: 'send', scope: owner, key: guessable.key }
      await settle({ ...sent, store: before }, happened(null), { reason: 'seen', actor: 'me', window: '1h' })
      const token = printResolveToken('shop', { id: storedKey(owner, guessable.key) })

      expect(await peppered.migrate({ rename: true })).toMatchObject({ renamed: 4 })
      expect(await peppered.migrate()).not.toHaveProperty('renamed')
      const after = await open(first)
      const renamed = shop(after)
      expect(await renamed.all()).toEqual(told)
      expect(renamed.bodies()).toBe(0)
      await expect(renamed.pay({ ...guessable, amount: 500 })).rejects.toMatchObject({ code: 'OPERATION_MISMATCH' })
      expect((await lookup({ ...sent, store: after })).notes).toMatchObject([{ action: 'settled', reason: 'seen' }])
      expect(await after.resolve(token)).toEqual({ outcome: 'committed', value: told[0] })
      for (const guess of guesses()) expect(await dump()).not.toContain(guess)

      // And from one secret to the next.
      const ring = [first, second]
      expect(await (await maker(ring)).migrate({ rename: true })).toMatchObject({ renamed: 4 })
      const rotated = await open(ring)
      const later = shop(rotated)
      expect(await later.all()).toEqual(told)
      expect(later.bodies()).toBe(0)
      expect((await lookup({ ...sent, store: rotated })).notes).toHaveLength(1)
      expect(await rotated.resolve(token)).toMatchObject({ outcome: 'committed' })
      await expect(renamed.book({ key: 'new' as Key, amount: 1 })).rejects.toMatchObject({ code: 'MIGRATION_MISSING' })
      expect(await dump()).not.toContain(`hmac256-${pepperOf(first).id}`)
    }))

  it('comes between two calls of those who are at work: what was answered is found, and the rest is refused', () =>
    inWorld(async ({ open, maker }) => {
      await (await maker()).migrate()
      const answered = new Map<Key, number>()
      const busy = await open()
      const put = (db: Store, key: Key, place: number) =>
        db.transact(() => place, { key: { scope: owner, key }, content: 'none' })
      let enough: () => void = () => undefined
      const warm = new Promise<void>((resolve) => {
        enough = resolve
      })
      const work = async (worker: string): Promise<unknown> => {
        for (let place = 0; place < 10_000; place += 1) {
          // SQLite answers at once: the one who renames must have a turn.
          await setImmediate()
          const key = `${worker}-${place}` as Key
          const error = await put(busy, key, place).then(
            (value) => void answered.set(key, value),
            (refusal) => refusal,
          )
          if (error !== undefined) return error
          if (answered.size >= 20) enough()
        }
        return 'never refused'
      }
      const workers = Promise.all(['a', 'b'].map(work))
      await warm
      const { renamed } = await (await maker(first)).migrate({ rename: true })
      for (const error of await workers) expect(error).toMatchObject({ code: 'MIGRATION_MISSING' })
      expect(renamed).toBe(answered.size)
      const after = await open(first)
      for (const [key, place] of answered) expect(await put(after, key, -1)).toBe(place)
    }))

  it('does not rename an outcome that can be read only under its name', () =>
    inWorld(async ({ open, maker }) => {
      await (await maker()).migrate()
      const codec = encrypted<number>({ keys: { a: new Uint8Array(32) }, current: 'a' })
      const pay = (await open()).operation('pay', { ...identity, codec, run: async () => 1 })
      await pay(guessable)
      await expect((await maker(first)).migrate({ rename: true })).rejects.toMatchObject({
        code: 'PEPPER_RENAME_REFUSED',
        details: { encrypted: 1 },
      })
      expect(await pay(guessable)).toBe(1)
    }))

  it('is in the SQL that makes the tables by other means', () =>
    inWorld(async ({ open, maker, raw }) => {
      const peppered = await maker(first)
      await raw(peppered.migrationSql())
      await shop(await open(first)).all()
      expect(await peppered.migrate()).not.toHaveProperty('renamed')
    }))
})

it.each(worlds.filter(([name]) => !name.includes('callback')))(
  'on %s more records are renamed than one batch has',
  (_name, inWorld) =>
    inWorld(async ({ maker, raw }) => {
      await (await maker()).migrate()
      const names = Array.from({ length: 1_203 }, (_, place) => storedKey(owner, `order-${place}` as Key))
      const rows = names.map((name, place) => `('${name}', '${place}', 1)`)
      await raw(`insert into reprise_marker (id, value, claimed_at_ms) values ${rows.join(', ')}`)
      for (const pepper of [[first], [first, second]]) {
        const db = await maker(pepper)
        expect(await db.migrate({ rename: true })).toMatchObject({ renamed: names.length })
        const key = (place: number) => ({
          key: { scope: owner, key: `order-${place}` as Key },
          content: 'none' as const,
        })
        for (const place of [0, 499, 500, 1_202]) expect(await db.transact(() => -1, key(place))).toBe(place)
      }
    }),
)

const cases = [...keyCases, ...recordCases, ...operationCases]
const peppered = inThisProcess('sqlite', () =>
  sqliteWorld((file) => new Libsql(file) as unknown as SqliteHandle, { pepper: first }),
)

describe('a store with a pepper does as others do', () => {
  it.each(cases.map((subject) => [`${subject.id} ${subject.title}`, subject] as const))(
    '%s',
    async (_title, subject) => {
      await peppered.run(subject)
    },
  )
})
