// Lanes: parallel connections to one database, each through its own proxy, so that a fault hits the transaction it is
// meant for.

import { randomUUID } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import pg from 'pg'
import { afterAll } from 'vitest'
import { type Key, mintKey, type Scope, scope } from '../../src/identity/index.js'
import { type PostgresDomain, type PostgresTransaction, postgres } from '../../src/stores/postgres/index.js'
import { type TransactionResolvedEvent, transactionResolved } from '../../src/telemetry/index.js'
import {
  type CallVerdict,
  type IntentRecord,
  type LedgerEffect,
  type PostgresProxy,
  postgresProxy,
} from '../../src/testing/index.js'
import { type Domain, type TransactionDefaults, UnknownCommitError } from '../../src/transaction/index.js'
import { createDatabase } from '../servers/fresh-database.js'

/** Who shares keys in these tests. */
export const tests: Scope = scope('tests')

/** The parts of the effect of one intent: two statements, so that an effect that is torn would show. */
export const parts: readonly string[] = ['debit', 'credit']

/** What a body's handle must be able to do here. */
type Handle = Pick<PostgresTransaction<pg.PoolClient>, 'query'>

/** A way to the database. */
export interface Lane {
  readonly name: string
  readonly proxy: PostgresProxy
  readonly pool: pg.Pool
  readonly db: PostgresDomain<pg.PoolClient>
  /** The intent that is being worked on. */
  intent: string
  /** What the runner found when it resolved a commit of this lane, in order, since the last intent began. */
  resolved: TransactionResolvedEvent[]
}

/** A database with a ledger that only bodies write to, and lanes to it. */
export interface Lanes {
  readonly url: string
  /** The back door. */
  readonly raw: pg.Client
  readonly lanes: readonly Lane[]
  /** Everything the ledger holds. */
  ledger(): Promise<LedgerEffect[]>
}

/** Where a lane ends: at the server, or at a pooler before it. */
type LaneEnd = { readonly host: string; readonly port: number }

/**
 * Opens lanes to a new database of a server, through a pooler if one is given. They are closed after the tests of the
 * file.
 */
export async function openLanes(
  serverUrl: string,
  count: number,
  defaults: TransactionDefaults = {},
  pooler?: LaneEnd,
): Promise<Lanes> {
  const database = await createDatabase(serverUrl)
  const raw = new pg.Client({ connectionString: database.url, application_name: 'back door' })
  raw.on('error', () => undefined)
  await raw.connect()
  await raw.query('create table ledger (intent text not null, part text not null, result text not null)')
  const lanes = await Promise.all(
    Array.from({ length: count }, (_, index) => openLane(database.url, `lane ${index + 1}`, defaults, pooler)),
  )
  const [first] = lanes
  if (first !== undefined) await postgres({ pool: first.pool, name: 'maker', connectionWait: '60s' }).migrate()
  const onResolved = (message: unknown): void => {
    const event = message as TransactionResolvedEvent
    lanes.find(({ name }) => name === event.domain)?.resolved.push(event)
  }
  subscribe(transactionResolved.name, onResolved)
  afterAll(async () => {
    unsubscribe(transactionResolved.name, onResolved)
    await Promise.all(lanes.map(({ proxy }) => proxy.close()))
    await Promise.all(lanes.map(({ pool }) => pool.end()))
    await raw.end()
    await database.drop()
  })
  const ledger = async () => (await raw.query<LedgerEffect>('select intent, part, result from ledger')).rows
  return { url: database.url, raw, lanes, ledger }
}

async function openLane(url: string, name: string, defaults: TransactionDefaults, pooler?: LaneEnd): Promise<Lane> {
  const { hostname, port, username, pathname } = new URL(url)
  const { host, port: endPort } = pooler ?? { host: hostname, port: Number(port) }
  const proxy = await postgresProxy({ upstream: { host, port: endPort } })
  const pool = new pg.Pool({
    host: proxy.host,
    port: proxy.port,
    user: username,
    database: pathname.slice(1),
    application_name: name,
    max: 3,
  })
  return { name, proxy, pool, db: postgres({ pool, name, ...defaults }), intent: '', resolved: [] }
}

/** The body of every intent: its whole effect are its rows in the ledger, and its result is written beside them. */
export function effectOf(intent: string): (tx: Handle) => Promise<string> {
  return async (tx) => {
    const result = randomUUID()
    for (const part of parts)
      await tx.query('insert into ledger (intent, part, result) values ($1, $2, $3)', [intent, part, result])
    return result
  }
}

/** An intent under way: what its calls were told. */
export class Tried implements IntentRecord {
  readonly id: string = randomUUID()
  readonly minted: Key = mintKey()
  readonly verdicts: CallVerdict[] = []
  readonly results: string[] = []
  readonly errors: unknown[] = []
  readonly keyed: boolean

  constructor(lane: Lane, keyed: boolean) {
    this.keyed = keyed
    lane.intent = this.id
    lane.resolved = []
  }

  /** The one who compares needs to know the key, where there is one. */
  record(): IntentRecord {
    const { id, verdicts, results } = this
    return this.keyed ? { id, key: this.minted, verdicts, results } : { id, verdicts, results }
  }

  /** The last thing a caller was told. */
  get last(): CallVerdict {
    return this.verdicts.at(-1) ?? 'unknown'
  }

  /** The last error. */
  get error(): unknown {
    return this.errors.at(-1)
  }

  /** Calls once, with the key if it has one. */
  async call(
    db: Domain<PostgresTransaction<pg.PoolClient>>,
    deadline: `${number}s`,
    limits: CallLimits = {},
    body: (tx: PostgresTransaction<pg.PoolClient>) => Promise<string> = effectOf(this.id),
  ): Promise<CallVerdict> {
    const key = { scope: tests, key: this.minted }
    try {
      this.results.push(
        await db.transact(body, {
          ...(this.keyed ? { key, content: { value: this.id } } : {}),
          deadline,
          ...limits,
        }),
      )
      this.verdicts.push('committed')
    } catch (error) {
      this.errors.push(error)
      this.verdicts.push(error instanceof UnknownCommitError ? 'unknown' : 'aborted')
    }
    return this.last
  }

  /** Calls with limits that nothing comes to, however busy the machine is: what is not cut has to succeed. */
  settle(
    db: Domain<PostgresTransaction<pg.PoolClient>>,
    body?: (tx: PostgresTransaction<pg.PoolClient>) => Promise<string>,
  ): Promise<CallVerdict> {
    return this.call(db, '120s', { bodyLimit: '60s', connectionWait: '30s', lockWait: '30s' }, body)
  }
}

type CallLimits = Pick<TransactionDefaults, 'bodyLimit' | 'connectionWait' | 'lockWait'>

/** Hands out pieces of work to lanes: each takes the next one when it is through with the last. */
export async function inLanes<Item extends object>(
  lanes: readonly Lane[],
  items: readonly Item[],
  work: (lane: Lane, item: Item) => Promise<void>,
): Promise<void> {
  const left = [...items].reverse()
  const works = async (lane: Lane): Promise<void> => {
    try {
      for (let item = left.pop(); item !== undefined; item = left.pop()) await work(lane, item)
    } catch (error) {
      left.length = 0
      throw error
    }
  }
  // All have ended before the first failure is told: what still runs would disturb the next test.
  const ends = await Promise.allSettled(lanes.map(works))
  const failed = ends.find((end) => end.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}

/** Lines of a table, each column as wide as its widest cell. */
export function table(head: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const all = [head, ...rows].map((row) => row.map(String))
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)))
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
