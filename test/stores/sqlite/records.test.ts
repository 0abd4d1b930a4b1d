// The records of a file beyond what every store does: the lock of the file, deadlines, and a COMMIT that fails.

import Database from 'libsql'
import { expect, it } from 'vitest'
import { inspectionOf, type RecordDraft } from '../../../src/atomicity/index.js'
import { parseKey, type StoredKey, scope } from '../../../src/identity/index.js'
import { deadlineAfter } from '../../../src/kernel/index.js'
import { type SqliteHandle, sqlite } from '../../../src/stores/sqlite/index.js'
import { freshFile, rowsIn, stranger } from './files.js'

const key = (name: string) => name as StoredKey
const limits = (deadline: `${number}ms` | `${number}s` = '20s') => ({ deadline: deadlineAfter(deadline) })
const draft: RecordDraft = { mode: 'leased', operation: 'charge', token: 'one', leaseMs: 60_000 }

it('a write waits for the lock of the file, no longer than it may, and a read does not wait', async () => {
  const file = freshFile()
  const db = sqlite({ name: 'a', open: () => new Database(file) as unknown as SqliteHandle })
  await db.migrate()
  const other = stranger(file)
  other.exec('BEGIN IMMEDIATE')
  await expect(db.records.insert(key('a'), draft, limits('80ms'))).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
  expect((await db.records.read(key('a'), limits())).record).toBeUndefined()
  await expect(db.records.read(key('a'), limits('0ms'))).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
  const waiting = db.records.insert(key('a'), draft, limits())
  other.exec('COMMIT')
  expect(await waiting).toMatchObject({ written: true })
  await db.close()
})

it('a COMMIT that fails without a clear answer is told, its log is healed, and reading tells what became of it', async () => {
  const file = freshFile()
  let trouble = false
  const open = () => {
    const handle = new Database(file) as unknown as SqliteHandle
    const exec = handle.exec.bind(handle)
    const failing = (text: string): unknown => {
      if (text !== 'COMMIT' || !trouble) return exec(text)
      trouble = false
      throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_FSYNC' })
    }
    return Object.assign(handle, { exec: failing })
  }
  const db = sqlite({ name: 'a', open })
  await db.migrate()
  trouble = true
  await expect(db.records.insert(key('a'), draft, limits())).rejects.toMatchObject({ code: 'SQLITE_IOERR_FSYNC' })
  expect((await db.records.read(key('a'), limits())).record).toBeUndefined()
  expect(rowsIn(file, "SELECT value FROM reprise_meta WHERE name = 'heals'")).toEqual([['1']])
  expect(await db.records.insert(key('a'), draft, limits())).toMatchObject({ written: true })
  await db.close()
})

it('a new key costs two statements, one for its claim and one for its outcome, and looks at nothing', async () => {
  const file = freshFile()
  const ran: string[] = []
  const open = () => {
    const handle = new Database(file) as unknown as SqliteHandle
    const prepare = handle.prepare.bind(handle)
    const noting = (text: string): ReturnType<typeof prepare> => {
      const statement = prepare(text)
      const noted = (method: 'all' | 'get' | 'run') => {
        const run = statement[method].bind(statement) as (...values: unknown[]) => unknown
        return (...values: unknown[]) => {
          if (text.includes('reprise_marker')) ran.push(text.split(' ', 1)[0] as string)
          return run(...values)
        }
      }
      return Object.assign(statement, { all: noted('all'), get: noted('get'), run: noted('run') })
    }
    return Object.assign(handle, { prepare: noting })
  }
  const db = sqlite({ name: 'a', open })
  await db.migrate()
  const count = db.operation('count', {
    scope: () => scope('tests'),
    key: (name: string) => parseKey(name),
    window: '1h',
    run: async () => 1,
  })
  await count('first')
  ran.length = 0
  await count('second')
  expect(ran).toEqual(['INSERT', 'UPDATE'])
  await count('second')
  expect(ran).toEqual(['INSERT', 'UPDATE', 'SELECT'])
  await db.close()
})

it('a limit that is none is refused before anything is looked at', async () => {
  const db = sqlite({ name: 'a', file: freshFile() })
  await expect(inspectionOf(db.records).list({ limit: -1 }, limits())).rejects.toMatchObject({
    code: 'ARGUMENT_INVALID',
  })
  await expect(db.records.purge({ limit: 10_001 }, limits())).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
  await db.close()
})
