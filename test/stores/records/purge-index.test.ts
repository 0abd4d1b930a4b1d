// The index that the docs offer to purges of old keys of transactions: both engines take it, and find those keys by it
// among many records of operations.

import { readFileSync } from 'node:fs'
import Database from 'libsql'
import pg from 'pg'
import { describe, expect, inject, it } from 'vitest'
import { postgres } from '../../../src/stores/postgres/index.js'
import { forgettable, isOurFormat } from '../../../src/stores/sql/index.js'
import { createDatabase } from '../../servers/fresh-database.js'
import { freshFile, itemStore } from '../sqlite/files.js'

const docs = readFileSync(new URL('../../../docs/reference/operations.md', import.meta.url), 'utf8')
const index = /`(CREATE INDEX [^`]+)`/.exec(docs)?.[1] ?? expect.unreachable('the docs have no index')
const { since, where } = forgettable.markers
const old = `SELECT id FROM reprise_marker WHERE ${since} <= 1000 AND ${where} AND ${isOurFormat} LIMIT 500`
const rows = 20_000
const columns = 'id, claimed_at_ms, operation, expires_at_ms'

/** What an engine needs: a way to run statements, the plan of one, and a way to purge. */
interface Engine {
  run(text: string): Promise<void>
  plan(text: string): Promise<string>
  purge(): Promise<number>
}

async function onPostgres(work: (engine: Engine) => Promise<void>): Promise<void> {
  const database = await createDatabase(inject('postgresUrl'))
  const pool = new pg.Pool({ connectionString: database.url, max: 2 })
  const db = postgres({ name: 'purge', pool })
  await db.migrate()
  const explained = async (text: string) => JSON.stringify((await pool.query(`EXPLAIN ${text}`)).rows)
  await work({
    run: async (text) => void (await pool.query(text)),
    plan: explained,
    purge: async () => (await db.purge({ markersAfter: '1h' })).markers,
  })
  await pool.end()
  await database.drop()
}

async function onSqlite(work: (engine: Engine) => Promise<void>): Promise<void> {
  const file = freshFile()
  const db = await itemStore(file)
  const raw = new Database(file)
  await work({
    run: async (text) => void raw.exec(text),
    plan: async (text) => JSON.stringify(raw.prepare(`EXPLAIN QUERY PLAN ${text}`).all([])),
    purge: async () => (await db.purge({ markersAfter: '1h' })).markers,
  })
  raw.close()
}

// As PostgreSQL writes it, and as SQLite does.
const series = {
  PostgreSQL: `FROM generate_series(1, ${rows}) AS n`,
  SQLite: `FROM (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ${rows}) SELECT n FROM c)`,
}

describe.each([
  ['PostgreSQL', onPostgres],
  ['SQLite', onSqlite],
] as const)('on %s', (name, open) => {
  it('old keys of transactions are found by the index, and without it by reading the table', () =>
    open(async ({ run, plan, purge }) => {
      const from = series[name]
      // Operations whose window is open, and every hundredth a key of a transaction.
      await run(`INSERT INTO reprise_marker (${columns}) SELECT 'o-' || n, n, 'pay', 9000000000000000 ${from}`)
      await run(`INSERT INTO reprise_marker (${columns}) SELECT 't-' || n, n, NULL, NULL ${from} WHERE n % 100 = 0`)
      await run('ANALYZE')
      expect(await plan(old)).not.toContain('reprise_marker_old')
      await run(index)
      await run('ANALYZE')
      expect(await plan(old)).toContain('reprise_marker_old')
      expect(await purge()).toBe(rows / 100)
    }))
})
