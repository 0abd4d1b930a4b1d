// Statements that are kept prepared, counted at the driver; and rows as they are, whatever the driver makes of them.

import { readdirSync, readlinkSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import Database from 'libsql'
import { expect, it } from 'vitest'
import { freshFile, itemStore, rowsIn } from '../../../../test/stores/sqlite/files.js'
import { mintKey, scope } from '../../../identity/index.js'

const insert = 'INSERT INTO item (note, state) VALUES (?, ?)'

/** A store over a file, and how often its connections prepared a text. */
async function counted() {
  const file = freshFile()
  const prepared: string[] = []
  const handles: unknown[] = []
  const open = () => {
    const handle = new Database(file)
    handles.push(handle)
    const prepare = handle.prepare.bind(handle)
    handle.prepare = ((text: string) => {
      prepared.push(text)
      return prepare(text)
    }) as typeof handle.prepare
    return handle
  }
  const db = await itemStore(file, { open })
  const times = (text: string): number => prepared.filter((one) => one === text).length
  return { db, file, times, prepared, handles }
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

it('prepares each of Reprise’s own statements once, rows or none', async () => {
  const { db, prepared } = await counted()
  const before = prepared.length
  for (let n = 0; n < 5; n += 1) {
    const key = { scope: scope('kept'), key: mintKey() }
    // The repeat looks at what is stored; a new key takes no look.
    for (const _time of ['first', 'repeat']) await db.transact(() => n, { content: 'none', key })
  }
  const texts = prepared.slice(before)
  expect(texts.some((text) => text.startsWith('SELECT'))).toBe(true)
  expect(texts.length).toBe(new Set(texts).size)
})

it('reads rows of a text of the body anew each time, also where Reprise keeps the same text', async () => {
  const { db, times } = await counted()
  const text = 'SELECT count(*) AS n FROM item'
  for (let n = 0; n < 2; n += 1) await db.transact((tx) => tx.query(text))
  expect(times(text)).toBe(2)
})

it('lets go of all statements of a connection that is closed: the file is not held open', async () => {
  const { db, file, handles } = await counted()
  await db.transact((tx) => tx.query(insert, ['a', 'new']), {
    content: 'none',
    key: { scope: scope('kept'), key: mintKey() },
  })
  const descriptors = () =>
    readdirSync('/proc/self/fd').filter((number) => {
      try {
        return readlinkSync(`/proc/self/fd/${number}`).startsWith(file)
      } catch {
        return false
      }
    }).length
  expect(descriptors()).toBeGreaterThan(0)
  await db.close()
  setFlagsFromString('--expose_gc')
  const collect = runInNewContext('gc') as () => void
  const afterCollecting = () => {
    collect()
    return descriptors()
  }
  await expect.poll(afterCollecting).toBe(0)
  // The connections themselves are still held here, and their statements would be with them.
  expect(handles).toHaveLength(1)
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
