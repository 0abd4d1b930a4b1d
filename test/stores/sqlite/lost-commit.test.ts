// COMMIT whose answer is lost in a file of SQLite: read by a natural key, where there is no key of ours, and never taken
// for dead once the memory of a key has ended.

import Database from 'libsql'
import { afterAll, expect, it } from 'vitest'
import { mintKey, scope } from '../../../src/identity/index.js'
import { systemClock } from '../../../src/kernel/index.js'
import { type SqliteClient, type SqliteTransaction, sqlite } from '../../../src/stores/sqlite/index.js'
import { UnknownCommitError } from '../../../src/transaction/index.js'
import { freshFile } from './files.js'

const ends: (() => unknown)[] = []
afterAll(async () => {
  for (const end of ends) await end()
})

/** A shop whose next COMMIT fails, before it is done or after; and somebody else who can lock its file. */
async function shop() {
  const file = freshFile()
  const stranger = new Database(file)
  let [next, locks]: ('not done' | 'done' | undefined | boolean)[] = [undefined, false]
  const open = () => {
    const connection = new Database(file)
    const exec = connection.exec.bind(connection)
    return Object.assign(connection, {
      exec(text: string) {
        if (text !== 'COMMIT' || next === undefined) return exec(text)
        exec(next === 'done' ? 'COMMIT' : 'ROLLBACK')
        next = undefined
        if (locks) stranger.exec('BEGIN IMMEDIATE')
        throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_FSYNC' })
      },
    })
  }
  const db = sqlite({ open, name: 'shop' })
  ends.push(
    () => db.close(),
    () => stranger.close(),
  )
  await db.migrate()
  await db.transact((tx) => tx.query('CREATE TABLE payment (number TEXT PRIMARY KEY, amount INTEGER)'))
  let [runs, asked] = [0, 0]
  const pay = async (tx: SqliteTransaction<SqliteClient>) => {
    runs += 1
    await tx.query('INSERT INTO payment VALUES (?, ?)', ['4711', 100])
    return { amount: 100, by: 'the body' }
  }
  const found = async (tx: SqliteTransaction<SqliteClient>) => {
    asked += 1
    const { rows } = await tx.query<{ amount: number }>('SELECT amount FROM payment WHERE number = ?', ['4711'])
    return rows[0] === undefined ? undefined : { amount: rows[0].amount, by: 'the row' }
  }
  return {
    db,
    stranger,
    pay,
    found,
    fail: (how: 'not done' | 'done', locked = false) => {
      ;[next, locks] = [how, locked]
    },
    counts: () => ({ runs, asked, payments: stranger.prepare('SELECT * FROM payment').all([]).length }),
  }
}

it('a row that is found is the result, and the body does not run again', async () => {
  const { db, pay, found, fail, counts } = await shop()
  fail('done')
  expect(await db.transact(pay, { found })).toEqual({ amount: 100, by: 'the row' })
  expect(counts()).toEqual({ runs: 1, asked: 1, payments: 1 })
})

it('where no row is found, the body runs again', async () => {
  const { db, pay, found, fail, counts } = await shop()
  fail('not done')
  expect(await db.transact(pay, { found })).toEqual({ amount: 100, by: 'the body' })
  expect(counts()).toEqual({ runs: 2, asked: 1, payments: 1 })
})

it('is read also where no further attempt is left, and a row that is not there is the error of COMMIT', async () => {
  const one = await shop()
  one.fail('done')
  expect(await one.db.transact(one.pay, { found: one.found, attempts: 1 })).toMatchObject({ by: 'the row' })
  const two = await shop()
  two.fail('not done')
  const lost = two.db.transact(two.pay, { found: two.found, attempts: 1 })
  await expect(lost).rejects.toMatchObject({ code: 'SQLITE_IOERR_FSYNC' })
})

it('is not asked while the transaction is not proven to have ended: the outcome stays unknown', async () => {
  const { db, stranger, pay, found, fail, counts } = await shop()
  fail('done', true)
  await expect(db.transact(pay, { found, deadline: '1s' })).rejects.toBeInstanceOf(UnknownCommitError)
  stranger.exec('ROLLBACK')
  expect(counts()).toEqual({ runs: 1, asked: 0, payments: 1 })
})

it('a marker that is missing after its window says nothing: the outcome stays unknown', async () => {
  const { db, stranger, pay, fail } = await shop()
  const key = { scope: scope('shop'), key: mintKey() }
  fail('done', true)
  const sentMs = systemClock.wallMs()
  const options = { key, content: { value: 100 }, deadline: '1s', window: '3s' } as const
  const error: unknown = await db.transact(pay, options).catch((reason: unknown) => reason)
  if (!(error instanceof UnknownCommitError)) return expect.unreachable('the outcome was to be unknown')
  stranger.exec('ROLLBACK')
  const token = error.resolveToken ?? ''
  expect(await db.resolve(token)).toMatchObject({ outcome: 'committed' })
  while (systemClock.wallMs() <= sentMs + 4_400) await new Promise((resolve) => setTimeout(resolve, 20))
  expect(await db.purge()).toMatchObject({ finished: 1 })
  expect(await db.resolve(token)).toEqual({ outcome: 'unknown' })
})
