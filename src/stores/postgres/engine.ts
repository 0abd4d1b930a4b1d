// PostgreSQL as an engine: sessions out of a pool, what errors mean, and what became of a transaction.

import { type AcquireLimits, type Engine, type MessageOptions, Outbox, type Records } from '../../atomicity/index.js'
import type { Pepper } from '../../identity/index.js'
import { type Clock, detached, RepriseError } from '../../kernel/index.js'
import type { MessageStore, SeenStore } from '../../messaging/index.js'
import { EmitStatements, postgresDialect, SqlRecords, SqlSeen, sqlMessages } from '../sql/index.js'
import { LockReports } from './asking/lock-report.js'
import { resolveTrace } from './asking/resolve.js'
import { classifyPostgres } from './classification.js'
import { AmbientTransactions } from './connection/ambient.js'
import type { Connections } from './connection/connections.js'
import type { Notifications } from './connection/notifications.js'
import { type Bind, PostgresHandle, type PostgresTransaction } from './handle.js'
import { postgresManifest, untracedManifest } from './manifest.js'
import type { PostgresSchema } from './migrations.js'
import type { PostgresPool } from './options.js'
import { KeyStatements } from './records/key-statements.js'
import { StatementRunner } from './records/statement-runner.js'
import { type PostgresSession, type SessionContext, sessionsOn } from './session.js'
import { LockWatches } from './wire.js'

/** What an engine is made of. */
export interface EngineParts<Bound> {
  readonly name: string
  readonly connections: Connections
  readonly schema: PostgresSchema
  readonly clock: Clock
  /** The longest that a call to the records waits for a connection, in ms. Default 1,000. */
  readonly connectionWaitMs?: number
  /** Under which the names of records are; the schema's. Default: none. */
  readonly pepper?: Pepper | undefined
  /** Whether transactions without a key take their trace with BEGIN. Default true. */
  readonly resolvesUnkeyed?: boolean
  /** Makes `tx.db`. */
  readonly bind: Bind<Bound>
  /** How its messages are. Default: all as the options say. */
  readonly messages?: MessageOptions | undefined
  /** Tells other processes of messages, and hears of theirs. Default: nobody does. */
  readonly notifications?: Notifications | undefined
}

/** An engine that keeps records. */
export interface PostgresEngine<Bound> extends Engine<PostgresTransaction<Bound>> {
  readonly records: Records
  readonly seen: SeenStore
  /** The pool, which from now on finds the transactions of the engine by the code that runs in them. */
  ambient<Pool extends PostgresPool>(pool: Pool): Pool
  /** Runs work outside of the transactions that are around it. */
  detached<Result>(work: () => Result): Result
  readonly messages: MessageStore<PostgresTransaction<Bound>>
  acquire(limits: AcquireLimits): Promise<PostgresSession<Bound>>
  /** Refuses from now on, and listens no more. */
  close(): void
}

/** The engine of a PostgreSQL domain. */
export function postgresEngine<Bound>(parts: EngineParts<Bound>): PostgresEngine<Bound> {
  const { name, connections, schema, clock, bind, pepper, connectionWaitMs = 1_000, resolvesUnkeyed = true } = parts
  if (typeof name !== 'string' || name === '') {
    throw new RepriseError('ARGUMENT_INVALID', 'A domain needs a name.')
  }
  const statements = new KeyStatements(schema.statements)
  const watches = new LockWatches(new LockReports(connections, clock), clock)
  const parted = { domain: name, connections, statements: schema.statements, clock, connectionWaitMs }
  const runner = new StatementRunner(parted)
  const outbox = new Outbox(name, parts.messages)
  const ambient: SessionContext<Bound>['ambient'] = { transactions: undefined }
  const emits = new EmitStatements(postgresDialect, schema.named, outbox.source)
  const { reading } = outbox
  const { notifications } = parts
  if (notifications !== undefined) reading.onEmit(notifications.committed)
  const onEmit = (listener: () => void): (() => void) => {
    const ends = [reading.onEmit(listener), notifications?.listen(listener)]
    return () => {
      for (const end of ends) end?.()
    }
  }
  return {
    name,
    ambient(pool) {
      ambient.transactions ??= new AmbientTransactions()
      return ambient.transactions.poolOver(pool)
    },
    detached: (work) => (ambient.transactions === undefined ? detached(work) : ambient.transactions.outside(work)),
    manifest: resolvesUnkeyed ? postgresManifest : untracedManifest,
    acquire: sessionsOn(connections, {
      clock,
      statements,
      outbox,
      emits,
      bind,
      resolvesUnkeyed,
      watches,
      connections,
      ambient,
      keeping: { plans: true },
    }),
    records: new SqlRecords(schema.statements, runner, pepper),
    seen: new SqlSeen(schema.statements, runner, pepper),
    messages: { ...reading, onEmit, ...sqlMessages(postgresDialect, schema.named, runner, PostgresHandle.sendOwn) },
    classify: classifyPostgres,
    close() {
      notifications?.close()
      connections.close()
    },
    async resolve(trace, limits) {
      const beganMs = clock.monotonicMs()
      const client = await connections.take(limits)
      try {
        const outcome = await resolveTrace(client, trace, limits.waitMs - (clock.monotonicMs() - beganMs), clock)
        client.release()
        return outcome
      } catch (error) {
        connections.leave(client)
        throw error
      }
    },
  }
}
