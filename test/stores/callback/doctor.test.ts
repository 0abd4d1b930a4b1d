// What the doctor of a domain behind an ORM finds: what statements through the ORM tell, and nothing without a cause.

import Database from 'libsql'
import pg from 'pg'
import { expect, it } from 'vitest'
import { systemClock } from '../../../src/kernel/index.js'
import { callback } from '../../../src/stores/callback/index.js'
import { sqlite } from '../../../src/stores/sqlite/index.js'
import { freshFile } from '../sqlite/files.js'
import { callbackWorld } from './world.js'

const world = await callbackWorld()

/** The codes that are found through a function that begins, commits and rolls back on its own. */
async function onPostgres(config: pg.PoolConfig = {}, clock = systemClock): Promise<readonly string[]> {
  const pool = new pg.Pool({ connectionString: world.url, ...config })
  const db = callback<pg.PoolClient>({
    name: 'patient',
    dialect: 'postgres',
    clock,
    async transaction(work) {
      const client = await pool.connect()
      try {
        await client.query('BEGIN')
        await work(client)
        await client.query('COMMIT')
      } catch (error) {
        await client.query('ROLLBACK')
        throw error
      } finally {
        client.release()
      }
    },
    query: (client, text, values) => client.query(text, values),
  })
  const findings = await db.doctor()
  await db.close()
  await pool.end()
  return findings.map(({ code }) => code)
}

it('on PostgreSQL: settings, clocks, tables, timeline and room, as far as statements tell', async () => {
  // The server of the tests does without both, and its keepalives are the system's.
  const usual = await onPostgres()
  expect(usual.every((code) => /^(FSYNC|FULL_PAGE_WRITES|KEEPALIVES|IDLE_IN_TRANSACTION)_/.test(code))).toBe(true)
  const beside = async (found: Promise<readonly string[]>) => (await found).filter((code) => !usual.includes(code))
  expect(await beside(onPostgres({ options: '-c synchronous_commit=off' }))).toEqual(['SYNCHRONOUS_COMMIT_OFF'])
  const late = { ...systemClock, wallMs: () => systemClock.wallMs() - 60_000 }
  expect(await beside(onPostgres({}, late))).toEqual(['CLOCKS_APART'])
  expect((await world.raw.query('select id from reprise_marker')).rows).toEqual([])
  const other = new pg.Client({ connectionString: world.url })
  await other.connect()
  await other.query('begin; lock table reprise_marker')
  expect(await beside(onPostgres())).toEqual(['TABLES_LOCKED'])
  await other.query('rollback; begin; lock table reprise_marker in share mode')
  expect(await beside(onPostgres())).toEqual(['TABLES_LOCKED'])
  await other.end()
  await world.raw.query('alter table reprise_marker set unlogged')
  expect(await beside(onPostgres())).toEqual(['TABLES_UNLOGGED'])
  await world.raw.query('drop index reprise_audit_at')
  expect(await beside(onPostgres())).toEqual(['TABLES_INCOMPLETE', 'TABLES_UNLOGGED'])
  await world.raw.query(
    'drop table reprise_marker, reprise_audit, reprise_window, reprise_seen, reprise_sequence, reprise_head, reprise_message, reprise_reader, reprise_lane, reprise_processed, reprise_inbox, reprise_dead_letter; drop sequence reprise_fence',
  )
  expect(await beside(onPostgres())).toEqual(['MIGRATIONS_MISSING'])
})

it('on SQLite: the file, its settings and its tables', async () => {
  const file = freshFile()
  const handle = new Database(file)
  handle.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  const db = callback<Database.Database>({
    name: 'patient',
    dialect: 'sqlite',
    async transaction(work) {
      handle.exec('BEGIN')
      try {
        await work(handle)
        handle.exec('COMMIT')
      } catch (error) {
        handle.exec('ROLLBACK')
        throw error
      }
    },
    query: async (tx, text, values) => {
      if (!text.startsWith('INSERT')) return { rows: tx.prepare(text).all(values) }
      // A prepared one that fails is not at its end, and would keep the connection from committing.
      tx.exec(text)
      return { rows: [] }
    },
  })
  const codes = async () => (await db.doctor()).map(({ code }) => code)
  expect(await codes()).toEqual(['MIGRATIONS_MISSING'])
  const maker = sqlite({ name: 'maker', open: () => new Database(file) })
  await maker.migrate()
  await maker.close()
  expect(await codes()).toEqual([])
  expect(handle.prepare('SELECT count(*) FROM reprise_marker').raw().all([])).toEqual([[0]])
  const other = new Database(file)
  other.exec('BEGIN IMMEDIATE')
  expect(await codes()).toEqual(['FILE_LOCKED'])
  other.exec('ROLLBACK')
  other.close()
  handle.exec('PRAGMA synchronous = NORMAL; DROP INDEX reprise_marker_due')
  expect(await codes()).toEqual(['SYNCHRONOUS_NOT_FULL', 'TABLES_INCOMPLETE'])
  await db.close()
  handle.close()
})
