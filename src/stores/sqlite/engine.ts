// The engine: who gets a connection, and what an error means.

import { type AcquireLimits, type Engine, Outbox, type Phase, type Ruling, ruleBy } from '../../atomicity/index.js'
import { pepperOf } from '../../identity/index.js'
import { type Clock, isPromiseLike, type Random, RepriseError } from '../../kernel/index.js'
import type { MessageStore } from '../../messaging/index.js'
import {
  checkPrefix,
  EmitStatements,
  quoteName,
  RecordStatements,
  SqlRecords,
  SqlSeen,
  sqliteDialect,
  sqlMessages,
} from '../sql/index.js'
import { sqliteClassification } from './classification.js'
import { Connections } from './connection/connections.js'
import { openEmbedded, type SqliteHandle, signsOf } from './connection/driver.js'
import { NotShared } from './connection/not-shared.js'
import type { Bind, SqliteTransaction } from './handle.js'
import { sqliteManifest } from './manifest.js'
import { type SqliteTables, sqliteTables } from './migrations.js'
import type { SqliteOptions } from './options.js'
import { SqliteRecordRunner } from './records/record-runner.js'
import { type SessionContext, SqliteSession } from './session.js'

/** What the engine is made of: the options that concern it, with time and chance filled in. */
export type SqliteEngineOptions<Bound> = Pick<SqliteOptions<Bound>, 'name'> &
  Partial<
    Loose<
      Pick<
        SqliteOptions<Bound>,
        'open' | 'file' | 'prefix' | 'pepper' | 'messages' | 'readers' | 'queue' | 'sharedCommit'
      >
    >
  > & {
    /** Makes what the body works with. Undefined: that is the client. */
    readonly bind: Bind<Bound> | undefined
    readonly clock: Clock
    readonly random: Random
    /** The longest wait for a turn, in ms. Default 1,000. */
    readonly connectionWaitMs?: number
  }

type Loose<Options> = { readonly [Name in keyof Options]: Options[Name] | undefined }

/** A store in one file of SQLite. */
export class SqliteEngine<Bound> implements Engine<SqliteTransaction<Bound>> {
  readonly name: string
  readonly manifest: typeof sqliteManifest = sqliteManifest
  /** The prefix of Reprise's tables. */
  readonly prefix: string
  /** The names of Reprise's tables. */
  readonly tables: SqliteTables
  readonly connections: Connections
  readonly sharesCommit: boolean
  readonly records: SqlRecords
  readonly seen: SqlSeen
  readonly messages: MessageStore<SqliteTransaction<Bound>>
  readonly #notShared = new NotShared()
  readonly #sessions: SessionContext<Bound>

  constructor(options: SqliteEngineOptions<Bound>) {
    const { name, prefix = 'reprise_', readers = 4, queue = 1000, sharedCommit = true } = options
    const { clock, random, connectionWaitMs = 1_000 } = options
    if (typeof name !== 'string' || name === '') throw new RepriseError('ARGUMENT_INVALID', 'A domain needs a name.')
    if (!(Number.isInteger(readers) && readers >= 1 && readers <= 64)) {
      throw new RepriseError('ARGUMENT_INVALID', 'The number of readers must be whole, from 1 to 64.')
    }
    if (typeof sharedCommit !== 'boolean') {
      throw new RepriseError('ARGUMENT_INVALID', 'sharedCommit is true or false.')
    }
    this.sharesCommit = sharedCommit
    this.name = name
    this.prefix = checkPrefix(prefix)
    const pepper = options.pepper === undefined ? undefined : pepperOf(options.pepper)
    this.tables = sqliteTables(prefix, pepper)
    const open = openerOf({ open: options.open, file: options.file })
    const { meta: metaTable } = this.tables
    this.connections = new Connections({ domain: name, open, readers, queue, metaTable, clock, random })
    const statements = new RecordStatements(sqliteDialect, this.tables)
    const { connections, classify } = this
    const parts = { domain: this.name, connections, clock, random, connectionWaitMs, classify }
    const runner = new SqliteRecordRunner(parts)
    this.records = new SqlRecords(statements, runner, pepper)
    this.seen = new SqlSeen(statements, runner, pepper)
    const notShared = this.#notShared
    const outbox = new Outbox(name, options.messages)
    const named = (table: string): string => quoteName(prefix + table)
    const emits = new EmitStatements(sqliteDialect, named, outbox.source)
    this.messages = { ...outbox.reading, ...sqlMessages(sqliteDialect, named, runner) }
    this.#sessions = { bind: options.bind, statements, outbox, emits, clock, random, classify, notShared }
  }

  async acquire(limits: AcquireLimits): Promise<SqliteSession<Bound>> {
    const { shares } = limits
    // Asked when the turn has come: whoever went before may have shown that it is not for sharing.
    const joins = shares === undefined ? undefined : () => !this.#notShared.has(shares.work)
    const taken = await this.connections.take(joins === undefined ? limits : { ...limits, joins })
    return new SqliteSession(taken, this.#sessions, shares)
  }

  acquireAtOnce(limits: AcquireLimits): SqliteSession<Bound> | undefined {
    const taken = this.connections.takeAtOnce(limits)
    return taken === undefined ? undefined : new SqliteSession(taken, this.#sessions, limits.shares)
  }

  classify(error: unknown, phase: Phase): Ruling {
    return ruleBy(sqliteClassification, signsOf(error), phase)
  }
}

// Of all stores in the process: a connection that two of them use is no safer than one that is used twice.
const handedOver = new WeakSet<object>()

function unshared(handle: SqliteHandle): SqliteHandle {
  demandHandle(handle)
  if (handedOver.has(handle)) {
    const message = 'open returned a connection that it has returned before; it must open a new one each time.'
    throw new RepriseError('ARGUMENT_INVALID', message)
  }
  handedOver.add(handle)
  return handle
}

// A factory is the user's: what it returns is looked at before the first statement would fail on it.
function demandHandle(opened: unknown): void {
  const members = Object(opened) as Readonly<Record<string, unknown>>
  const missing = ['prepare', 'exec', 'close'].filter((name) => typeof members[name] !== 'function')
  if (missing.length === 0) return
  // Nobody else waits for it: where it fails it would end the process, and where it does not, a file stays open.
  if (isPromiseLike<unknown>(opened)) Promise.resolve(opened).then(closeIt, () => undefined)
  const message = `open must return an open database, and not a promise of one; what it returned has no ${missing.join(', no ')}.`
  throw new RepriseError('ARGUMENT_INVALID', message, { details: { option: 'open', missing: missing.join(', ') } })
}

function closeIt(opened: unknown): void {
  try {
    ;(opened as Partial<SqliteHandle> | undefined)?.close?.()
  } catch {
    // It was none, or is closed already.
  }
}

function openerOf({ open, file }: Loose<Pick<SqliteOptions, 'open' | 'file'>>): () => SqliteHandle {
  if ((open === undefined) === (file === undefined)) {
    throw new RepriseError('ARGUMENT_INVALID', 'Give either open or file.')
  }
  if (open !== undefined) return () => unshared(open())
  const path = file ?? ''
  if (typeof path !== 'string' || path === '') throw new RepriseError('ARGUMENT_INVALID', 'The file needs a path.')
  return () => openEmbedded(path)
}
