// A record is read by asking the driver for one row. A statement that was left half read would hold its snapshot, and
// with it a checkpoint of others; so it is shown that none is.

import Database from 'libsql'
import { expect, it } from 'vitest'
import type { RecordDraft } from '../../../src/atomicity/index.js'
import { parseKey, type StoredKey, scope } from '../../../src/identity/index.js'
import { deadlineAfter } from '../../../src/kernel/index.js'
import { openEmbedded } from '../../../src/stores/sqlite/connection/driver.js'
import { type SqliteHandle, sqlite } from '../../../src/stores/sqlite/index.js'
import { freshFile, stranger } from './files.js'

const id = (name: string) => name as StoredKey
const limits = () => ({ deadline: deadlineAfter('60s') })
const draft: RecordDraft = { mode: 'leased', operation: 'charge', token: 'one', leaseMs: 60_000 }

/** A store whose statements that read a record are noted by the method that they were asked with. */
async function noted(open: (file: string) => SqliteHandle = (file) => new Database(file) as unknown as SqliteHandle) {
  const file = freshFile()
  const asked: string[] = []
  // Connections by number: libsql ends the process where a closed one is looked at.
  const askedOn: number[] = []
  const closed: number[] = []
  let opened = 0
  const failing: { with?: Error } = {}
  const noting = (): SqliteHandle => {
    const handle = open(file)
    opened += 1
    const number = opened
    const prepare = handle.prepare.bind(handle)
    const close = handle.close.bind(handle)
    handle.close = () => {
      closed.push(number)
      return close()
    }
    handle.prepare = (text) => {
      const statement = prepare(text)
      if (!text.includes('LEFT JOIN')) return statement
      for (const method of ['all', 'get'] as const) {
        const run = statement[method].bind(statement) as (...values: unknown[]) => never
        Object.assign(statement, {
          [method]: (...values: unknown[]) => {
            asked.push(method)
            askedOn.push(number)
            if (failing.with !== undefined) throw failing.with
            return run(...values)
          },
        })
      }
      return statement
    }
    return handle
  }
  const db = sqlite({ name: 'rows', open: noting, readers: 1 })
  await db.migrate()
  return { db, file, asked, askedOn, closed, failing }
}

// TRUNCATE waits for every reader that needs the log, and says so.
function checkpoint(other: Database.Database): unknown {
  const [row] = other.prepare('PRAGMA wal_checkpoint(TRUNCATE)').all([]) as { readonly busy: number }[]
  return row?.busy
}

it.each([
  ['libsql', undefined],
  ['the driver at hand', openEmbedded],
])(
  'a record is asked for as one row, and holds up neither a checkpoint nor a COMMIT afterwards: %s',
  async (_, open) => {
    const { db, file, asked } = await noted(open)
    const other = stranger(file)
    for (const name of ['a', 'b']) {
      expect((await db.records.read(id(name), limits())).record).toBeUndefined()
      // Written by somebody else, and moved into the file, where the snapshot of a reader would be in the way.
      other.exec(
        `INSERT INTO reprise_marker (id, format, mode, state, claimed_at_ms) VALUES ('${name}', 2, 'atomic', 'claimed', 1)`,
      )
      expect(checkpoint(other)).toBe(0)
      expect((await db.records.read(id(name), limits())).record).toMatchObject({ state: 'claimed' })
      other.exec(`UPDATE reprise_marker SET state = 'unknown' WHERE id = '${name}'`)
      expect(checkpoint(other)).toBe(0)
      expect((await db.records.read(id(name), limits())).record).toMatchObject({ state: 'unknown' })
    }
    expect(new Set(asked)).toEqual(new Set(['get']))
    await db.close()
  },
)

it('a repeat is answered by one row, inside its transaction and outside', async () => {
  const { db, asked } = await noted()
  const pay = db.operation('pay', {
    scope: () => scope('shop'),
    key: (key: string) => parseKey(key),
    window: '24h',
    run: (_tx, key) => ({ paid: key }),
  })
  for (const _ of ['first', 'again']) expect(await pay('k-1')).toEqual({ paid: 'k-1' })
  expect(asked).toEqual(['get'])
  // In a process that has not seen it before, the claim meets the record.
  const key = { scope: scope('shop'), key: parseKey('k-2') }
  for (const _ of ['first', 'again']) await db.transact(() => 1, { content: 'none', key })
  expect(asked).toEqual(['get', 'get'])
  await db.close()
})

it('what fails is told, and the statement is not used again: it would keep the values that it had', async () => {
  const { db, file, asked, failing } = await noted()
  await db.records.insert(id('a'), draft, limits())
  await db.records.insert(id('b'), { ...draft, token: 'two' }, limits())
  expect((await db.records.read(id('a'), limits())).record).toMatchObject({ token: 'one' })
  failing.with = Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_READ' })
  await expect(db.records.read(id('b'), limits())).rejects.toMatchObject({ code: 'SQLITE_IOERR_READ' })
  // The lock of somebody else: asked again until it is gone.
  const before = asked.length
  failing.with = Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' })
  const waiting = db.records.read(id('b'), limits())
  await expect.poll(() => asked.length, { timeout: 60_000 }).toBeGreaterThan(before + 2)
  delete failing.with
  expect((await waiting).record).toMatchObject({ token: 'two' })
  const other = stranger(file)
  other.exec("UPDATE reprise_marker SET token = 'three' WHERE id = 'b'")
  expect(checkpoint(other)).toBe(0)
  expect((await db.records.read(id('b'), limits())).record).toMatchObject({ token: 'three' })
  other.exec('ALTER TABLE reprise_marker RENAME TO elsewhere')
  await expect(db.records.read(id('b'), limits())).rejects.toMatchObject({ code: 'MIGRATION_MISSING' })
  await db.close()
})

it('a connection whose read met a lock is not read on again: libsql would leave its snapshot open', async () => {
  const file = freshFile()
  const [reader, other] = [stranger(file), stranger(file)]
  // Without a log, where a reader is in the way of every writer.
  other.exec("PRAGMA journal_mode = DELETE; CREATE TABLE t (id TEXT PRIMARY KEY, v); INSERT INTO t VALUES ('a', 1)")
  for (const handle of [reader, other]) handle.exec('PRAGMA busy_timeout = 0')
  const busy = reader.prepare('SELECT v FROM t WHERE id = ?').raw(true)
  other.exec('BEGIN EXCLUSIVE')
  expect(() => busy.get(['a'])).toThrow(expect.objectContaining({ code: 'SQLITE_BUSY' }))
  other.exec('COMMIT')
  // It is not in the way as long as nobody reads on the same connection, and is from then on.
  other.exec('BEGIN EXCLUSIVE; COMMIT')
  expect(reader.prepare('SELECT v FROM t').raw(true).get([])).toEqual([1])
  expect(() => other.exec('BEGIN EXCLUSIVE')).toThrow(expect.objectContaining({ code: 'SQLITE_BUSY' }))
  expect(busy.all(['a'])).toEqual([[1]])
  // Nor does a transaction around it help, which was rolled back.
  other.exec('BEGIN EXCLUSIVE')
  reader.exec('BEGIN')
  expect(() => busy.all(['a'])).toThrow(expect.objectContaining({ code: 'SQLITE_BUSY' }))
  reader.exec('ROLLBACK')
  other.exec('COMMIT')
  reader.exec('BEGIN')
  expect(reader.prepare('SELECT v FROM t').raw(true).all([])).toEqual([[1]])
  reader.exec('COMMIT')
  expect(() => other.exec('BEGIN EXCLUSIVE')).toThrow(expect.objectContaining({ code: 'SQLITE_BUSY' }))

  const { db, failing, closed, askedOn } = await noted()
  await db.records.insert(id('a'), draft, limits())
  askedOn.length = 0
  failing.with = Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' })
  const waiting = db.records.read(id('a'), limits())
  await expect.poll(() => askedOn.length, { timeout: 60_000 }).toBeGreaterThan(2)
  delete failing.with
  expect((await waiting).record).toMatchObject({ token: 'one' })
  expect(new Set(askedOn).size).toBe(askedOn.length)
  expect(closed).toEqual(askedOn.slice(0, -1))
  await db.close()
})

it('so is one on which a statement of a body met a lock, whatever the body makes of that', async () => {
  const { db, failing, closed, askedOn } = await noted()
  // A read of the body's own, which is noted like those of records.
  const text = 'SELECT a.id FROM reprise_marker a LEFT JOIN reprise_marker b ON b.id = a.id'
  const read = (deaf: boolean) =>
    db.transact(
      async (tx) => {
        if (tx.attempt === 3) delete failing.with
        const reading = () => tx.query(text)
        return deaf ? tx.savepoint(reading).catch(() => 'let go') : reading()
      },
      { readOnly: true },
    )
  await read(false)
  expect(closed).toEqual([])
  failing.with = Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' })
  expect(await read(true)).toBe('let go')
  expect(closed).toEqual([askedOn.at(-1)])
  expect(await read(false)).toMatchObject({ rows: [] })
  expect(askedOn).toHaveLength(5)
  // Each attempt that met the lock closed its connection; the last one is kept.
  expect(closed).toEqual([...new Set(askedOn)].slice(0, -1))
  await db.close()
})
