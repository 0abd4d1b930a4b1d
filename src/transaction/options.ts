// Options of a transaction, and their defaults.

import type { Isolation } from '../atomicity/index.js'
import type { Drill } from '../drill/index.js'
import type { Content, Key, Scope } from '../identity/index.js'
import type { Clock, Deadline, Duration, Random } from '../kernel/index.js'
import type { Backoff, Budget, ForeignLayer } from '../retry/index.js'

/**
 * Which intent a transaction carries out. Its marker commits together with the effect, so a repeat finds the outcome.
 */
export interface TransactionKey {
  /** Who may share the key. */
  readonly scope: Scope
  /** The intent's key, minted outside of any loop. */
  readonly key: Key
}

/** Options of all transactions of a domain, unless a call says otherwise. */
export interface TransactionDefaults {
  /** How long the whole call may take: waiting, body, COMMIT, resolution and all attempts. Default `'10s'`. */
  readonly deadline?: Duration
  /** How long to wait for a connection. Never longer than the deadline allows. Default `'1s'`. */
  readonly connectionWait?: Duration
  /** How long one run of the body may take. Never longer than the deadline allows. Default `'5s'`. */
  readonly bodyLimit?: Duration
  /** How long a statement waits for a lock. Never longer than the deadline allows. Default `'2s'`. */
  readonly lockWait?: Duration
  /** How many transactions are tried at most, the first included; 1 to 50. Default 8. */
  readonly attempts?: number
  /** The wait between attempts. Default `fullJitter({ baseMs: 15, capMs: 500 })`, sized for contention. */
  readonly backoff?: Backoff
  /**
   * What limits repeats over all transactions that share it; `false`: nothing does. Only bodies that ran are counted.
   * Default: one that all transactions and atomic operations of the domain share, `tokenBudget({ maxTokens: 1000,
   * tokenRatio: 3 })`.
   */
  readonly budget?: Budget | false
  /**
   * Layers that are not ours and repeat around the transactions or below them: `[{ name: 'gateway', attempts: 2 }]`.
   * They count in the product that is reported. Default: none.
   */
  readonly foreignLayers?: readonly ForeignLayer[]
  /**
   * What an HTTP request made in a body leads to, as far as it is seen: `'poison'`, the transaction cannot commit,
   * though the request has left; `'report'`, an event on `reprise.transaction.effect`; `'ignore'`, nobody looks. Under
   * the guard (`--import reprise/effect-guard`) the first two throw. Default `'report'`.
   */
  readonly effects?: 'poison' | 'report' | 'ignore'
  /**
   * Origins to which a body may send: `https://traces.example`, or `unix:/run/agent.sock`. For telemetry. Default:
   * none.
   */
  readonly allowOrigins?: readonly string[]
  /**
   * Repeats a share of the calls of operations and routes, and of the deliveries to consumers, on purpose: `drill({
   * oneIn: 1000 })` of `reprise/drill`, for staging. Default: none.
   */
  readonly drill?: Drill
  /** Default the system's clock. */
  readonly clock?: Clock
  /** Default the system's randomness. */
  readonly random?: Random
}

/** Options of every transaction. */
export interface AnyTransactOptions
  extends Omit<TransactionDefaults, 'clock' | 'random' | 'deadline' | 'effects' | 'allowOrigins' | 'drill'> {
  /** A deadline of this call; the deadline of the intent in flight shortens it. Default: the domain's. */
  readonly deadline?: Duration | Deadline
  /** Default: the first of the domain's manifest. */
  readonly isolation?: Isolation
  /** Default false. */
  readonly readOnly?: boolean
  /** Ends the call, unless COMMIT is on its way: then its outcome is awaited. */
  readonly signal?: AbortSignal
}

/** A transaction with a key: its outcome is stored in the same commit, and a repeat gets that outcome. */
export interface KeyedTransactOptions extends AnyTransactOptions {
  readonly key: TransactionKey
  /**
   * What the key is bound to: other content under the same key is refused with OPERATION_MISMATCH, as an operation
   * refuses it. `'none'`: whatever comes under the key gets the outcome of the first.
   */
  readonly content: Content | 'none'
  /**
   * How long the outcome is remembered, counted from its commit; a replay never extends it. It covers the deadline and
   * a quarter more, or is refused with WINDOW_SHORTER_THAN_DEADLINE. Default: until a purge forgets it by its age.
   */
  readonly window?: Duration
  readonly found?: undefined
}

/** A transaction without a key. */
export interface PlainTransactOptions<Handle, Result> extends AnyTransactOptions {
  readonly key?: undefined
  readonly content?: undefined
  readonly window?: undefined
  /**
   * Reads the effect by its natural key where the answer to COMMIT was lost: asked only once the transaction is proven
   * to have ended, in a transaction of its own that is rolled back. What it finds is the result; where it finds nothing
   * (undefined), the body runs again. Where the end cannot be proven it is not asked, and the outcome stays unknown.
   * The natural key is unique, durable and the intent's own: an order's number, never "the latest of this customer".
   * Default: nothing is read.
   */
  readonly found?: (tx: Handle) => PromiseLike<NoInfer<Result> | undefined> | NoInfer<Result> | undefined
}

/** Options of one transaction. */
export type TransactOptions<Handle = never, Result = unknown> =
  | KeyedTransactOptions
  | PlainTransactOptions<Handle, Result>

/** Options of an optimistic update. */
export type OptimisticOptions = KeyedTransactOptions | Omit<PlainTransactOptions<never, unknown>, 'found'>

/** The options of a transaction that operations and routes take too, and hand on unchanged. */
export const transactionOptionNames = [
  'isolation',
  'connectionWait',
  'bodyLimit',
  'lockWait',
  'attempts',
  'backoff',
  'budget',
  'foreignLayers',
] as const

/** How transactions run, apart from what belongs to one call. Defaults: the domain's. */
export type TransactionOptions = Pick<AnyTransactOptions, (typeof transactionOptionNames)[number]>

/** The names of {@link OptimisticOptions}. */
export const optimisticOptionNames: readonly (keyof OptimisticOptions)[] = [
  ...transactionOptionNames,
  'deadline',
  'key',
  'content',
  'window',
  'readOnly',
  'signal',
]

/** The names of {@link TransactOptions}. */
export const transactOptionNames: readonly (keyof TransactOptions)[] = [...optimisticOptionNames, 'found']

/** The names of {@link TransactionDefaults}, for a store that refuses others. */
export const transactionDefaultNames: readonly (keyof TransactionDefaults)[] = [
  'deadline',
  'connectionWait',
  'bodyLimit',
  'lockWait',
  'attempts',
  'backoff',
  'budget',
  'foreignLayers',
  'effects',
  'allowOrigins',
  'drill',
  'clock',
  'random',
]
