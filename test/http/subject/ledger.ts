// The database of a subject: a ledger of effects and a table of versions, in PostgreSQL or in a file of SQLite.

import Database from 'libsql'
import pg from 'pg'
import type { Rows, TransactionControls } from '../../../src/atomicity/index.js'
import type { RouteDomain } from '../../../src/http/core/index.js'
import type { RecordStore } from '../../../src/idempotency/index.js'
import { type Duration, defined } from '../../../src/kernel/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { type SqliteHandle, sqlite } from '../../../src/stores/sqlite/index.js'

/** What a handler works with, in either database. */
export interface SubjectTransaction extends TransactionControls, Rows {
  query<Row>(text: string, values?: readonly unknown[]): Promise<{ readonly rows: Row[]; readonly rowCount: number }>
}

/** A domain that routes of the subject can use. */
export type SubjectDomain = RouteDomain<SubjectTransaction> & RecordStore

/** A database of a subject. */
export interface Ledger {
  readonly db: SubjectDomain
  /** How many effects a user has, as committed. */
  effects(user: string): Promise<number>
  close(): Promise<void>
}

const tables = [
  'create table if not exists subject_effects (id text primary key, owner text not null, amount bigint not null)',
  'create table if not exists subject_versions (id text primary key, version integer not null)',
]

/** How a ledger differs from the usual. */
export interface LedgerOptions {
  /** How long one run of a handler may take. Default: as the domain says. */
  readonly bodyLimit?: string
  /** How long a whole call may take. Default: as the domain says. */
  readonly deadline?: string
}

// For what comes before and after the requests: their limits are none of its business.
const patient = { deadline: '120s', bodyLimit: '60s', connectionWait: '60s', lockWait: '60s' } as const

// On a machine that is busy with many tests a first connection, or the turn of a writer, takes its time.
const busyWait = '30s'

type Limits = { readonly bodyLimit?: Duration; readonly deadline?: Duration }

/** Opens the database at an address: `sqlite:<file>` or `postgres://…`. Makes its tables where they are missing. */
export async function openLedger(databaseUrl: string, { bodyLimit, deadline }: LedgerOptions = {}): Promise<Ledger> {
  const limits = defined({ bodyLimit, deadline }) as Limits
  return databaseUrl.startsWith('sqlite:')
    ? openSqlite(databaseUrl.slice('sqlite:'.length), limits)
    : openPostgres(databaseUrl, limits)
}

async function openSqlite(file: string, limits: Limits): Promise<Ledger> {
  const open = (): SqliteHandle => new Database(file) as unknown as SqliteHandle
  const db = sqlite({ ...limits, name: 'subject', open, connectionWait: busyWait })
  await db.migrate()
  await db.transact(async (tx) => {
    for (const table of tables) await tx.query(table)
  }, patient)
  const read = 'select count(*) as n from subject_effects where owner = ?'
  return {
    db: db as unknown as SubjectDomain,
    effects: async (user) => {
      const { rows } = await db.transact((tx) => tx.query<{ n: number }>(read, [user]), { ...patient, readOnly: true })
      return Number(rows[0]?.n)
    },
    close: () => db.close(),
  }
}

async function openPostgres(url: string, limits: Limits): Promise<Ledger> {
  const pool = new pg.Pool({ connectionString: url, max: 20 })
  pool.on('error', () => undefined)
  const db = postgres({ ...limits, pool, name: 'subject', connectionWait: busyWait })
  await db.migrate()
  // Two processes that start at once must not both make them.
  await db.transact(async (tx) => {
    await tx.query('select pg_advisory_xact_lock(4711)')
    for (const table of tables) await tx.query(table)
  }, patient)
  return {
    db: db as unknown as SubjectDomain,
    effects: async (user) => {
      const read = 'select count(*) as n from subject_effects where owner = $1'
      return Number((await pool.query<{ n: string }>(read, [user])).rows[0]?.n)
    },
    close: async () => {
      await db.close()
      await pool.end()
    },
  }
}
