// Migrations, and what the store can be told.

import { existsSync } from 'node:fs'
import Database from 'libsql'
import { describe, expect, it } from 'vitest'
import { newestMigration } from '../../../test/stores/newest-migration.js'
import { bundle, freshFile, itemStore, rowsIn, start, stranger } from '../../../test/stores/sqlite/files.js'
import { mintKey, scope } from '../../identity/index.js'
import { sqlite, sqliteManifest } from './index.js'

const newest = newestMigration.sqlite

const codes = (findings: readonly { readonly code: string }[]) => findings.map(({ code }) => code)

describe('migrations', () => {
  it('are applied once, under a prefix of their own', async () => {
    const file = freshFile()
    const db = sqlite({ name: 'a', open: () => new Database(file), prefix: 'mine_' })
    expect([await db.migrate(), await db.migrate()]).toEqual([
      { from: 0, to: newest },
      { from: newest, to: newest },
    ])
    expect(rowsIn(file, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").flat()).toEqual([
      'mine_audit',
      'mine_dead_letter',
      'mine_fence',
      'mine_head',
      'mine_inbox',
      'mine_lane',
      'mine_marker',
      'mine_message',
      'mine_meta',
      'mine_migration',
      'mine_processed',
      'mine_reader',
      'mine_seen',
      'mine_sequence',
      'mine_window',
    ])
    await db.close()
  })

  it('can be run by others, from their text', async () => {
    const file = freshFile()
    const db = sqlite({ name: 'a', open: () => new Database(file) })
    stranger(file).exec(db.migrationSql())
    expect(await db.migrate()).toEqual({ from: newest, to: newest })
    expect(
      await db.transact(async () => 'stored', { content: 'none', key: { scope: scope('a'), key: mintKey() } }),
    ).toBe('stored')
    await db.close()
  })

  it('are missed by name where work with a key comes before them', async () => {
    const file = freshFile()
    const db = sqlite({ name: 'a', open: () => new Database(file) })
    const key = { scope: scope('a'), key: mintKey() }
    let bodies = 0
    const body = async () => {
      bodies += 1
    }
    await expect(db.transact(body, { content: 'none', key })).rejects.toMatchObject({
      code: 'MIGRATION_MISSING',
      message: expect.stringContaining('migrate()'),
      cause: { message: expect.stringContaining('no such table') },
    })
    expect(bodies).toBe(0)
    await db.migrate()
    await db.transact(body, { content: 'none', key })
    expect(bodies).toBe(1)
    await db.close()
  })

  it('refuse a file that a newer version has migrated', async () => {
    const file = freshFile()
    const db = await itemStore(file)
    stranger(file).exec("INSERT INTO reprise_migration VALUES (99, 'from the future', 0, null)")
    await expect(db.migrate()).rejects.toMatchObject({ code: 'MIGRATION_NEWER' })
    expect(codes(await db.doctor())).toEqual(['MIGRATIONS_NEWER'])
  })

  it('are made by one of several processes that start at once', async () => {
    const file = freshFile()
    const outdir = await bundle()
    stranger(file).exec('CREATE TABLE counter (value INTEGER)')
    const starting = [1, 2, 3].map(() => start('adder.mjs', [outdir, file, '0']))
    const said = await Promise.all(starting.map((child) => child.rest()))
    expect(said.map(([first]) => JSON.parse(first ?? '{}').from).sort()).toEqual([0, newest, newest])
    expect(rowsIn(file, 'SELECT number FROM reprise_migration')).toEqual(
      Array.from({ length: newest }, (_, index) => [index + 1]),
    )
  })
})

describe('options', () => {
  it.each([
    ['neither open nor file', {}],
    ['both', { open: () => new Database('x'), file: 'x' }],
    ['an empty path', { file: '' }],
    ['no readers', { file: 'x', readers: 0 }],
    ['a queue that is no number', { file: 'x', queue: Number.NaN }],
    ['a prefix with a quote', { file: 'x', prefix: 'a"b' }],
    ['no name', { file: 'x', name: '' }],
  ])('are refused: %s', (_, options) => {
    expect(() => sqlite({ name: 'a', ...options })).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }))
  })

  it('refuse a connection that was handed over before, and leave the one who has it alone', async () => {
    const handle = new Database(freshFile())
    const db = sqlite({ name: 'a', open: () => handle })
    await db.migrate()
    await db.transact((tx) => tx.query('CREATE TABLE kept (id INTEGER)'))
    const other = sqlite({ name: 'b', open: () => handle })
    await expect(other.migrate()).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    await expect(db.transact(async () => 1, { readOnly: true })).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    expect(await db.transact(async (tx) => (await tx.query('SELECT count(*) AS n FROM kept')).rows)).toEqual([{ n: 0 }])
    await db.close()
  })

  it.each([
    ['an object without methods', {}, 'prepare, exec, close'],
    ['nothing', undefined, 'prepare, exec, close'],
    ['a promise', Promise.resolve(), 'prepare, exec, close'],
    ['a client of another kind', { prepare: () => undefined, close: () => undefined }, 'exec'],
  ])('refuse %s in place of a connection, and name what it lacks', async (_what, opened, missing) => {
    const db = sqlite({ name: 'a', open: () => opened as never })
    const refusal = { code: 'ARGUMENT_INVALID', details: { option: 'open', missing } }
    await expect(db.transact((tx) => tx.query('SELECT 1'))).rejects.toMatchObject(refusal)
    await expect(db.transact((tx) => tx.query('SELECT 1'), { readOnly: true })).rejects.toMatchObject(refusal)
    await expect(db.migrate()).rejects.toMatchObject(refusal)
    await db.close()
  })

  it('leave nothing behind of a promise that open returned: neither a rejection nor an open file', async () => {
    let closed = 0
    const later = [
      () => Promise.reject(new Error('no such disk')),
      () => Promise.resolve({ close: () => ++closed }),
      () => Promise.resolve(7),
      () =>
        Promise.resolve({
          close() {
            closed += 1
            throw new Error('closed already')
          },
        }),
    ]
    for (const open of later) {
      const db = sqlite({ name: 'a', open: open as never })
      await expect(db.migrate()).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
      await db.close()
    }
    expect(closed).toBe(2)
  })

  it('open nothing before the first transaction', () => {
    const file = freshFile()
    sqlite({ name: 'a', file })
    expect(existsSync(file)).toBe(false)
  })
})

it('gives a reason for every limit', () => {
  expect(Object.keys(sqliteManifest.because).sort()).toEqual(
    [
      'commit',
      'durability',
      'isolation',
      'lockReport',
      'reach',
      'refuse',
      'resolvesUnkeyed',
      'rowLock',
      'writers',
    ].sort(),
  )
})

it.each(['ignore', 'report'] as const)(
  'stores what the body started and did not await, one after the other (%s)',
  async (effects) => {
    const file = freshFile()
    const db = await itemStore(file, { effects })
    const started: number[] = []
    await db.transact(async (tx) => {
      void (async () => {
        for (let id = 1; id <= 50; id++) {
          await tx.query('INSERT INTO item (id) VALUES (?)', [id])
          started.push(id)
        }
      })()
      expect(started).toEqual([])
    })
    expect(started).toHaveLength(50)
    expect(rowsIn(file, 'SELECT count(*) FROM item')).toEqual([[50]])
  },
)

it('hands out the stored value to a repeat, also in another process', async () => {
  const file = freshFile()
  const key = { scope: scope('test'), key: mintKey() }
  const first = await itemStore(file)
  const second = await itemStore(file)
  const insert = (db: typeof first) =>
    db.transact(async (tx) => ({ count: (await tx.query("INSERT INTO item (note) VALUES ('once')")).rowCount }), {
      content: 'none',
      key,
    })
  expect(await Promise.all([insert(first), insert(second), insert(first)])).toEqual(
    Array.from({ length: 3 }, () => ({ count: 1 })),
  )
  expect(rowsIn(file, 'SELECT note FROM item')).toEqual([['once']])
})

it('refuses a marker that has no outcome', async () => {
  const file = freshFile()
  const db = await itemStore(file)
  const key = { scope: scope('test'), key: mintKey() }
  await db.transact(async () => 1, { content: 'none', key })
  stranger(file).exec('UPDATE reprise_marker SET value = NULL')
  await expect(db.transact(async () => 2, { content: 'none', key })).rejects.toMatchObject({ code: 'MARKER_INVALID' })
})
