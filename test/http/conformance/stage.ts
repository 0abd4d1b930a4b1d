// Where the controlled HTTP cases are played: a store of each kind, processes on it that can be killed and stopped, and
// clients for them.

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'libsql'
import pg from 'pg'
import { afterAll } from 'vitest'
import {
  type HttpCaseClient,
  httpCaseClient,
  type SubjectAnswer,
  type SubjectUser,
} from '../../../src/testing/index.js'
import { bundleInto } from '../../bundle.js'
import { createDatabase } from '../../servers/fresh-database.js'
import { type Ledger, openLedger } from '../subject/ledger.js'
import { type Serving, serving } from '../subject/serving.js'
import { type AdapterName, adapterNames } from '../subject/subject.js'
import type { ServeArguments } from './processes/serves.js'

/** The kinds of stores. */
export const storeNames = ['SQLite', 'PostgreSQL'] as const

/** The name of a kind of store. */
export type StoreName = (typeof storeNames)[number]

/**
 * The store on which an adapter plays what takes long: the stores in turn. With REPRISE_LONG, which
 * `npm run test:matrix -- long` sets, the other one.
 */
export function storeInTurn(adapter: AdapterName): StoreName {
  return storeNames[(adapterNames.indexOf(adapter) + (isLong ? 1 : 0)) % 2] as StoreName
}

/** Whether this run plays what `npm test` leaves out. */
const isLong = process.env['REPRISE_LONG'] !== undefined

/** Says who plays the columns that this run leaves out; nothing where it leaves out none. */
export function sayWhatIsLeft(left: readonly string[]): void {
  if (left.length > 0) console.log(`left to npm ${isLong ? 'test' : 'run test:matrix -- long'}: ${left.join(', ')}`)
}

/** What a stage is for. */
export interface PlayedOn {
  readonly adapter: AdapterName
  readonly store: StoreName
  /** The server on which a stage on PostgreSQL makes its database. */
  readonly postgresUrl: string
}

/** A store, and processes on it. */
export interface Stage {
  readonly store: StoreName
  readonly database: string
  /** The same store, seen from the test. */
  readonly ledger: Ledger
  start(told?: Partial<ServeArguments>, environment?: NodeJS.ProcessEnv): Promise<Serving>
  /** A client for these processes. */
  client(...processes: readonly Serving[]): HttpCaseClient
  /** Locks all records from outside; the result lets go. */
  lock(): Promise<() => Promise<void>>
  /** Every row of the tables of Reprise, as text. */
  atRest(): Promise<string>
  /** Ends all processes, and removes the store. */
  close(): Promise<void>
}

/** Bundles the program, once for a test file. */
export async function bundled(): Promise<string> {
  const folder = fileURLToPath(new URL(`../../../.cache/http-serves-${process.pid}`, import.meta.url))
  const serves = fileURLToPath(new URL('./processes/serves.ts', import.meta.url))
  await bundleInto(folder, { serves }, { packages: 'external' })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'serves.js')
}

/**
 * Opens a stage: a store of its own, in a file or on the given server of PostgreSQL, and processes that serve it by an
 * adapter.
 */
export async function openStage(program: string, played: PlayedOn): Promise<Stage> {
  const { adapter, store, postgresUrl } = played
  const folder = mkdtempSync(join(tmpdir(), 'reprise-http-'))
  const fresh = store === 'SQLite' ? undefined : await createDatabase(postgresUrl)
  const database = fresh?.url ?? `sqlite:${join(folder, 'store.db')}`
  const ledger = await openLedger(database)
  const running = new Set<Serving>()
  return {
    store,
    database,
    ledger,
    async start(told = {}, environment = {}) {
      const words = JSON.stringify({ adapter, database, sink: join(folder, 'sink'), ...told } satisfies ServeArguments)
      const child = spawn(process.execPath, [program, words], { env: { ...process.env, ...environment } })
      const started = await serving(child)
      running.add(started)
      child.once('exit', () => running.delete(started))
      return started
    },
    client: (...processes) => httpCaseClient({ urls: processes.map(({ url }) => url), limitMs: 120_000 }),
    lock: () => (store === 'SQLite' ? lockFile(database.slice('sqlite:'.length)) : lockTables(database)),
    atRest: () => (store === 'SQLite' ? rowsOfFile(database.slice('sqlite:'.length)) : rowsOfTables(database)),
    async close() {
      await Promise.all([...running].map((one) => one.kill()))
      await ledger.close()
      await fresh?.drop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function lockFile(file: string): Promise<() => Promise<void>> {
  const db = new Database(file)
  db.exec('pragma busy_timeout = 5000')
  db.exec('begin immediate')
  return async () => {
    db.exec('rollback')
    db.close()
  }
}

async function lockTables(url: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('begin')
  await client.query('lock table reprise_marker in access exclusive mode')
  return async () => {
    await client.query('rollback')
    await client.end()
  }
}

async function rowsOfFile(file: string): Promise<string> {
  const db = new Database(file)
  try {
    const names = db.prepare("select name from sqlite_master where type = 'table' and name like 'reprise%'").all([])
    return (names as { name: string }[])
      .map(({ name }) => JSON.stringify(db.prepare(`select * from ${name}`).all([])))
      .join('\n')
  } finally {
    db.close()
  }
}

async function rowsOfTables(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{ tablename: string }>(
      "select tablename from pg_tables where tablename like 'reprise%'",
    )
    const texts: string[] = []
    for (const { tablename } of rows)
      texts.push(JSON.stringify((await client.query(`select * from ${tablename}`)).rows))
    return texts.join('\n')
  } finally {
    await client.end()
  }
}

/** Sends until the answer is a success, as a patient client does; every answer on the way is kept. */
export async function insist(
  user: SubjectUser,
  send: () => Promise<SubjectAnswer>,
  limitMs = 120_000,
): Promise<{ readonly last: SubjectAnswer; readonly before: readonly SubjectAnswer[] }> {
  const endMs = performance.now() + limitMs
  const before: SubjectAnswer[] = []
  for (;;) {
    const last = await send()
    if (last.status === 201) return { last, before }
    before.push(last)
    if (performance.now() > endMs)
      throw new Error(`${user.name} insisted in vain: ${before.map(({ status }) => status)}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
