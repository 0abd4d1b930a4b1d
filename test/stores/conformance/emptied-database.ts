// Databases with the tables of Reprise and of the cases. Making one and dropping it takes longer than most cases, so a
// world gives its database back emptied, and the next one gets it.

import pg from 'pg'
import { afterAll } from 'vitest'
import { postgres } from '../../../src/stores/postgres/index.js'
import { createDatabase, type FreshDatabase } from '../../servers/fresh-database.js'
import { withClient } from '../../servers/postgres.js'
import { makeTables } from './tables.js'

const emptied: FreshDatabase[] = []
afterAll(() => Promise.all(emptied.map((database) => database.drop())))

/** A database in which nothing but empty tables is. */
export async function emptyDatabase(serverUrl: string): Promise<FreshDatabase> {
  return emptied.pop() ?? (await newDatabase(serverUrl))
}

async function newDatabase(serverUrl: string): Promise<FreshDatabase> {
  const database = await createDatabase(serverUrl)
  const pool = new pg.Pool({ connectionString: database.url, max: 1 })
  await postgres({ name: 'maker', pool, connectionWait: '60s' }).migrate()
  await pool.query(makeTables)
  await pool.end()
  return database
}

/** Ends whoever is still connected, empties all tables but that of migrations, and keeps the database for the next. */
export async function giveBack(database: FreshDatabase): Promise<void> {
  await withClient(database.url, async (client) => {
    const others = 'from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()'
    await client.query(`select pg_terminate_backend(pid, 60000) ${others}`)
    const { rows } = await client.query<{ names: string }>(
      "select string_agg(quote_ident(tablename), ', ') as names from pg_tables where schemaname = 'public' and tablename <> 'reprise_migration'",
    )
    await client.query(`truncate ${rows[0]?.names}`)
  })
  emptied.push(database)
}
