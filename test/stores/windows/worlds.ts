// Databases for the tests of dedupe windows: each store that is opened has connections of its own, as another process
// would.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Libsql from 'libsql'
import pg from 'pg'
import { inject } from 'vitest'
import type { Finding } from '../../../src/atomicity/index.js'
import type { PepperSecret } from '../../../src/identity/index.js'
import type { WindowStore } from '../../../src/messaging/index.js'
import { type MigrationOptions, postgres } from '../../../src/stores/postgres/index.js'
import { type SqliteHandle, sqlite } from '../../../src/stores/sqlite/index.js'
import { createDatabase } from '../../servers/fresh-database.js'
import { libsqlStack, pgStack } from '../callback/orms.js'

/** A store that can make its tables. */
interface Maker extends WindowStore {
  migrate(options?: MigrationOptions): Promise<unknown>
  doctor(): Promise<readonly Finding[]>
}

/** A database. */
interface WindowWorld {
  /** The store that can migrate the tables. */
  maker(pepper?: PepperSecret): Promise<Maker>
  /** A store on the same tables, as another process has it. */
  open(pepper?: PepperSecret): Promise<WindowStore>
  /** Runs a statement past the stores; its rows. */
  raw(text: string): Promise<readonly Record<string, unknown>[]>
  /** What a process of its own opens it by. */
  readonly place: string
}

// Limits that no machine is too busy for.
const patient = { connectionWait: '60s' } as const
const given = (pepper: PepperSecret | undefined) => (pepper === undefined ? {} : { pepper })

async function onPostgres(isCallback: boolean, work: (world: WindowWorld) => Promise<void>): Promise<void> {
  const database = await createDatabase(inject('postgresUrl'))
  const ends: (() => Promise<unknown>)[] = []
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  const maker = async (pepper?: PepperSecret): Promise<Maker> => {
    const pool = new pg.Pool({ connectionString: database.url, max: 2 })
    ends.push(() => pool.end())
    return postgres({ name: 'shop', pool, ...patient, ...given(pepper) })
  }
  const open = async (pepper?: PepperSecret): Promise<WindowStore> => {
    if (!isCallback) return maker(pepper)
    const stack = pgStack(database.url, { name: 'shop', ...given(pepper) })
    ends.push(() => stack.close())
    return stack.db
  }
  try {
    await work({ maker, open, raw: async (text) => (await client.query(text)).rows, place: database.url })
  } finally {
    for (const end of ends) await end()
    await client.end()
    await database.drop()
  }
}

async function onSqlite(isCallback: boolean, work: (world: WindowWorld) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-windows-'))
  const file = join(folder, 'store.db')
  const raw = new Libsql(file)
  const opened: { close(): Promise<void> }[] = []
  const maker = async (pepper?: PepperSecret): Promise<Maker> => {
    const open = (): SqliteHandle => new Libsql(file) as unknown as SqliteHandle
    const db = sqlite({ name: 'shop', open, ...patient, ...given(pepper) })
    opened.push(db)
    return db
  }
  const open = async (pepper?: PepperSecret): Promise<WindowStore> => {
    if (!isCallback) return maker(pepper)
    const stack = libsqlStack(file, 2, { name: 'shop', ...given(pepper) })
    opened.push(stack.db, stack)
    return stack.db
  }
  const read = async (text: string): Promise<readonly Record<string, unknown>[]> => {
    if (text.startsWith('select')) return raw.prepare(text).all() as Record<string, unknown>[]
    raw.exec(text)
    return []
  }
  try {
    await work({ maker, open, raw: read, place: file })
  } finally {
    for (const one of opened) await one.close()
    raw.close()
    rmSync(folder, { recursive: true })
  }
}

/** A database, as work on it. */
export type InWorld = (work: (world: WindowWorld) => Promise<void>) => Promise<void>

/** Every store that keeps windows in a database. */
export const worlds: readonly (readonly [name: string, inWorld: InWorld])[] = [
  ['PostgreSQL', (work) => onPostgres(false, work)],
  ['SQLite', (work) => onSqlite(false, work)],
  ['PostgreSQL behind a callback', (work) => onPostgres(true, work)],
  ['SQLite behind a callback', (work) => onSqlite(true, work)],
]
