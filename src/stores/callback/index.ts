// Callback: a domain for code that cannot hand over BEGIN and COMMIT, because an ORM owns them and takes a function. It
// sees less than the other stores, and says so.

import type { Finding, OutboxReading } from '../../atomicity/index.js'
import { type Operations, operationsOf } from '../../idempotency/index.js'
import { demandKnown, durationMs, pick, systemClock } from '../../kernel/index.js'
import { type Upkeep, upkeepOf, type WindowStore } from '../../messaging/index.js'
import { type Sequences, sequencesOf } from '../../sequence/index.js'
import { budgetFindings, type Domain, domainOf, transactionDefaultNames } from '../../transaction/index.js'
import { CallbackEngine } from './engine.js'
import type { CallbackTransaction } from './handle.js'
import type { CallbackOptions } from './options.js'

export { callbackClassification, signsOf as callbackSignsOf } from './classification.js'
export type { CallbackDialect } from './database.js'
export type { CallbackTransaction } from './handle.js'
export { callbackManifests } from './manifest.js'
export type { CallbackAnswer, CallbackOptions, CallbackSettings } from './options.js'

/**
 * A domain behind a transaction function. Its tables are made elsewhere: by `npx reprise migrate`, or with what
 * `migrationSql()` of the store of the same database prints.
 */
export interface CallbackDomain<Tx>
  extends Domain<CallbackTransaction<Tx>>,
    Operations<CallbackTransaction<Tx>>,
    Sequences<CallbackTransaction<Tx>>,
    Upkeep,
    WindowStore {
  /** What those who read its messages need. */
  readonly messages: OutboxReading
  /**
   * What could go wrong with the database, as far as statements through the ORM tell, and what to do about it; empty:
   * nothing was found. What it writes it rolls back.
   */
  doctor(): Promise<readonly Finding[]>
  /** Refuses new transactions, and waits for those at work. The ORM stays open: it is the caller's. */
  close(): Promise<void>
}

const own = [
  'name',
  'dialect',
  'transaction',
  'query',
  'prefix',
  'schema',
  'pepper',
  'messages',
  'connections',
  'queue',
  'classify',
]

/**
 * A domain behind the transaction function of an ORM: Prisma's `$transaction`, TypeORM's and Sequelize's `transaction`.
 *
 * @example
 * ```ts
 * import { callback } from 'reprise/stores/callback'
 * import { DataSource, type EntityManager } from 'typeorm'
 *
 * const orm = new DataSource({ type: 'postgres', url: 'postgres://app@db.example/app' })
 * const levels = {
 *   'read-committed': 'READ COMMITTED',
 *   'repeatable-read': 'REPEATABLE READ',
 *   serializable: 'SERIALIZABLE',
 * } as const
 * const db = callback<EntityManager>({
 *   name: 'shop',
 *   dialect: 'postgres',
 *   transaction: (work, { isolation }) => orm.transaction(levels[isolation], work),
 *   query: async (tx, text, values) => {
 *     const answer = await tx.queryRunner?.query(text, values, true)
 *     return { rows: answer?.records ?? [], rowCount: answer?.affected }
 *   },
 * })
 * ```
 */
export function callback<Tx>(options: CallbackOptions<Tx>): CallbackDomain<Tx> {
  demandKnown(options, [...own, ...transactionDefaultNames], 'options')
  const defaults = pick(options, transactionDefaultNames)
  const { clock = systemClock, connectionWait = '1s' } = defaults
  const engine = new CallbackEngine(options, { clock, connectionWaitMs: durationMs(connectionWait) })
  const domain = domainOf(engine, defaults)
  const base = {
    ...domain,
    ...operationsOf(engine, defaults),
    seen: engine.seen,
    messages: engine.outbox.reading,
    ...sequencesOf<CallbackTransaction<Tx>>(engine, engine.sequences, domain.transact, engine.records.pepper),
  }
  return {
    ...base,
    ...upkeepOf({ ...base, messages: undefined }),
    doctor: async () => [...(await engine.doctor()), ...budgetFindings(domain.budget, clock.monotonicMs())],
    close: () => engine.close(),
  }
}
