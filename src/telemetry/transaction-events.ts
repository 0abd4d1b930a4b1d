// What transactions report: one channel for each kind of decision.

import { type EventChannel, eventChannel } from './channels.js'

/** An attempt at a transaction failed, and this was decided about it. */
export interface TransactionAttemptEvent {
  readonly domain: string
  /** The operation that it is of; absent for a transaction of none. */
  readonly operation?: string
  /** The name of its record, a digest, by which `inspect` finds it; absent without a key. */
  readonly id?: string
  /** Which attempt it was; the first is 1. */
  readonly attempt: number
  /** Where it stood. */
  readonly phase: string
  readonly outcome: 'aborted' | 'committed' | 'unknown'
  /** Would another one help? */
  readonly help: 'transient' | 'permanent'
  /** The code or sign by which it was classified. */
  readonly sign: string
  /** The SQLSTATE that the server answered with; absent where it gave none. */
  readonly sqlState?: string
  /**
   * The code of the driver, of the engine or of the network: `ECONNRESET`, `SQLITE_BUSY`, `ER_LOCK_DEADLOCK`, `P2034`;
   * absent where there is none beside the SQLSTATE.
   */
  readonly driverCode?: string
  /**
   * What speaks for each of the usual causes of lock time-outs, where they repeat and the store can tell. `cause` is
   * `long-transaction`, `missing-index`, `lock-order`, `batch` or `pool`. Absent: nothing, or it is no lock time-out.
   */
  readonly evidence?: readonly { readonly cause: string; readonly sentence: string }[]
  /** Whether somebody should be woken: also where the outcome stayed unknown. */
  readonly alarm: boolean
  /** The wait before the next attempt, in ms; absent when there is none. */
  readonly delayMs?: number
  /** Why there is no further attempt; absent when there is one. */
  readonly stop?: string
}

/** The outcome of a commit was not known, and was looked for. */
export interface TransactionResolvedEvent {
  readonly domain: string
  /** The operation that it is of; absent for a transaction of none. */
  readonly operation?: string
  /** The name of its record, a digest, by which `inspect` finds it; absent without a key. */
  readonly id?: string
  readonly outcome: 'committed' | 'aborted' | 'unknown'
  /** By its key, by what the server knows of it, or by what `found` read. */
  readonly by: 'key' | 'trace' | 'found' | 'nothing'
}

/** Work for after a commit failed. It is not tried again. */
export interface AfterCommitFailedEvent {
  readonly domain: string
  /** What it threw. */
  readonly error: unknown
}

/** `reprise.transaction.attempt`: an attempt failed. */
export const transactionAttempt: EventChannel<TransactionAttemptEvent> =
  /* @__PURE__ */ eventChannel('reprise.transaction.attempt')

/** `reprise.transaction.resolved`: an ambiguous commit was resolved, or was not. */
export const transactionResolved: EventChannel<TransactionResolvedEvent> =
  /* @__PURE__ */ eventChannel('reprise.transaction.resolved')

/** `reprise.transaction.after-commit-failed`: an `afterCommit` function threw. */
export const afterCommitFailed: EventChannel<AfterCommitFailedEvent> = /* @__PURE__ */ eventChannel(
  'reprise.transaction.after-commit-failed',
)

/** An effect was about to leave the process, or has left it, while a transaction was open around it. */
export interface TransactionEffectEvent {
  readonly domain: string
  /**
   * How it was noticed: `fetch` stands for everything of undici, `http` for `node:http` and `node:https`, `effect` for
   * a mark, `query` for a statement that writes past the transaction.
   */
  readonly by: 'fetch' | 'http' | 'effect' | 'query'
  /** Where it goes: scheme, host and port, or `unix:` and a path. Absent where that cannot be told, and for marks. */
  readonly origin?: string
  /** The name given to a mark; absent for requests. */
  readonly name?: string
  /** What kind of statement it is, in small letters: `insert`; absent for all but queries. Never its text or values. */
  readonly statement?: string
  /**
   * It was stopped and its transaction cannot commit; it left and its transaction cannot commit; it left; it left with
   * permission.
   */
  readonly decision: 'refused' | 'poisoned' | 'reported' | 'allowed'
  /** The reason given with the permission; absent without one. */
  readonly reason?: string
}

/** `reprise.transaction.effect`: an effect inside a transaction. Nothing is said of origins that the domain allows. */
export const transactionEffect: EventChannel<TransactionEffectEvent> =
  /* @__PURE__ */ eventChannel('reprise.transaction.effect')

/** A commit has not arrived where the domain's manifest promises: a wait for replicas was cancelled. */
export interface TransactionLocalEvent {
  readonly domain: string
}

/** `reprise.transaction.local`: a transaction committed on its server alone, and a failover may lose it. */
export const transactionLocal: EventChannel<TransactionLocalEvent> =
  /* @__PURE__ */ eventChannel('reprise.transaction.local')

/** Several transactions shared a COMMIT, or were to. */
export interface TransactionSharedEvent {
  readonly domain: string
  /** How many waited for it: those that wrote, and those that had read what others of them wrote. */
  readonly members: number
  /**
   * All of it is there; nothing of it is, and each runs again by itself; nobody knows yet, and each finds out by
   * itself.
   */
  readonly outcome: 'committed' | 'undone' | 'unknown'
}

/** `reprise.transaction.shared`: one COMMIT for several transactions. */
export const transactionShared: EventChannel<TransactionSharedEvent> =
  /* @__PURE__ */ eventChannel('reprise.transaction.shared')
