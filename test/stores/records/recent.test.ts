// The newest records of a large table on PostgreSQL, without reading it.

import pg from 'pg'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { systemClock } from '../../../src/kernel/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { postgresSchema } from '../../../src/stores/postgres/migrations.js'
import { createDatabase } from '../../servers/fresh-database.js'

let pool: pg.Pool
beforeAll(async () => {
  const database = await createDatabase(inject('postgresUrl'))
  pool = new pg.Pool({ connectionString: database.url, max: 2 })
  afterAll(async () => {
    await pool.end()
    await database.drop()
  })
  await postgres({ name: 'large', pool }).migrate()
  // In an order of names that says nothing about their age. Every 3,000th waits for a look.
  await pool.query(`
    insert into reprise_marker (id, format, version, mode, operation, scope, state, first_claimed_at_ms, claimed_at_ms, claims, looks,
      completed_at_ms, expires_at_ms, due_at_ms)
    select 'sha256:' || md5(n::text), 2, 1, 'atomic', case n % 2 when 0 then 'pay' else 'note' end, 's' || n % 7,
      case n % 3000 when 0 then 'unknown' else 'succeeded' end, n, n, 1, 0,
      case n % 3000 when 0 then null else n end, case n % 3000 when 0 then null else n + 1e6 end, case n % 3000 when 0 then n end
    from generate_series(1, 60000) as n`)
  await pool.query('analyze reprise_marker')
})

it('are given newest first, of an operation, a scope and a state', async () => {
  const { records } = postgres({ name: 'large', pool })
  const limits = { deadline: { expiresAtMs: systemClock.monotonicMs() + 60_000 } }
  const listed = async (query: { operation?: string; scope?: string; state?: 'unknown' }, limit: number) =>
    (await records.inspection?.recent?.({ ...query, limit }, limits))?.map(({ record }) => record.claimedAtMs)
  expect(await listed({}, 3)).toEqual([60_000, 59_999, 59_998])
  expect(await listed({ operation: 'pay' }, 3)).toEqual([60_000, 59_998, 59_996])
  expect(await listed({ operation: 'note', scope: 's0' }, 2)).toEqual([59_997, 59_983])
  expect(await listed({ state: 'unknown' }, 2)).toEqual([60_000, 57_000])
})

it('are found by the indexes alone', async () => {
  const { text, values } = postgresSchema().statements.recent({ operation: 'pay', state: 'succeeded', limit: 50 })
  const { rows } = await pool.query(`explain (analyze, timing off) ${text}`, [...values])
  const plan = rows.map((row: Record<string, string>) => row['QUERY PLAN']).join('\n')
  expect(plan).not.toContain('Seq Scan on reprise_marker')
  for (const index of ['reprise_marker_expires', 'reprise_marker_due', 'reprise_marker_pkey'])
    expect(plan).toContain(index)
})
