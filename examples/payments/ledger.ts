// The ledger: one table of payments, in the same store as the keys. What is written inside a transaction is committed
// together with its key, or not at all.

import { mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import pg from 'pg'
import type { Emits, TransactionControls } from 'reprise/atomicity'
import type { RouteDomain } from 'reprise/http/core'
import type { RecordStore } from 'reprise/idempotency'
import { sha256 } from 'reprise/kernel'
import type { ConsumerDomain, LetterDomain, RelayDomain, Upkeep } from 'reprise/messaging'
import { postgres } from 'reprise/stores/postgres'
import { sqlite } from 'reprise/stores/sqlite'

import { type Settings, SettingsError } from './settings.js'

/** A payment, as the service shows it. */
export interface Payment {
  readonly id: string
  readonly account: string
  readonly amountMinor: number
  readonly currency: string
  readonly note?: string
  readonly createdAt: string
}

/** What the service needs of a store; both have it. */
interface Store {
  readonly db: RouteDomain<Transaction> &
    RecordStore &
    RelayDomain &
    ConsumerDomain<Transaction> &
    LetterDomain &
    Upkeep & {
      migrate(): Promise<unknown>
      transact<Result>(body: (tx: Transaction) => Promise<Result>, options: { readOnly: boolean }): Promise<Result>
    }
  close(): Promise<void>
}

/** An open transaction, of either store. */
export interface Transaction extends TransactionControls, Emits {
  query<Row>(text: string, values?: readonly unknown[]): Promise<{ rows: Row[]; rowCount: number }>
}

type Row = {
  readonly id: string
  readonly account: string
  readonly amount_minor: number | bigint
  readonly currency: string
  readonly note: string | null
  readonly created_at: string
}

const table = `create table if not exists payment (
  id text primary key,
  owner text not null,
  account text not null,
  amount_minor integer not null,
  currency text not null,
  note text,
  created_at text not null
)`
const index = 'create index if not exists payment_owner on payment (owner, account, created_at)'
// No constraint would stop a second receipt of a payment: what keeps it out is the consumer.
const receiptTable = 'create table if not exists receipt (payment text not null, content text not null)'
const receiptIndex = 'create index if not exists receipt_payment on receipt (payment)'
const columns = 'id, account, amount_minor, currency, note, created_at'
const mostItems = 1_000
const mostReceipts = 100

/** The ledger in its store. */
export class Ledger {
  /** The store, for routes to work in. */
  readonly db: Store['db']
  readonly #isPostgres: boolean
  readonly #close: () => Promise<void>

  constructor(engine: Settings['database']['engine'], { db, close }: Store) {
    this.db = db
    this.#isPostgres = engine === 'postgres'
    this.#close = close
  }

  /** Makes Reprise's tables, then the ledger's own. Two processes may do it at once. */
  async migrate(): Promise<void> {
    await this.db.migrate()
    await this.#transact(async (tx) => {
      // PostgreSQL lets two of them try, and one fails.
      if (this.#isPostgres) await tx.query(`select pg_advisory_xact_lock(hashtext('payment'))`)
      for (const statement of [table, index, receiptTable, receiptIndex]) await tx.query(statement)
    })
  }

  /** Runs a transaction that writes. */
  write<Result>(body: (tx: Transaction) => Promise<Result>): Promise<Result> {
    return this.#transact(body)
  }

  /** Adds a payment, inside a transaction. */
  async add(tx: Transaction, principal: string, payment: Payment): Promise<void> {
    const { id, account, amountMinor, currency, note = null, createdAt } = payment
    const values = [id, ownerOf(principal), account, amountMinor, currency, note, createdAt]
    await tx.query(this.#sql('insert into payment values (?, ?, ?, ?, ?, ?, ?)'), values)
  }

  /** The payments of somebody, oldest first; of one account, where it is named. */
  list(principal: string, account: string | undefined): Promise<Payment[]> {
    const where = account === undefined ? 'owner = ?' : 'owner = ? and account = ?'
    const text = `select ${columns} from payment where ${where} order by created_at, id limit ${mostItems}`
    return this.#read(text, account === undefined ? [ownerOf(principal)] : [ownerOf(principal), account])
  }

  /** One payment of somebody. */
  async find(principal: string, id: string): Promise<Payment | undefined> {
    const [payment] = await this.#read(`select ${columns} from payment where owner = ? and id = ?`, [
      ownerOf(principal),
      id,
    ])
    return payment
  }

  /** Adds the receipt of a payment, inside a transaction. */
  async addReceipt(tx: Transaction, payment: string, content: string): Promise<void> {
    await tx.query(this.#sql('insert into receipt values (?, ?)'), [payment, content])
  }

  /** How many receipts each of the last payments of an account has, the newest first. */
  receipts(principal: string, account: string): Promise<{ payment: string; receipts: number }[]> {
    const written = '(select count(*) from receipt where receipt.payment = payment.id)'
    const text =
      `select id, ${written} as written from payment where owner = ? and account = ? ` +
      `order by created_at desc, id desc limit ${mostReceipts}`
    return this.#transact(async (tx) => {
      const { rows } = await tx.query<{ id: string; written: unknown }>(this.#sql(text), [ownerOf(principal), account])
      return rows.map(({ id, written: count }) => ({ payment: id, receipts: Number(count) }))
    }, true)
  }

  /** How many payments there are, of everybody. */
  count(): Promise<number> {
    return this.#transact(
      async (tx) => Number((await tx.query<{ n: unknown }>('select count(*) as n from payment')).rows[0]?.n),
      true,
    )
  }

  /** Waits for what is at work, and closes. */
  close(): Promise<void> {
    return this.#close()
  }

  #read(text: string, values: readonly unknown[]): Promise<Payment[]> {
    return this.#transact(async (tx) => (await tx.query<Row>(this.#sql(text), values)).rows.map(paymentOf), true)
  }

  #transact<Result>(body: (tx: Transaction) => Promise<Result>, readOnly = false): Promise<Result> {
    return this.db.transact<Result>(body, { readOnly })
  }

  // PostgreSQL numbers its values.
  #sql(text: string): string {
    if (!this.#isPostgres) return text
    let number = 0
    return text.replaceAll('?', () => `$${++number}`)
  }
}

function paymentOf({ id, account, amount_minor, currency, note, created_at }: Row): Payment {
  const payment = { id, account, amountMinor: Number(amount_minor), currency, createdAt: created_at }
  return note === null ? payment : { ...payment, note }
}

/** Whose a payment is. A bearer's token is a credential: the ledger knows its digest only. */
export function ownerOf(principal: string): string {
  return sha256(principal)
}

/** Opens the ledger. Nothing is asked of the store yet. */
export function openLedger(database: Settings['database']): Ledger {
  const opened = database.engine === 'sqlite' ? openSqlite(database.file) : openPostgres(database.url)
  return new Ledger(database.engine, opened)
}

const limits = { deadline: '15s', bodyLimit: '10s', connectionWait: '3s' } as const

function openSqlite(file: string): Store {
  try {
    makeFolder(dirname(resolve(file)))
  } catch {
    throw new SettingsError('DATABASE_URL names a file in a folder that cannot be made.')
  }
  const db = sqlite({ file, name: 'payments', ...limits })
  return { db, close: () => db.close() }
}

// Creates one folder at a time: with `recursive`, Node tries for ever where a file system such as /proc refuses new
// folders with ENOENT.
function makeFolder(folder: string): void {
  if (isFolder(folder)) return
  makeFolder(dirname(folder))
  try {
    mkdirSync(folder)
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!isFolder(folder)) throw error
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

function openPostgres(url: string): Store {
  const pool = new pg.Pool({ connectionString: url, max: 10, connectionTimeoutMillis: 5_000 })
  pool.on('error', () => undefined) // an idle connection broke; the next one is made when it is needed
  const db = postgres({ pool, name: 'payments', ...limits })
  const close = async () => {
    await db.close()
    await pool.end()
  }
  return { db, close }
}
