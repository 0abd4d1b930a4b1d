// Who writes when: turns in this process, the lock of the file between processes, and an event loop that runs on
// meanwhile.

import Database from 'libsql'
import { expect, it, onTestFinished } from 'vitest'
import { eventLoopTurn } from '../../../src/kernel/index.js'
import { type SqliteHandle, sqliteSignsOf as signsOf } from '../../../src/stores/sqlite/index.js'
import { newestMigration } from '../newest-migration.js'
import { bundle, engineOn, freshFile, itemStore, rowsIn, start, stranger } from './files.js'

const newest = newestMigration.sqlite

const controls = {
  attempt: 1,
  signal: new AbortController().signal,
  deadline: { expiresAtMs: Number.POSITIVE_INFINITY },
  afterCommit() {},
}
const writing = { isolation: 'serializable', readOnly: false, idleMs: 60_000, lockWaitMs: 120_000 } as const

it('lets writers take turns, and gives up after the wait', async () => {
  const db = await itemStore()
  const order: number[] = []
  let end = () => {}
  const first = db.transact(() => new Promise<void>((resolve) => (end = resolve)))
  await eventLoopTurn()
  const others = [1, 2, 3].map((number) => db.transact(async () => order.push(number), { connectionWait: '60s' }))
  await expect(db.transact(async () => order.push(0), { connectionWait: '5ms' })).rejects.toMatchObject({
    code: 'POOL_EXHAUSTED',
  })
  end()
  await Promise.all([first, ...others])
  expect(order).toEqual([1, 2, 3])
})

it('refuses one more writer than may wait', async () => {
  const engine = engineOn(freshFile(), { queue: 1 })
  const first = await engine.acquire({ waitMs: 60_000, readOnly: false })
  const second = engine.acquire({ waitMs: 60_000, readOnly: false })
  await expect(engine.acquire({ waitMs: 60_000, readOnly: false })).rejects.toMatchObject({ code: 'QUEUE_FULL' })
  const reader = await engine.acquire({ waitMs: 60_000, readOnly: true })
  reader.release('keep')
  first.release('keep')
  ;(await second).release('keep')
})

it('ends a wait with the signal of the one who waits', async () => {
  const engine = engineOn(freshFile())
  const first = await engine.acquire({ waitMs: 60_000, readOnly: false })
  const controller = new AbortController()
  const second = engine.acquire({ waitMs: 60_000, readOnly: false, signal: controller.signal })
  controller.abort(new Error('gone'))
  await expect(second).rejects.toThrow('gone')
  first.release('keep')
  const third = await engine.acquire({ waitMs: 0, readOnly: false })
  third.release('keep')
})

it('waits for the lock of another process, with the event loop running', async () => {
  const file = freshFile()
  const db = await itemStore(file)
  const holder = start('lock-holder.mjs', [file, "INSERT INTO item (note) VALUES ('theirs')"])
  expect(await holder.line()).toBe('held')
  let ticks = 0
  const ticking = setInterval(() => {
    ticks += 1
    if (ticks === 100) holder.tell('COMMIT')
  }, 1)
  const seen = await db.transact(async (tx) => (await tx.query('SELECT note FROM item')).rows as never, {
    lockWait: '60s',
    deadline: '120s',
  })
  clearInterval(ticking)
  // The body ran after the other's commit, and that came after a hundred turns of a timer here.
  expect(seen).toEqual([{ note: 'theirs' }])
  expect(ticks).toBeGreaterThanOrEqual(100)
})

it('lets the event loop turn between transactions that follow each other without a pause', async () => {
  const db = await itemStore()
  let ticks = 0
  const ticking = setInterval(() => (ticks += 1), 1)
  // By their number, since time alone would say nothing on a machine that is busy: without a pause they would take a
  // second and more.
  for (let count = 0; count < 50_000 && ticks <= 2; count += 1) {
    await db.transact(async (tx) => tx.query('SELECT 1').then(() => undefined))
  }
  clearInterval(ticking)
  expect(ticks).toBeGreaterThan(2)
})

it('gives up on the lock of another process after its wait, with the event loop running', async () => {
  const file = freshFile()
  const db = await itemStore(file)
  const holder = start('lock-holder.mjs', [file])
  expect(await holder.line()).toBe('held')
  let ticks = 0
  const ticking = setInterval(() => (ticks += 1), 1)
  const error = await db.transact(async () => 1, { lockWait: '150ms', attempts: 1 }).catch((error: unknown) => error)
  clearInterval(ticking)
  expect(signsOf(error)).toEqual(['SQLITE_BUSY'])
  // A driver that waits by itself lets none through.
  expect(ticks).toBeGreaterThan(0)
  // Readers are not held up.
  expect(
    await db.transact(async (tx) => (await tx.query('SELECT 1 AS one')).rows as never, { readOnly: true }),
  ).toEqual([{ one: 1 }])
  holder.tell('ROLLBACK')
  await holder.rest()
  expect(await db.transact(async () => 'again')).toBe('again')
})

it('begins nothing after somebody has given up on it', async () => {
  const file = freshFile()
  await itemStore(file)
  const other = stranger(file)
  other.exec('BEGIN IMMEDIATE')
  const engine = engineOn(file)
  const session = await engine.acquire({ waitMs: 60_000, readOnly: false })
  const beginning = session.begin(writing, controls)
  session.poison(new Error('gave up'))
  await session.rollback()
  session.release('keep')
  other.exec('ROLLBACK')
  await expect(beginning).rejects.toMatchObject({ code: 'TRANSACTION_OVER' })
  other.exec('BEGIN IMMEDIATE')
  other.exec('ROLLBACK')
})

it('loses no update between two processes that write at once', async () => {
  const file = freshFile()
  const outdir = await bundle()
  const setup = stranger(file)
  setup.exec('CREATE TABLE counter (value INTEGER)')
  setup.exec('INSERT INTO counter VALUES (0)')
  const adders = [1, 2].map(() => start('adder.mjs', [outdir, file, '100']))
  const said = await Promise.all(adders.map((adder) => adder.rest()))
  const migrated = said.map(([first]) => JSON.parse(first ?? '{}'))
  // Both migrated at once: one of them made the tables.
  expect(migrated.map(({ from }) => from).sort()).toEqual([0, newest])
  expect(said.map(([, second]) => second)).toEqual(['added 100', 'added 100'])
  expect(rowsIn(file, 'SELECT value FROM counter')).toEqual([[200]])
})

it('knows a lost snapshot by its own name', async () => {
  const file = freshFile()
  const db = await itemStore(file)
  const other = stranger(file)
  other.exec('BEGIN DEFERRED')
  other.prepare('SELECT * FROM item').all([])
  await db.transact((tx) => tx.insertOnce('item', { note: 'a' }, ['note']))
  let error: unknown
  try {
    other.exec("INSERT INTO item (note) VALUES ('b')")
  } catch (thrown) {
    error = thrown
  }
  expect(signsOf(error)).toEqual(['SQLITE_BUSY_SNAPSHOT', 'SQLITE_BUSY'])
  expect(engineOn(file).classify(error, 'body')).toMatchObject({ outcome: 'aborted', help: 'transient' })
})

// A driver without WAL: its file keeps a rollback journal, in which readers hold up COMMIT.
function withoutWal(file: string): SqliteHandle {
  const handle = new Database(file)
  const exec = handle.exec.bind(handle)
  return Object.assign(handle, { exec: (text: string) => (/journal_mode/.test(text) ? handle : exec(text)) })
}

it('sends COMMIT again while a reader holds it up, and does not run the body again', async () => {
  const file = freshFile()
  const db = await itemStore(file, { open: () => withoutWal(file) })
  const reader = stranger(file)
  let bodies = 0
  let commits = 0
  const engine = engineOn(file, {
    open: () => {
      const handle = withoutWal(file)
      const exec = handle.exec.bind(handle)
      return Object.assign(handle, {
        exec(text: string) {
          if (text === 'COMMIT') commits += 1
          return exec(text)
        },
      })
    },
  })
  await db.close()
  reader.exec('BEGIN')
  reader.prepare('SELECT * FROM item').all([])
  const session = await engine.acquire({ waitMs: 60_000, readOnly: false })
  onTestFinished(() => session.release('discard'))
  const tx = await session.begin(writing, controls)
  bodies += 1
  await tx.query("INSERT INTO item (note) VALUES ('once')")
  const committing = session.commit()
  await expect.poll(() => commits).toBeGreaterThan(3)
  reader.exec('COMMIT')
  expect(await committing).toEqual({ durability: 'promised' })
  session.release('keep')
  expect(bodies).toBe(1)
  expect(rowsIn(file, 'SELECT note FROM item')).toEqual([['once']])
})

it('rolls back and repeats the transaction when COMMIT stays held up until the wait is over', async () => {
  const file = freshFile()
  const db = await itemStore(file, { open: () => withoutWal(file) })
  const reader = stranger(file)
  reader.exec('BEGIN')
  reader.prepare('SELECT * FROM item').all([])
  const attempts: number[] = []
  await db.transact(
    async (tx) => {
      attempts.push(tx.attempt)
      if (tx.attempt === 2) reader.exec('COMMIT')
      await tx.query("INSERT INTO item (note) VALUES ('once')")
    },
    { lockWait: '40ms' },
  )
  expect(attempts).toEqual([1, 2])
  expect(rowsIn(file, 'SELECT note FROM item')).toEqual([['once']])
})
