// Statements that are kept prepared, counted at the driver; and rows as they are, whatever the driver makes of them.

import Database from 'libsql'
import { expect, it } from 'vitest'
import { freshFile, itemStore, rowsIn } from '../../../../test/stores/sqlite/files.js'

const insert = 'INSERT INTO item (note, state) VALUES (?, ?)'

/** A store over a file, and how often its connections prepared a text. */
async function counted() {
  const file = freshFile()
  const prepared: string[] = []
  const open = () => {
    const handle = new Database(file)
    const prepare = handle.prepare.bind(handle)
    handle.prepare = ((text: string) => {
      prepared.push(text)
      return prepare(text)
    }) as typeof handle.prepare
    return handle
  }
  const db = await itemStore(file, { open })
  const times = (text: string): number => prepared.filter((one) => one === text).length
  return { db, file, times }
}

it('prepares a statement that only writes once, over several transactions', async () => {
  const { db, file, times } = await counted()
  for (const note of ['a', 'b', 'c']) {
    const { rowCount, rows } = await db.transact((tx) => tx.query(insert, [note, 'new']))
    expect({ rowCount, rows }).toEqual({ rowCount: 1, rows: [] })
  }
  expect(times(insert)).toBe(1)
  expect(rowsIn(file, 'SELECT note, state FROM item')).toEqual([
    ['a', 'new'],
    ['b', 'new'],
    ['c', 'new'],
  ])
})

it('does not fill in a value that was left out with that of the run before', async () => {
  const { db, file } = await counted()
  await db.transact((tx) => tx.query(insert, ['a', 'new']))
  await db.transact((tx) => tx.query(insert, ['b']))
  await db.transact((tx) => tx.query(insert, ['c', 'new']))
  expect(rowsIn(file, 'SELECT note, state FROM item')).toEqual([
    ['a', 'new'],
    ['b', null],
    ['c', 'new'],
  ])
})

it('prepares again after a failure, and goes on after a change of the schema', async () => {
  const { db, times } = await counted()
  await db.transact((tx) => tx.query(insert, ['a', 'new']))
  const again = db.transact((tx) => tx.query(insert, ['a', 'new']))
  await expect(again).rejects.toMatchObject({ code: 'SQLITE_CONSTRAINT_UNIQUE' })
  expect(times(insert)).toBe(1)
  await db.transact((tx) => tx.query(insert, ['b', 'new']))
  expect(times(insert)).toBe(2)
  await db.transact((tx) => tx.query("ALTER TABLE item ADD COLUMN extra TEXT DEFAULT 'x'"))
  await db.transact((tx) => tx.query(insert, ['c', 'new']))
  expect(times(insert)).toBe(2)
  const { rows } = await db.transact((tx) => tx.query('SELECT extra FROM item WHERE note = ?', ['c']))
  expect(rows).toEqual([{ extra: 'x' }])
})

it('does not hold on to large values', async () => {
  const { db, times } = await counted()
  for (let number = 0; number < 2; number++) {
    await db.transact((tx) => tx.query(insert, [`${number}${'x'.repeat(5_000)}`, 'new']))
  }
  expect(times(insert)).toBe(2)
})

it('gives whole numbers beyond 2^53 as bigint, and all others as numbers', async () => {
  const { db } = await counted()
  const text = 'SELECT 9007199254740993 AS above, -9007199254740993 AS below, 9007199254740991 AS last, 1.5 AS real'
  const exact = { above: 9007199254740993n, below: -9007199254740993n, last: 9007199254740991, real: 1.5 }
  const found = await db.transact(async (tx) => {
    const statement = tx.db.prepare(text)
    const every = statement.safeIntegers().get()
    return [(await tx.query(text)).rows[0], statement.safeIntegers(false).get(), statement.raw().get(), every]
  })
  expect(found).toEqual([exact, exact, Object.values(exact), { ...exact, last: 9007199254740991n }])
})

it('hands out no row after the transaction has ended', async () => {
  const { db } = await counted()
  const rows = await db.transact(async (tx) => {
    const some = tx.db.prepare("SELECT 'a' AS x UNION ALL SELECT 'b'").iterate()
    expect(some.next().value).toEqual({ x: 'a' })
    return { rows: some } as never as { rows: IterableIterator<unknown> }
  })
  expect(() => rows.rows.next()).toThrow(expect.objectContaining({ code: 'TRANSACTION_OVER' }))
})
