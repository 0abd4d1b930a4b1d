// Databases as released versions left them, each with what today's code must make of its records. The files are written
// down once, and never made anew by code.

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Libsql from 'libsql'
import pg from 'pg'
import { inject } from 'vitest'
import type { Finding } from '../../../src/atomicity/index.js'
import type { Operations } from '../../../src/idempotency/index.js'
import { type Key, type Scope, scope } from '../../../src/identity/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { type SqliteHandle, sqlite } from '../../../src/stores/sqlite/index.js'
import type { ConformanceHandle } from '../../../src/testing/index.js'
import type { Domain } from '../../../src/transaction/index.js'
import { createDatabase } from '../../servers/fresh-database.js'

/** What today's code must make of a record. */
type Outcome =
  | { readonly succeeded: unknown }
  | { readonly failed: { readonly code: string; readonly data: unknown } }
  | { readonly refused: string }
  /** It is carried out anew, and why. */
  | { readonly runs: string }
  /** It is asked what happened, and why. */
  | { readonly asked: string }

/** A record of a fixture. */
export interface FixtureRecord {
  /** Undefined: a transaction with a key. */
  readonly operation?: string
  readonly key: Key
  /** Its name, where it does not follow from an operation's. */
  readonly id?: string
  readonly outcome: Outcome
}

/** What a fixture holds. */
export interface Fixture {
  readonly scope: Scope
  readonly records: readonly FixtureRecord[]
}

export type Engine = 'postgres' | 'sqlite'
export const engines: readonly Engine[] = ['postgres', 'sqlite']

const pathOf = (name: string): string => fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url))

/** Whether a format has its fixture: what is in it, and the database of each engine. */
export function hasFixture(format: number): boolean {
  return [`${format}.json`, ...engines.map((engine) => `${format}.${engine}.sql`)].every((end) =>
    existsSync(pathOf(`format-${end}`)),
  )
}

/** The fixture of a format. */
export function fixtureOf(format: number): Fixture {
  const { scope: parts, records } = JSON.parse(readFileSync(pathOf(`format-${format}.json`), 'utf8'))
  return { scope: scope(...(parts as [string, ...string[]])), records }
}

/** A store on such a database, and a way past it. */
export interface Opened {
  readonly db: Domain<ConformanceHandle> &
    Operations<ConformanceHandle> & { migrate(): Promise<unknown>; doctor(): Promise<readonly Finding[]> }
  /** Runs a statement past the store; its rows. */
  raw(text: string): Promise<readonly Record<string, unknown>[]>
}

/** Opens a database of a format, not migrated yet; it is gone after the work. */
export function withFixture(engine: Engine, format: number, work: (opened: Opened) => Promise<void>): Promise<void> {
  const text = readFileSync(pathOf(`format-${format}.${engine}.sql`), 'utf8')
  return engine === 'postgres' ? onPostgres(text, work) : onSqlite(text, work)
}

async function onPostgres(text: string, work: (opened: Opened) => Promise<void>): Promise<void> {
  const database = await createDatabase(inject('postgresUrl'))
  const pool = new pg.Pool({ connectionString: database.url })
  try {
    await pool.query(text)
    await work({ db: postgres({ pool, name: 'old' }), raw: async (statement) => (await pool.query(statement)).rows })
  } finally {
    await pool.end()
    await database.drop()
  }
}

async function onSqlite(text: string, work: (opened: Opened) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-formats-'))
  const file = join(folder, 'store.db')
  const stranger = new Libsql(file)
  const db = sqlite({ name: 'old', open: () => new Libsql(file) as unknown as SqliteHandle })
  try {
    stranger.exec(text)
    const raw = async (statement: string): Promise<Record<string, unknown>[]> => {
      if (/^select/i.test(statement)) return stranger.prepare(statement).all([]) as Record<string, unknown>[]
      stranger.exec(statement)
      return []
    }
    await work({ db, raw })
  } finally {
    await db.close()
    stranger.close()
    rmSync(folder, { recursive: true })
  }
}
