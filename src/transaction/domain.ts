// A domain: one store in which marker and effect commit together, as a user sees it.

import type { Engine, Manifest, Rows, TransactionControls } from '../atomicity/index.js'
import { type Duration, deadlineAfter, demandKnown, RepriseError, systemClock, systemRandom } from '../kernel/index.js'
import type { Budget } from '../retry/index.js'
import { withBudget } from './budget.js'
import { refuseInside } from './open-transaction.js'
import { type OptimisticUpdate, type Updated, updateOptimistically } from './optimistic.js'
import {
  type OptimisticOptions,
  optimisticOptionNames,
  type TransactionDefaults,
  type TransactOptions,
} from './options.js'
import type { TransactionBody } from './run/attempt.js'
import { type Resolved, resolveOutcome } from './run/closing.js'
import { parseResolveToken } from './run/resolve-token.js'
import { runTransaction } from './run/run.js'
import { backoffOf, type CallSettings, deadlineOf, settingsReader } from './run/settings.js'

/** What became of a transaction that was unknown. */
export type TransactionOutcome =
  | {
      readonly outcome: 'committed'
      /**
       * With a key, what is stored under it: what the body returned. Of an operation it is raw: its result or `{ code,
       * data }` of its failure, as JSON, and undefined where a codec wrote it or it was too large to keep. Call the
       * operation again, or look its key up, for what it decodes to.
       */
      readonly value?: unknown
    }
  | { readonly outcome: 'aborted' }
  | { readonly outcome: 'unknown' }

/** One store in which marker and effect can commit together. */
export interface Domain<Handle extends TransactionControls & Rows> {
  /** Its name, in events and errors. */
  readonly name: string
  readonly manifest: Manifest
  /** What all its transactions and atomic operations share, unless one is told otherwise; undefined: `'none'`. */
  readonly budget: Budget | undefined
  /**
   * Runs the body in a transaction, and repeats the whole of it when it provably did not happen and another try may
   * help: a serialization failure, a deadlock, a connection lost before COMMIT was sent. A commit whose answer is lost
   * is resolved, never guessed; what cannot be resolved in time is an `UnknownCommitError`.
   *
   * @example
   * ```ts
   * import { sqlite } from 'reprise/stores/sqlite'
   *
   * const db = sqlite({ name: 'shop', file: 'shop.db' })
   * const paid = await db.transact(
   *   async (tx) => (await tx.query('update orders set state = ? where id = ?', ['paid', 4711])).rowCount,
   *   { deadline: '2s' },
   * )
   * ```
   */
  transact<Result>(body: TransactionBody<Handle, Result>, options?: TransactOptions<Handle, Result>): Promise<Result>
  /**
   * Finds out what became of an unknown transaction. Default limit `'5s'`. With a key it waits for a transaction that
   * is still open.
   *
   * @example
   * ```ts
   * import { sqlite } from 'reprise/stores/sqlite'
   * import { UnknownCommitError } from 'reprise/transaction'
   *
   * const db = sqlite({ name: 'shop', file: 'shop.db' })
   * await db.transact((tx) => tx.query('delete from cart')).catch(async (error) => {
   *   if (!(error instanceof UnknownCommitError) || error.resolveToken === undefined) throw error
   *   return (await db.resolve(error.resolveToken)).outcome // 'committed', 'aborted' or 'unknown'
   * })
   * ```
   */
  resolve(token: string, limit?: Duration): Promise<TransactionOutcome>
  /**
   * Reads a row, lets `decide` say what to change, and writes if nobody changed it meanwhile; otherwise reads and
   * decides again.
   *
   * @example
   * ```ts
   * import { sqlite } from 'reprise/stores/sqlite'
   *
   * const db = sqlite({ name: 'shop', file: 'shop.db' })
   * const { result } = await db.optimistic({
   *   table: 'stock',
   *   where: { item: 'tea' },
   *   decide: (row) => (Number(row['amount']) > 0 ? { amount: Number(row['amount']) - 1 } : undefined),
   * })
   * ```
   */
  optimistic(update: OptimisticUpdate, options?: OptimisticOptions): Promise<Updated>
}

/** The domain of a store. */
export function domainOf<Handle extends TransactionControls & Rows>(
  engine: Engine<Handle>,
  given: TransactionDefaults = {},
): Domain<Handle> {
  const defaults = withBudget(engine, given)
  const pepper = engine.records?.pepper
  const settingsOf = settingsReader(engine.manifest, defaults, pepper)
  const transact = <Result>(
    body: TransactionBody<Handle, Result>,
    options: TransactOptions<Handle, Result> = {},
  ): Promise<Result> => {
    let settings: CallSettings
    try {
      if (typeof body !== 'function') throw new RepriseError('ARGUMENT_INVALID', 'transact needs a function.')
      settings = settingsOf(options)
    } catch (error) {
      return Promise.reject(error)
    }
    return runTransaction(engine, settings, body)
  }
  const { clock = systemClock, random = systemRandom } = defaults
  return {
    name: engine.name,
    manifest: engine.manifest,
    budget: defaults.budget === false ? undefined : defaults.budget,
    transact,
    resolve: async (token, limit = '5s') => {
      refuseInside()
      const named = parseResolveToken(engine.name, token)
      // A token of before the pepper finds its record too.
      const unresolved = pepper !== undefined && 'id' in named ? { ...named, id: pepper.hide(named.id) } : named
      return outcomeOf(
        await resolveOutcome(engine, unresolved, { deadline: deadlineAfter(limit, clock), clock, random }),
      )
    },
    optimistic: async (update, options = {}) => {
      refuseInside()
      demandKnown(options, optimisticOptionNames, 'options')
      // One deadline over all rounds.
      const deadline = deadlineOf(clock, defaults, options)
      const backoff = backoffOf(options.backoff ?? defaults.backoff)
      const pace = { clock, random, backoff, deadline }
      return updateOptimistically(transact, update, { ...options, deadline }, pace)
    },
  }
}

function outcomeOf(resolved: Resolved): TransactionOutcome {
  if (resolved.outcome !== 'committed') return { outcome: resolved.outcome }
  return resolved.stored === undefined
    ? { outcome: 'committed' }
    : { outcome: 'committed', value: resolved.stored.value }
}
