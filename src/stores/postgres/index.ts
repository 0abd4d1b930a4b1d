// PostgreSQL: a domain on a pool of the `pg` package that the user passes in.

import type { Finding } from '../../atomicity/index.js'
import { type Operations, operationsOf } from '../../idempotency/index.js'
import { pepperOf } from '../../identity/index.js'
import { demandKnown, durationMs, inTime, type RepriseError, systemClock, systemRandom } from '../../kernel/index.js'
import { type MessageDomain, type Upkeep, upkeepOf, type WindowStore } from '../../messaging/index.js'
import { type Sequences, sequencesOf } from '../../sequence/index.js'
import {
  budgetFindings,
  type Domain,
  domainOf,
  refuseInside,
  transactionDefaultNames,
} from '../../transaction/index.js'
import {
  type MigrationOptions,
  type MigrationResult,
  postgresDialect,
  postgresPatience,
  sqlSequences,
  tooLate,
} from '../sql/index.js'
import { connectionsOf } from './connection/connections.js'
import { Notifications } from './connection/notifications.js'
import { mostOf } from './connection/pool-state.js'
import { doctor } from './doctor.js'
import { postgresEngine } from './engine.js'
import type { PostgresTransaction, TransactionClient, TransactionPool } from './handle.js'
import { migratePostgres, postgresMigrationSql, postgresSchema } from './migrations.js'
import type { ClientOf, PostgresOptions, PostgresPool, PostgresPoolClient } from './options.js'

export type { Finding } from '../../atomicity/index.js'
export { LockTimeoutError, type MigrationOptions, type MigrationResult } from '../sql/index.js'
export { postgresClassification, signsOf as postgresSignsOf } from './classification.js'
export type { PostgresTransaction } from './handle.js'
export { postgresManifest } from './manifest.js'
export type { ClientOf, PostgresAnswer, PostgresOptions, PostgresPool, PostgresPoolClient } from './options.js'

/** A domain in a PostgreSQL database. */
export interface PostgresDomain<Bound, Pool = PostgresPool>
  extends Domain<PostgresTransaction<Bound>>,
    Operations<PostgresTransaction<Bound>>,
    Sequences<PostgresTransaction<Bound>>,
    MessageDomain<PostgresTransaction<Bound>>,
    Upkeep,
    WindowStore {
  /**
   * Brings Reprise's own tables up to date. Safe when several processes do it at once, and beside work on the tables:
   * it waits for them in short tries, and refuses with MIGRATION_BLOCKED after some 20 s. Leaves tables alone that a
   * newer version has migrated, and refuses them with MIGRATION_NEWER where they do not work with this version. Refuses
   * records under another pepper with PEPPER_MISMATCH; with `rename` it brings them under a new one.
   */
  migrate(options?: MigrationOptions): Promise<MigrationResult>
  /** The same as SQL, to be run once by other means. */
  migrationSql(): string
  /**
   * What in the server, its settings and Reprise's tables would weaken the promise, each with its fix. Empty: nothing
   * was found. What it writes it rolls back. Refuses with DEADLINE_EXCEEDED where the server has not told all of it
   * within 10 s.
   */
  doctor(): Promise<readonly Finding[]>
  /**
   * The pool, for programs that use one everywhere: code that runs in a transaction of this domain, such as a handler
   * behind `idempotency(db, …)`, is in that transaction, and any other is where it was. Each statement stands for
   * itself, as on the pool: one that fails is undone alone. BEGIN and COMMIT inside are savepoints, so that
   * `transaction()` of Drizzle or Kysely nests; those that are begun side by side wait for one another. What a
   * transaction has left running when it ended is refused with TRANSACTION_OVER; work that is to outlive it is begun
   * by `detached`. To be asked for before the first transaction.
   *
   * @example
   * ```ts
   * import pg from 'pg'
   * import { postgres } from 'reprise/stores/postgres'
   *
   * const db = postgres({ pool: new pg.Pool(), name: 'shop' })
   * export const pool = db.ambient()
   * await db.transact(() => pool.query('insert into payment (id, amount) values ($1, $2)', ['p1', 5]))
   * ```
   */
  ambient(): Pool
  /**
   * Runs work outside of the transactions that are around it, for what is to outlive them or must not wait for them: in
   * it, and in what it starts, the ambient pool is the pool. What it writes stays where the transaction is rolled back.
   *
   * @example
   * ```ts
   * import pg from 'pg'
   * import { postgres } from 'reprise/stores/postgres'
   *
   * const db = postgres({ pool: new pg.Pool(), name: 'shop' })
   * const pool = db.ambient()
   * await db.transact(async () => {
   *   await pool.query('insert into payment (id, amount) values ($1, $2)', ['p1', 5])
   *   db.detached(() => pool.query('insert into seen (id) values ($1)', ['p1']).catch(console.error))
   * })
   * ```
   */
  detached<Result>(work: () => Result): Result
  /** Refuses new transactions from now on. The pool stays open: it is the caller's. */
  close(): Promise<void>
}

const own = ['pool', 'name', 'prefix', 'schema', 'pepper', 'messages', 'bind', 'notify', 'resolvesUnkeyed']

/**
 * A domain in a PostgreSQL database.
 *
 * @example
 * ```ts
 * import pg from 'pg'
 * import { postgres } from 'reprise/stores/postgres'
 *
 * const db = postgres({ pool: new pg.Pool(), name: 'payments' })
 * await db.migrate()
 * await db.transact((tx) => tx.query('insert into payment (id, amount) values ($1, $2)', ['p1', 5]))
 * ```
 */
export function postgres<Pool extends PostgresPool, Bound = ClientOf<Pool>>(
  options: PostgresOptions<Pool, Bound>,
): PostgresDomain<Bound, Pool> {
  demandKnown(options, [...own, ...transactionDefaultNames], 'options')
  const { pool, name, prefix, schema: schemaName, bind, notify = false, ...others } = options
  const { resolvesUnkeyed = true, pepper: secrets, messages, ...defaults } = others
  const { clock = systemClock, random = systemRandom, connectionWait = '1s' } = defaults
  const pepper = secrets === undefined ? undefined : pepperOf(secrets)
  const schema = postgresSchema(prefix, schemaName, pepper)
  const connections = connectionsOf(pool, clock)
  // The client and the pool that bind gets stand for the user's own; what they do not do they refuse.
  const bound =
    bind === undefined
      ? undefined
      : (client: TransactionClient, inner: TransactionPool): Bound =>
          bind(client as unknown as ClientOf<Pool>, inner as unknown as Pool)
  const connectionWaitMs = durationMs(connectionWait)
  const parts = { name, connections, schema, pepper, messages, clock, connectionWaitMs, resolvesUnkeyed }
  const notifications = notify ? new Notifications({ domain: name, connections, schema, clock, random }) : undefined
  const engine = postgresEngine({ ...parts, notifications, bind: bound })
  const onClient = async <Result>(
    work: (client: PostgresPoolClient) => Promise<Result>,
    limitMs?: number,
  ): Promise<Result> => {
    const client = await connections.take({ waitMs: connectionWaitMs })
    let silent = false
    const expired = (): RepriseError => {
      silent = true
      return tooLate()
    }
    try {
      return await inTime({ clock, limitMs, expired }, work(client))
    } finally {
      if (silent) connections.leave(client)
      else client.release(client.getTransactionStatus() !== 'I')
    }
  }
  const domain = domainOf(engine, defaults)
  const sequences = sqlSequences(postgresDialect, schema.named)
  const base = {
    ...domain,
    ...operationsOf(engine, defaults),
    seen: engine.seen,
    messages: engine.messages,
    ...sequencesOf<PostgresTransaction<Bound>>(engine, sequences, domain.transact, pepper),
  }
  return {
    ...base,
    ...upkeepOf(base),
    migrate: async (given = {}) => {
      refuseInside()
      demandKnown(given, ['rename'], 'options')
      return onClient((client) => migratePostgres(client, schema, { clock, random }, given))
    },
    migrationSql: () => postgresMigrationSql(schema),
    doctor: async () => [
      ...(await onClient(
        (client) => doctor(client, schema, { clock, poolMost: mostOf(pool) }),
        postgresPatience.wholeMs,
      )),
      ...budgetFindings(domain.budget, clock.monotonicMs()),
    ],
    ambient: () => engine.ambient(pool),
    detached: (work) => engine.detached(work),
    close: async () => engine.close(),
  }
}
