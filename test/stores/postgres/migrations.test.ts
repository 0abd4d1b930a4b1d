// Reprise's own tables: made once, by whoever comes first, and never taken back.

import { execFile } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { mintKey, scope } from '../../../src/identity/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { freshDatabase } from '../../servers/fresh-database.js'
import { newestMigration } from '../newest-migration.js'
import { codeOf, untilWaiting } from './world.js'

const newest = newestMigration.postgres

let url: string
beforeAll(async () => {
  url = (await freshDatabase()).url
})

async function withPool<Result>(work: (pool: pg.Pool) => Promise<Result>): Promise<Result> {
  const pool = new pg.Pool({ connectionString: url })
  try {
    return await work(pool)
  } finally {
    await pool.end()
  }
}

const columns = (pool: pg.Pool, schema: string) =>
  pool
    .query(
      `select table_name || '.' || column_name || ' ' || data_type || case when is_nullable = 'NO' then ' not null' else '' end as line
       from information_schema.columns where table_schema = $1 order by table_name, ordinal_position`,
      [schema],
    )
    .then(({ rows }) => rows.map(({ line }) => line as string))

describe('migrations', () => {
  it('make the tables once, also when many connections ask at once', async () => {
    await withPool(async (pool) => {
      const stores = Array.from({ length: 8 }, () =>
        postgres({ pool, name: 'many', schema: 'many', connectionWait: '30s' }),
      )
      const results = await Promise.all(stores.map((db) => db.migrate()))
      expect(results.filter(({ from }) => from === 0)).toHaveLength(1)
      expect(results.every(({ to }) => to === newest)).toBe(true)
    })
  })

  it('are missed by name where work with a key comes before them', async () => {
    await withPool(async (pool) => {
      const db = postgres({ pool, name: 'early', schema: 'early' })
      const key = { scope: scope('early'), key: mintKey() }
      let bodies = 0
      const body = async () => {
        bodies += 1
      }
      await expect(db.transact(body, { content: 'none', key })).rejects.toMatchObject({
        code: 'MIGRATION_MISSING',
        message: expect.stringContaining('migrate()'),
        cause: { code: '42P01' },
      })
      expect(bodies).toBe(0)
      // A table of the body's own keeps its own error.
      expect(await codeOf(db.transact((tx) => tx.query('select * from nowhere')))).toBe('42P01')
      await db.migrate()
      await db.transact(body, { content: 'none', key })
      expect(bodies).toBe(1)
    })
  })

  it('make the tables once, also when two processes ask at once', async () => {
    const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
    const bundle = here(`../../../.cache/postgres-process-${process.pid}.mjs`)
    await build({
      entryPoints: [here('../../../src/stores/postgres/index.ts')],
      outfile: bundle,
      bundle: true,
      platform: 'node',
      format: 'esm',
      logLevel: 'error',
    })
    const raw = new pg.Client({ connectionString: url })
    await raw.connect()
    // Both are made to wait for the same lock, so that they race for it when it is let go.
    await raw.query("select pg_advisory_lock(hashtextextended('reprise:two.reprise_', 0))")
    const run = promisify(execFile)
    const processes = [1, 2].map(() => run(process.execPath, [here('processes/migrate.mjs'), bundle, url]))
    await untilWaiting(raw, 2)
    await raw.query('select pg_advisory_unlock_all()')
    const said = (await Promise.all(processes)).map(({ stdout }) => JSON.parse(stdout))
    expect(said.map(({ from }) => from).sort()).toEqual([0, newest])
    await raw.end()
    rmSync(bundle)
  })

  it('make what the printed SQL makes, which is the SQL that is kept here', async () => {
    await withPool(async (pool) => {
      const kept = readFileSync(
        fileURLToPath(new URL('../../../docs/reference/schema/postgres.sql', import.meta.url)),
        'utf8',
      )
      expect(postgres({ pool, name: 'printed' }).migrationSql()).toBe(kept)
      const printed = postgres({ pool, name: 'printed', schema: 'printed', prefix: 'p_' })
      await pool.query(printed.migrationSql())
      expect(await printed.migrate()).toEqual({ from: newest, to: newest })
      const migrated = postgres({ pool, name: 'migrated', schema: 'migrated', prefix: 'p_' })
      expect(await migrated.migrate()).toEqual({ from: 0, to: newest })
      expect(await columns(pool, 'migrated')).toEqual(await columns(pool, 'printed'))
      expect(await columns(pool, 'migrated')).toContain('p_marker.id text not null')
    })
  })

  it('refuse tables of a newer version', async () => {
    await withPool(async (pool) => {
      const db = postgres({ pool, name: 'newer', schema: 'newer' })
      await db.migrate()
      await pool.query("insert into newer.reprise_migration values (99, 'of the future', 0)")
      expect(await codeOf(db.migrate())).toBe('MIGRATION_NEWER')
      expect(await db.doctor()).toContainEqual(
        expect.objectContaining({ code: 'MIGRATIONS_NEWER', severity: 'broken' }),
      )
      expect(pool.idleCount).toBe(pool.totalCount)
    })
  })

  it('need no right on the database where the schema is there', async () => {
    await withPool(async (pool) => {
      const role = `plain_${new URL(url).pathname.slice(6)}`
      await pool.query(`create role ${role} login; create schema plain authorization ${role}`)
      const own = new pg.Pool({ connectionString: url.replace('postgres@', `${role}@`) })
      expect(await postgres({ pool: own, name: 'plain', schema: 'plain' }).migrate()).toEqual({ from: 0, to: newest })
      await own.end()
      await pool.query(`drop schema plain cascade; drop role ${role}`)
    })
  })

  it('leave an error as it is, and the connection clean', async () => {
    await withPool(async (pool) => {
      await pool.query('create schema taken; create table taken.reprise_marker (x int)')
      expect(await codeOf(postgres({ pool, name: 'taken', schema: 'taken' }).migrate())).toBe('42P07')
      expect(await columns(pool, 'taken')).toEqual(['reprise_marker.x integer'])
    })
  })

  it.each([{ prefix: 'A' }, { prefix: 'a"' }, { schema: '' }, { schema: "a'b" }, { name: '' }])(
    'are refused with %j',
    async (wrong) => {
      await withPool(async (pool) => {
        expect(() => postgres({ pool, name: 'x', ...wrong })).toThrow(
          expect.objectContaining({ code: 'ARGUMENT_INVALID' }),
        )
      })
    },
  )
})
