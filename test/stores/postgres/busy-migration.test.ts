// A migration of tables that others work on: it asks for them in short tries, and the others go on in between.

import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock, systemRandom } from '../../../src/kernel/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { type MigrationLimits, migratePostgres, postgresSchema } from '../../../src/stores/postgres/migrations.js'
import { freshDatabase } from '../../servers/fresh-database.js'
import { newestMigration } from '../newest-migration.js'
import { codeOf, untilWaiting } from './world.js'

const newest = newestMigration.postgres

let pool: pg.Pool
const clients: pg.Client[] = []
beforeAll(async () => {
  const { url } = await freshDatabase()
  pool = new pg.Pool({ connectionString: url })
})
afterAll(async () => {
  for (const client of clients) await client.end()
  await pool.end()
})

async function client(): Promise<pg.Client> {
  const made = new pg.Client(pool.options)
  clients.push(made)
  await made.connect()
  return made
}

/** The tables of the first release, in a schema of their own. */
async function firstRelease(schema: string) {
  const { plan, statements } = postgresSchema('reprise_', schema)
  const { marker } = statements.tables
  const [first] = plan.migrations
  for (const statement of [...plan.prepare, ...(first?.statements ?? [])]) await pool.query(statement)
  await pool.query(`INSERT INTO ${plan.versionTable} (number, name, applied_at_ms) VALUES (1, 'first', 0)`)
  return { marker, migrateWithin: (limits: MigrationLimits) => migrateWithin(schema, limits) }
}

async function migrateWithin(schema: string, limits: MigrationLimits) {
  const taken = await pool.connect()
  try {
    const means = { clock: systemClock, random: systemRandom }
    return await migratePostgres(taken, postgresSchema('reprise_', schema), means, limits)
  } finally {
    expect(taken.getTransactionStatus()).toBe('I')
    taken.release()
  }
}

const columns = async (schema: string): Promise<number> => {
  const { rows } = await pool.query(`select 1 from information_schema.columns where table_schema = $1`, [schema])
  return rows.length
}

describe('a migration of a table that an open transaction holds', () => {
  it('lets the work of others through between its tries, and is done when the table is free', async () => {
    const { marker } = await firstRelease('busy')
    const [holder, worker, raw] = [await client(), await client(), await client()]
    const claim = (to: pg.Client, id: string) =>
      to.query(`INSERT INTO ${marker} (id, claimed_at_ms) VALUES ($1, 5)`, [id])
    await holder.query('BEGIN')
    await claim(holder, 'held')
    await worker.query("SET lock_timeout = '5s'")
    let done = false
    const migrated = postgres({ pool, name: 'busy', schema: 'busy' })
      .migrate()
      .finally(() => {
        done = true
      })
    for (const id of ['after the first try', 'after the second try']) {
      await untilWaiting(raw)
      await claim(worker, id)
    }
    expect(done).toBe(false)
    await holder.query('COMMIT')
    expect(await migrated).toEqual({ from: 1, to: newest })
    expect((await pool.query(`SELECT id FROM ${marker} WHERE state = 'succeeded'`)).rows).toHaveLength(3)
  })

  it('gives up in the end, says which table was held, and leaves everything as it was', async () => {
    const { marker, migrateWithin } = await firstRelease('held')
    const holder = await client()
    await holder.query(`BEGIN; LOCK TABLE ${marker} IN ROW EXCLUSIVE MODE`)
    const before = await columns('held')
    await expect(migrateWithin({ lockMs: 60, tries: 3, pauseMs: 20 })).rejects.toMatchObject({
      code: 'MIGRATION_BLOCKED',
      message: expect.stringContaining('held.reprise_marker'),
      details: { relation: 'held.reprise_marker', tries: 3, lockMs: 60 },
      cause: { code: '55P03' },
    })
    expect(await columns('held')).toBe(before)
    await holder.query('ROLLBACK')
    expect(await migrateWithin({})).toEqual({ from: 1, to: newest })
  })

  it('does not take another process that migrates for a table', async () => {
    const { migrateWithin } = await firstRelease('turn')
    const holder = await client()
    await holder.query("select pg_advisory_lock(hashtextextended('reprise:turn.reprise_', 0))")
    const refused = migrateWithin({ turnMs: 60 })
    await expect(refused).rejects.toMatchObject({ code: 'MIGRATION_BLOCKED', details: { turnMs: 60 } })
    const patient = codeOf(migrateWithin({ turnMs: 20_000, lockMs: 20 }))
    await untilWaiting(holder)
    await holder.query('select pg_advisory_unlock_all(), pg_sleep(0.1)')
    expect(await patient).toBe('no error')
  })
})
