// The port: what the transaction runner needs of a store. Six methods a session, two an engine.

import type { StoredKey } from '../identity/index.js'
import type { Deadline } from '../kernel/index.js'
import type { Isolation, Manifest } from './manifest.js'
import type { Phase, Ruling } from './phase.js'

/** A store, as the runner sees it. `Handle` is what the caller's body gets. */
export interface Engine<Handle extends TransactionControls> {
  /** The domain's name, chosen by the user; it goes into events, errors and resolve tokens. */
  readonly name: string
  /** What it can do. */
  readonly manifest: Manifest
  /**
   * Waits for a connection, at most `waitMs`, and fails fast after that: POOL_EXHAUSTED where all are taken, or the driver's error where none can be
   * made. Aborting the signal ends the wait. What arrives too late is given back, never leaked.
   */
  acquire(limits: AcquireLimits): Promise<Session<Handle>>
  /** What an error means in a phase. Pure, and total: an error it does not know gets the ruling of the unlisted. */
  classify(error: unknown, phase: Phase): Ruling
  /** Finds out what became of a transaction without a key. Only where the manifest says `resolvesUnkeyed`. Never guesses. */
  resolve?(trace: Trace, limits: AcquireLimits): Promise<'committed' | 'aborted' | 'unknown'>
}

/** How long a wait may take. */
export interface AcquireLimits {
  /** The longest wait, in ms. */
  readonly waitMs: number
  /** Whether the transaction will only read. */
  readonly readOnly: boolean
  /** Ends the wait. */
  readonly signal?: AbortSignal
}

/** What identifies a transaction on its server, as plain data, so that it can travel in a resolve token. */
export type Trace = Readonly<Record<string, string>>

/** One connection, for one transaction. The runner calls begin, then claim and record where there is a key, then commit or rollback, then release. */
export interface Session<Handle> {
  /** Opens the transaction and hands out what the body works with. */
  begin(settings: BeginSettings, controls: TransactionControls): Promise<Handle>
  /**
   * Inserts the marker of a key, the unique index deciding. Answers `claimed`, or what was stored when the transaction that holds the key committed.
   * Waits for one that is still open, at most `waitMs` of the settings, then fails with the engine's lock time-out.
   */
  claim(id: StoredKey): Promise<'claimed' | Stored>
  /** Writes the outcome beside the marker of a key that this transaction claimed. */
  record(id: StoredKey, value: string): Promise<void>
  /** Sends COMMIT, checks its answer, and says how durable it is. Anything but a sound answer is an error, to be classified in phase `committing`. */
  commit(): Promise<Receipt>
  /** Rolls back. */
  rollback(): Promise<void>
  /** Gives the connection back, or destroys it. From here on handle and session refuse every call. Never throws. */
  release(fate: 'keep' | 'discard'): void
  /**
   * Makes the handle refuse every further statement with `error`: a body that ran out of time, an effect that must not be in here. The first one
   * stays. Engines poison their handle on their own at the first engine error outside a savepoint, and at any event of the connection.
   */
  poison(error: unknown): void
  /** The first thing that poisoned the handle, or undefined: then the transaction may commit. */
  readonly poisoned: { readonly error: unknown } | undefined
  /** What identifies the transaction on its server; known from `begin` on, where the engine can tell. */
  readonly trace: Trace | undefined
}

/** How to begin. */
export interface BeginSettings {
  /** Isolation level, one of the manifest. */
  readonly isolation: Isolation
  /** Whether the transaction only reads. */
  readonly readOnly: boolean
  /** The longest the server keeps the transaction open without hearing of us, in ms: the session is the lease of an open transaction. */
  readonly idleMs: number
  /** The longest that a statement waits for a lock, in ms. */
  readonly lockWaitMs: number
  /** Whether a lost commit would have to be resolved by its trace; one with a key has no need of it, and saves its price. Default true. */
  readonly traced?: boolean
}

/** What was stored with a key. */
export interface Stored {
  /** The outcome's value, as text. */
  readonly value: string
}

/** The answer to a commit. */
export interface Receipt {
  /** Where the commit has arrived: as the manifest promises, or here alone (a wait for replicas that was cancelled). */
  readonly durability: 'promised' | 'local'
}

/** What a body can do beside its statements, whatever the store. */
export interface TransactionControls {
  /** Which attempt this is; the first is 1. */
  readonly attempt: number
  /** Aborted when the body's time is over or the caller gave up. Nothing is to be done after it. */
  readonly signal: AbortSignal
  /** When the whole call ends. */
  readonly deadline: Deadline
  /**
   * Runs a function after this transaction is known to have committed. Best effort: a crash in between loses it, its error is reported
   * on a channel and thrown nowhere, it may take until the deadline, and it does not run where the stored outcome of an earlier commit is handed out. It
   * runs also when a savepoint around the call was undone. What must happen belongs into an outbox.
   */
  afterCommit(work: () => unknown): void
}
