// What a look at a file finds: each finding seen once with its cause, and none without one.

import {
  closeSync,
  copyFileSync,
  openSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'libsql'
import { describe, expect, it } from 'vitest'
import { freshFile, itemStore, stranger } from '../../../test/stores/sqlite/files.js'
import type { StoredKey } from '../../identity/index.js'
import { deadlineAfter } from '../../kernel/index.js'
import { type SqliteHandle, sqlite } from './index.js'

/** The codes that the doctor of a file finds; each finding names its fix. */
async function codes(open: () => SqliteHandle): Promise<readonly string[]> {
  const db = sqlite({ name: 'patient', open })
  const findings = await db.doctor()
  await db.close()
  expect(findings.every(({ what, fix }) => /^[^`]{10,}\.$/.test(what) && fix.length > 5)).toBe(true)
  return findings.map(({ code }) => code)
}

/** The file of a migrated store that nobody has open any more. */
async function migrated(): Promise<string> {
  const file = freshFile()
  const db = sqlite({ name: 'maker', open: () => new Database(file) })
  await db.migrate()
  await db.close()
  // Some drivers close late, so a copy is looked at.
  changed(file, 'PRAGMA wal_checkpoint(TRUNCATE)')
  const copy = freshFile()
  copyFileSync(file, copy)
  return copy
}

function changed(file: string, change: string): void {
  const handle = new Database(file)
  handle.exec(change)
  handle.close()
}

it('finds nothing wrong with a file on a local disk, and leaves it as it is', async () => {
  const file = await migrated()
  const rows = () => stranger(file).prepare('SELECT count(*) FROM reprise_marker').raw().all([])
  expect(await codes(() => new Database(file))).toEqual([])
  expect(rows()).toEqual([[0]])
  const db = sqlite({ name: 'embedded', file })
  expect(await db.doctor()).toEqual([])
  await db.close()
})

it('misses the tables, and sees a lock that somebody else holds', async () => {
  const file = freshFile()
  expect(await codes(() => new Database(file))).toEqual(['MIGRATIONS_MISSING'])
  const db = await itemStore(file)
  const other = stranger(file)
  other.exec('BEGIN IMMEDIATE')
  expect((await db.doctor()).map(({ code }) => code)).toEqual(['FILE_LOCKED'])
  other.exec('ROLLBACK')
  expect(await db.doctor()).toEqual([])
})

it('sees a trigger that refuses what is written, and what it answers', async () => {
  const file = await migrated()
  changed(file, "CREATE TRIGGER frozen BEFORE INSERT ON reprise_marker BEGIN SELECT RAISE(ABORT, 'secret'); END")
  const db = sqlite({ name: 'frozen', file })
  const findings = await db.doctor()
  expect(findings.map(({ code }) => code)).toEqual(['TRIGGERS_PRESENT', 'WRITE_REFUSED'])
  expect(findings[1]?.what).toMatch(/key\. SQLITE_CONSTRAINT\w* was the answer to a write\.$/)
  await db.close()
})

it('sees settings that a driver did not let Reprise make', async () => {
  const file = freshFile()
  const stubborn = () => {
    const handle = new Database(file)
    const exec = handle.exec.bind(handle)
    handle.exec('PRAGMA synchronous = NORMAL')
    handle.exec('PRAGMA busy_timeout = 500')
    return Object.assign(handle, { exec: (text: string) => (/PRAGMA/.test(text) ? handle : exec(text)) })
  }
  const db = sqlite({ name: 'a', open: stubborn })
  await db.migrate()
  await db.close()
  expect(await codes(stubborn)).toEqual(['JOURNAL_NOT_WAL', 'SYNCHRONOUS_NOT_FULL', 'BUSY_TIMEOUT_SET'])
})

it('sees a driver with an old SQLite', async () => {
  const file = await migrated()
  const old = () => {
    const handle = new Database(file)
    const prepare = handle.prepare.bind(handle)
    return Object.assign(handle, { prepare: (text: string) => prepare(text.replace('sqlite_version()', "'3.34.1'")) })
  }
  expect(await codes(old)).toEqual(['SQLITE_OLD'])
})

it('sees a log that nobody writes back', async () => {
  const file = freshFile()
  const db = await itemStore(file)
  const reader = stranger(file)
  reader.exec('BEGIN')
  reader.prepare('SELECT * FROM item').all([])
  for (let part = 0; part < 9; part += 1) {
    await db.transact((tx) => tx.query('INSERT INTO item (note) VALUES (?)', [`${part}${'x'.repeat(8_000_000)}`]))
  }
  expect(statSync(`${file}-wal`).size).toBeGreaterThan(64 * 1024 * 1024)
  expect((await db.doctor()).map(({ code }) => code)).toEqual(['LOG_LARGE'])
})

describe('sees that nobody does the upkeep', () => {
  const hour = 3_600_000
  const at = (hoursAgo: number): number => Date.now() - hoursAgo * hour
  const record = (columns: string, values: string): string =>
    `INSERT INTO reprise_marker (id, format, claimed_at_ms, mode, ${columns}) VALUES ('a', 2, 0, 'leased', ${values})`
  it.each([
    [record('state, expires_at_ms', `'succeeded', ${at(25)}`), ['PURGE_OVERDUE']],
    [record('state, expires_at_ms', `'failed', ${at(23)}`), []],
    [record('state, due_at_ms', `'claimed', ${at(2)}`), ['SWEEP_OVERDUE']],
    [record('state, due_at_ms', `'unknown', ${at(2)}`), ['SWEEP_OVERDUE']],
    [record('state, due_at_ms', `'claimed', ${at(0.9)}`), []],
    [
      `INSERT INTO reprise_processed (reader, source, id, fingerprint, at_ms) VALUES ('r', 's', 'i', 'f', ${at(32 * 24)})`,
      ['PURGE_OVERDUE'],
    ],
    [
      `INSERT INTO reprise_reader (name, kind, reads, told_to, at_ms, memory_ms) VALUES ('r', 'consumer', 'inbox', 0, 0, ${48 * hour});
       INSERT INTO reprise_processed (reader, source, id, fingerprint, at_ms) VALUES ('r', 's', 'i', 'f', ${at(32 * 24)})`,
      [],
    ],
  ])('%s', async (change, expected) => {
    const file = await migrated()
    changed(file, change)
    expect(await codes(() => new Database(file))).toEqual(expected)
  })
})

describe('looks at the tables', () => {
  it.each([
    ['DROP INDEX reprise_marker_due', 'TABLES_INCOMPLETE'],
    ['DROP TABLE reprise_audit', 'TABLES_INCOMPLETE'],
    ['DROP TABLE reprise_fence', 'TABLES_INCOMPLETE'],
    ['DROP TABLE reprise_marker', 'TABLES_INCOMPLETE'],
    ['DROP TABLE reprise_sequence', 'TABLES_INCOMPLETE'],
    ["INSERT INTO reprise_sequence VALUES ('a', 'b', 1, 0, NULL, NULL, 0)", 'FENCE_BEHIND'],
    ['CREATE TRIGGER watch AFTER UPDATE ON reprise_sequence BEGIN SELECT 1; END', 'TRIGGERS_PRESENT'],
    ['DELETE FROM reprise_fence', 'TABLES_INCOMPLETE'],
    ['ALTER TABLE reprise_marker DROP COLUMN because', 'TABLES_INCOMPLETE'],
    [
      `CREATE TABLE other AS SELECT * FROM reprise_marker; DROP TABLE reprise_marker; ALTER TABLE other RENAME TO reprise_marker;
       CREATE INDEX reprise_marker_due ON reprise_marker (due_at_ms); CREATE INDEX reprise_marker_expires ON reprise_marker (expires_at_ms);
       CREATE UNIQUE INDEX some_ids ON reprise_marker (id) WHERE value IS NULL`,
      'PRIMARY_KEY_MISSING',
    ],
    ['CREATE TRIGGER watch AFTER INSERT ON reprise_marker BEGIN SELECT 1; END', 'TRIGGERS_PRESENT'],
  ])('%s', async (change, code) => {
    const file = await migrated()
    changed(file, change)
    expect(await codes(() => new Database(file))).toEqual([code])
  })

  it('names what is missing', async () => {
    const file = await migrated()
    changed(file, 'DROP INDEX reprise_audit_at; ALTER TABLE reprise_marker DROP COLUMN because')
    const db = sqlite({ name: 'patient', open: () => new Database(file) })
    expect((await db.doctor())[0]?.what).toMatch(/missing: reprise_audit_at, reprise_marker\.because\.$/)
    await db.close()
  })

  it('sees a fence that was set back', async () => {
    const file = freshFile()
    const db = await itemStore(file)
    const limits = { deadline: deadlineAfter('10s') }
    for (const id of ['a', 'b']) {
      await db.records.insert(id as StoredKey, { mode: 'leased', token: id, leaseMs: 60_000 }, limits)
    }
    expect(await db.doctor()).toEqual([])
    stranger(file).exec('UPDATE reprise_fence SET number = 1')
    expect(await db.doctor()).toMatchObject([
      { code: 'FENCE_BEHIND', severity: 'broken', what: expect.stringContaining('It is at 1, and 2 is in use.') },
    ])
  })
})

describe('looks at the file', () => {
  it('cannot open one whose folder is not there', async () => {
    const file = join(dirname(freshFile()), 'nowhere', 'a.db')
    expect(await codes(() => new Database(file))).toEqual(['FILE_UNOPENED'])
  })

  it('sees one that can only be read', async () => {
    const file = await migrated()
    const readOnly = () => {
      const handle = new Database(file)
      handle.exec('PRAGMA query_only = 1')
      return handle
    }
    expect(await codes(readOnly)).toEqual(['FILE_READ_ONLY'])
  })

  it('sees one that is no database, or damaged', async () => {
    const none = freshFile()
    writeFileSync(none, 'x'.repeat(10_000))
    expect(await codes(() => new Database(none))).toEqual(['FILE_CORRUPT'])
    const damaged = await migrated()
    const pageBytes = readFileSync(damaged).readUInt16BE(16)
    const descriptor = openSync(damaged, 'r+')
    // The pages behind the schema: those of tables and indexes that are read when they are used.
    for (let page = 3; page < 6; page += 1) writeSync(descriptor, Buffer.alloc(64, 0xff), 0, 64, page * pageBytes)
    closeSync(descriptor)
    expect(await codes(() => new Database(damaged))).toContain('FILE_CORRUPT')
  })

  it('does not read one as a whole that is large', async () => {
    const file = await migrated()
    const bytes = 300 * 1024 * 1024
    const pages = Buffer.alloc(4)
    pages.writeUInt32BE(bytes / readFileSync(file).readUInt16BE(16))
    truncateSync(file, bytes)
    const descriptor = openSync(file, 'r+')
    writeSync(descriptor, pages, 0, 4, 28)
    closeSync(descriptor)
    expect(await codes(() => new Database(file))).toEqual(['FILE_UNCHECKED'])
  })

  it('sees one that may not grow much, or not at all', async () => {
    const file = await migrated()
    const limited = (spare: number) => () => {
      const handle = new Database(file)
      const [[pages]] = handle.prepare('PRAGMA page_count').raw().all([]) as [[number]]
      handle.exec(`PRAGMA max_page_count = ${pages + spare}`)
      return handle
    }
    expect(await codes(limited(0))).toEqual(['DISK_NEARLY_FULL', 'DISK_FULL'])
    expect(await codes(limited(10_000))).toEqual([])
  })
})
