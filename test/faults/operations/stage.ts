// The set-up for operations under faults: both stores, the receiver outside, other processes, and this process, which
// continues what they leave.

import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'libsql'
import pg from 'pg'
import { afterAll } from 'vitest'
import type { StoredRecord } from '../../../src/atomicity/index.js'
import { operationId } from '../../../src/idempotency/index.js'
import { type Key, mintKey } from '../../../src/identity/index.js'
import { postgres } from '../../../src/stores/postgres/index.js'
import { sqlite } from '../../../src/stores/sqlite/index.js'
import type { LedgerEffect } from '../../../src/testing/index.js'
import { bundleInto } from '../../bundle.js'
import { createDatabase } from '../../servers/fresh-database.js'
import {
  type Defined,
  type Definition,
  define,
  type OperationName,
  type Order,
  type Store,
  storedName,
  tests,
} from './definitions.js'
import type { Ended, OperateArguments } from './processes/operates.js'
import { openSink, type Sink } from './sink.js'

/** How long a claim lives in these tests, in ms: long enough for a busy machine, short enough to wait for its end. */
const leaseMs = 1_000

/** The stores. */
export const storeNames = ['PostgreSQL', 'SQLite'] as const

/** The name of a store. */
export type StoreName = (typeof storeNames)[number]

/** A store on the stage, as this process sees it. */
export interface StagedStore {
  readonly name: StoreName
  /** What another process is told of it. */
  readonly address: OperateArguments['store']
  readonly db: Store
  /** The operation of an intent in this process. */
  operationOf(tried: Tried): Defined[OperationName]
  /** All rows of the ledger, by the back door. */
  ledger(): Promise<LedgerEffect[]>
}

/** An intent that is being tried. */
export interface Tried extends Order {
  readonly operation: OperationName
  /** What the name of its operation ends with. */
  readonly suffix: string
}

/** Another process at work. */
export interface Running {
  readonly child: ChildProcess
  readonly said: { stderr: string }
  readonly end: Promise<Finished>
}

/** How another process ended. */
interface Finished {
  readonly signal: string | null
  readonly stderr: string
  readonly ended: readonly Ended[]
}

/** What another process is to do. */
interface Task
  extends Partial<Pick<OperateArguments, 'way' | 'calls' | 'losesCommit' | 'clockStandsStill' | 'leaseMs' | 'store'>> {
  readonly fault?: { readonly REPRISE_FAULT: string }
}

/** The stage. */
export interface Stage {
  readonly sink: Sink
  readonly stores: Readonly<Record<StoreName, StagedStore>>
  /** Lets another process call the operation. */
  run(store: StagedStore, tried: Tried, task?: Task): Running
}

/** A new intent. */
export function wanted(operation: OperationName): Tried {
  const intent = randomUUID()
  return { operation, suffix: intent.slice(0, 18), intent, key: mintKey() as Key }
}

/** The record of an intent, as it is committed. */
export async function recordOf(
  { db }: StagedStore,
  { operation, suffix, key }: Tried,
): Promise<StoredRecord | undefined> {
  const id = operationId(storedName(operation, suffix), tests, key)
  return (await db.records.read(id, { deadline: { expiresAtMs: performance.now() + 60_000 } })).record
}

/** The state of a process, by /proc: `T` is stopped. */
export function stateOf({ child }: Running): string | undefined {
  return /State:\s+(\w)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]
}

/**
 * Sets the stage; it is taken down after the tests of the file. `ownLeaseMs`: how long claims of the test's own process
 * live, where nobody waits for their end.
 */
export async function openStage(serverUrl: string, ownLeaseMs: number = leaseMs): Promise<Stage> {
  const bundle = fileURLToPath(new URL(`../../../.cache/operation-processes-${randomUUID()}`, import.meta.url))
  const script = fileURLToPath(new URL('./processes/operates.ts', import.meta.url))
  await bundleInto(bundle, { operates: script }, { packages: 'external' })
  const sink = await openSink()
  const [inPostgres, inSqlite] = await Promise.all([
    stagePostgres(serverUrl, sink, ownLeaseMs),
    stageSqlite(sink, ownLeaseMs),
  ])
  const children = new Set<ChildProcess>()
  afterAll(async () => {
    for (const child of children) child.kill('SIGKILL')
    await Promise.all([inPostgres.close(), inSqlite.close(), sink.close()])
    rmSync(bundle, { recursive: true, force: true })
  })
  return {
    sink,
    stores: { PostgreSQL: inPostgres, SQLite: inSqlite },
    run({ address }, { operation, suffix, intent, key }, task = {}) {
      const { fault = { REPRISE_FAULT: '' }, ...rest } = task
      const usual = {
        store: address,
        way: 'plain',
        calls: 1,
        losesCommit: false,
        clockStandsStill: false,
        leaseMs,
      } as const
      const told: OperateArguments = { ...usual, ...rest, operation, suffix, intent, key, sink: sink.url }
      const args = [join(bundle, 'operates.js'), JSON.stringify(told)]
      const child = spawn(process.execPath, args, { env: { ...process.env, ...fault } })
      children.add(child)
      return watch(child, () => children.delete(child))
    },
  }
}

function watch(child: ChildProcess, onEnd: () => void): Running {
  const said = { stdout: '', stderr: '' }
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream]?.setEncoding('utf8').on('data', (chunk: string) => {
      said[stream] += chunk
    })
  }
  const end = new Promise<Finished>((resolve) => {
    child.on('close', (_code, signal) => {
      onEnd()
      const ended = said.stdout.split('\n').filter(Boolean)
      resolve({ signal, stderr: said.stderr, ended: ended.map((line) => JSON.parse(line) as Ended) })
    })
  })
  return { child, said, end }
}

const limits = { deadline: '60s', connectionWait: '30s', bodyLimit: '30s', lockWait: '20s' } as const
const ledgerTable = 'create table ledger (intent text not null, part text not null, result text not null)'
const readLedger = 'select intent, part, result from ledger'

/** The operations of each suffix, defined when they are first asked for. */
function definedOnce(store: Store, definition: Omit<Definition, 'suffix'>): StagedStore['operationOf'] {
  const known = new Map<string, Defined>()
  return ({ suffix, operation }) => {
    const defined = known.get(suffix) ?? define(store, { ...definition, suffix })
    known.set(suffix, defined)
    return defined[operation]
  }
}

type Closing = { close(): Promise<void> }

async function stagePostgres(
  serverUrl: string,
  { url: sink }: Sink,
  ownLeaseMs: number,
): Promise<StagedStore & Closing> {
  const database = await createDatabase(serverUrl)
  const pool = new pg.Pool({ connectionString: database.url, max: 20 })
  pool.on('error', () => undefined)
  const db = postgres({ pool, name: 'stage', ...limits })
  await db.migrate()
  await pool.query(ledgerTable)
  const store = db as never as Store
  return {
    name: 'PostgreSQL',
    address: { postgres: database.url },
    db: store,
    operationOf: definedOnce(store, { sink, leaseMs: ownLeaseMs, placeholders: ['$1', '$2', '$3'] }),
    ledger: async () => (await pool.query<LedgerEffect>(readLedger)).rows,
    async close() {
      await pool.end()
      await database.drop()
    },
  }
}

async function stageSqlite({ url: sink }: Sink, ownLeaseMs: number): Promise<StagedStore & Closing> {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-operations-'))
  const file = join(folder, 'stage.db')
  const db = sqlite({ name: 'stage', open: () => new Database(file) as never, ...limits })
  await db.migrate()
  const raw = new Database(file)
  raw.exec(ledgerTable)
  const store = db as never as Store
  return {
    name: 'SQLite',
    address: { sqlite: file },
    db: store,
    operationOf: definedOnce(store, { sink, leaseMs: ownLeaseMs, placeholders: ['?', '?', '?'] }),
    ledger: async () => raw.prepare(readLedger).all([]) as LedgerEffect[],
    async close() {
      raw.close()
      await db.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Hands out pieces of work to a few at a time; all have ended before the first failure is told. */
export async function atOnce<Item>(
  most: number,
  items: readonly Item[],
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const left = items.values()
  const worker = async (): Promise<void> => {
    for (const item of left) await work(item)
  }
  const ends = await Promise.allSettled(Array.from({ length: most }, worker))
  const failed = ends.find((end) => end.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}
