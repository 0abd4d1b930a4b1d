// The store of the service: actions, keys and outbox together, since they commit together. A file of SQLite, or a
// database of PostgreSQL.

import pg from 'pg'
import type { Emits, Rows } from 'reprise/atomicity'
import type { RouteDomain } from 'reprise/http/core'
import type { RelayDomain } from 'reprise/messaging'
import { postgres } from 'reprise/stores/postgres'
import { sqlite } from 'reprise/stores/sqlite'
import type { AnyTransactOptions } from 'reprise/transaction'

/** An open transaction, of either store. */
export interface Transaction extends Emits, Pick<Rows, 'insertOnce'> {
  query<Row>(text: string, values?: readonly unknown[]): Promise<{ rows: Row[] }>
}

/** How long a transaction may take, and how strictly it is kept apart from others. */
export type TransactOptions = Pick<AnyTransactOptions, 'deadline' | 'bodyLimit' | 'lockWait' | 'isolation'>

/** An open store. */
export interface Store {
  readonly db: {
    migrate(): Promise<unknown>
    transact<Result>(body: (tx: Transaction) => Promise<Result>, options?: TransactOptions): Promise<Result>
  } & RouteDomain<Transaction> &
    RelayDomain
  /** How the store spells the n-th value of a statement. */
  placeholder(n: number): string
  close(): Promise<void>
}

// A body of a transaction that calls somebody else over HTTP does not commit: what it sends could not be taken back.
const common = { name: 'enforcement', effects: 'poison' } as const

/** Opens a store: `sqlite:FILE`, or `postgres://user@host:port/database`, with `?schema=…` in another one than public. */
export function openStore(database: string): Store {
  if (database.startsWith('sqlite:')) {
    const db = sqlite({ ...common, file: database.slice('sqlite:'.length) })
    return { db, placeholder: () => '?', close: () => db.close() }
  }
  const url = new URL(database)
  const schema = url.searchParams.get('schema') ?? 'public'
  url.searchParams.delete('schema')
  const pool = new pg.Pool({ connectionString: url.href, options: `-c search_path=${schema}`, max: 8 })
  pool.on('error', () => undefined) // an idle connection broke; the next one is made when it is needed
  const db = postgres({ ...common, pool, schema })
  const close = async (): Promise<void> => {
    await db.close()
    await pool.end()
  }
  return { db, placeholder: (n) => `$${n}`, close }
}
