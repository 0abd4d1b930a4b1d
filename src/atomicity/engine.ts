// The port: what the transaction runner needs of a store. Seven methods a session, two an engine; what else is there is
// for engines that know more, or see less.

import type { StoredKey } from '../identity/index.js'
import type { Deadline } from '../kernel/index.js'
import type { Isolation, Manifest } from './manifest.js'
import type { Phase, Ruling } from './phase.js'
import type { Expected, RecordDraft, StoredRecord } from './record.js'
import type { Records } from './records.js'
import type { Blocker } from './rows/rows.js'

/** A store, as the runner sees it. `Handle` is what the caller's body gets. */
export interface Engine<Handle extends TransactionControls> {
  /** The domain's name, chosen by the user; it goes into events, errors and resolve tokens. */
  readonly name: string
  readonly manifest: Manifest
  /**
   * Waits for a connection, at most `waitMs`, and fails fast after that: POOL_EXHAUSTED where all are taken, or the
   * driver's error where none can be made. Aborting the signal ends the wait. What arrives too late is given back,
   * never leaked.
   */
  acquire(limits: AcquireLimits): Promise<Session<Handle>>
  /** The same without a promise, or undefined where somebody would have to wait. Default: there always is a promise. */
  acquireAtOnce?(limits: AcquireLimits): Session<Handle> | undefined
  /**
   * Present: transactions that wait for one another may share a COMMIT here, where the runner lets them. Default: each
   * has its own.
   */
  readonly sharesCommit?: boolean
  /** What an error means in a phase. Pure, and total: an error it does not know gets the ruling of the unlisted. */
  classify(error: unknown, phase: Phase): Ruling
  /**
   * Finds out what became of a transaction without a key. Only where the manifest says `resolvesUnkeyed`. Never
   * guesses.
   */
  resolve?(trace: Trace, limits: AcquireLimits): Promise<'committed' | 'aborted' | 'unknown'>
  /** The store's records, for operations. Undefined: the store keeps none, and operations on it are refused. */
  readonly records?: Records
}

/** How long a wait may take. */
export interface AcquireLimits {
  /** The longest wait, in ms. */
  readonly waitMs: number
  /** Whether the transaction will only read. */
  readonly readOnly: boolean
  /** Ends the wait. */
  readonly signal?: AbortSignal | undefined
  /**
   * Present: it is wanted to find out what became of a COMMIT. A store may keep a connection for that when it refuses
   * everybody else. Default: it is for work.
   */
  readonly resolving?: true | undefined
  /**
   * Present: the body may run a second time for reasons that are not its own, so that its transaction may share a
   * COMMIT with others. Default: it has its own.
   */
  readonly shares?: SharesCommit | undefined
}

/** What a store needs to know of a transaction that may share a COMMIT. */
export interface SharesCommit {
  /** What runs in it: the name of its operation, or its body. */
  readonly work: string | ((...values: never[]) => unknown)
  /**
   * Ends the wait for the body with `error`, which has poisoned the handle: the others do not wait for it any longer.
   */
  leave(error: unknown): void
}

/** What identifies a transaction on its server, as plain data, so that it can travel in a resolve token. */
export type Trace = Readonly<Record<string, string>>

/**
 * One connection, for one transaction. The runner calls begin, then claim and record where there is a key, then commit
 * or rollback, then release. What can be answered at once may be: a promise is only waited for where there is one.
 */
export interface Session<Handle> {
  /** Opens the transaction and hands out what the body works with. */
  begin(settings: BeginSettings, controls: TransactionControls): Promise<Handle> | Handle
  /**
   * Runs the body in a context of the engine's own, by which the body is found. Known once the transaction has begun.
   * Default: none.
   */
  readonly enters?: (<Result>(work: () => Result) => Result) | undefined
  /**
   * Present: `begin` waits for no other transaction, but for the claim that goes with it. A BEGIN that is not answered
   * within the wait of that claim and `connectionWait` (or a third of what is left of the deadline, where that is
   * longer) is given up with CONNECT_TIMEOUT: a connection that was dropped on the way tells nobody. Default: it may
   * take until the deadline.
   */
  readonly beginsAtOnce?: true
  /**
   * Inserts the claim of a key, the unique index deciding. Answers `claimed`, or the record that is there when the
   * transaction that holds the key committed, or undefined where that record was gone again when it was read: then the
   * claim is to be made once more. Waits for a transaction that is still open, at most the lock wait of the settings,
   * then fails with the engine's lock time-out.
   */
  claim(id: StoredKey, draft: RecordDraft): Promise<'claimed' | Stored | undefined> | 'claimed' | Stored | undefined
  /**
   * Makes the claim one's own in place of a committed record whose memory has ended. False: it is no longer the one
   * that was read. Waits for a transaction that is changing it, so the answer also tells what became of that one.
   */
  reclaim(id: StoredKey, over: Expected, draft: RecordDraft): Promise<boolean> | boolean
  /**
   * Writes the outcome into the record of a key that this transaction claimed. It may be sent together with COMMIT;
   * then COMMIT fails where this does.
   */
  record(id: StoredKey, outcome: RecordOutcome): Promise<void> | void
  /**
   * Told that the body has returned, and all that goes before COMMIT is done. Waits for the statements that the body
   * did not wait for: one that fails poisons the handle. From then on nothing of the body is sent any more. All of it
   * comes before COMMIT, so a wait that is given up leaves no doubt. Default: there is nothing to wait for.
   */
  settle?(): Promise<void> | undefined
  /**
   * Sends COMMIT, checks its answer, and says how durable it is. Anything but a sound answer is an error, to be
   * classified in phase `committing`.
   */
  commit(): Promise<Receipt> | Receipt
  rollback(): Promise<void> | void
  /**
   * Asked when the transaction was rolled back, of whatever was decided in it: a result that it found, a refusal, an
   * error. A promise: it was decided on what others have not committed yet. It counts once the promise is fulfilled;
   * where it is rejected it was decided on nothing, and the error is to be ruled upon in its place. Default: it counts.
   */
  stands?(): Promise<void> | undefined
  /** Gives the connection back, or destroys it. From here on handle and session refuse every call. Never throws. */
  release(fate: 'keep' | 'discard'): void
  /**
   * Makes the handle refuse every further statement with `error`: a body that ran out of time, an effect that must not
   * be in here. The first one stays. Engines poison their handle on their own at the first engine error outside a
   * savepoint, and at any event of the connection.
   */
  poison(error: unknown): void
  /**
   * Told what the body threw, before it is ruled upon. An engine recognises its own errors here, and poisons the handle
   * with them; else they would count as the body's: those of a savepoint that the body let through, and all of them
   * where it does not see every statement of its body. Default: none.
   */
  bodyThrew?(error: unknown): void
  /** The first thing that poisoned the handle, or undefined: then the transaction may commit. */
  readonly poisoned: { readonly error: unknown } | undefined
  /**
   * True: BEGIN was held back until the first statement of the body, and what poisoned the handle came before its
   * answer. Nothing was begun then, though the body was. Default false.
   */
  readonly neverBegun?: boolean
  /**
   * Present from `settle` on where the transaction emits messages: called when it is known to have committed, it wakes
   * who waits for them in this process. Default: it emits none.
   */
  readonly emitted?: (() => void) | undefined
  /** What identifies the transaction on its server; known once it was begun there, where the engine can tell. */
  readonly trace: Trace | undefined
}

/** How to begin. */
export interface BeginSettings {
  /** Isolation level, one of the manifest. */
  readonly isolation: Isolation
  /** Whether the transaction only reads. */
  readonly readOnly: boolean
  /**
   * The longest the server keeps the transaction open without hearing of us, in ms: the session is the lease of an open
   * transaction.
   */
  readonly idleMs: number
  /** The longest that a statement waits for a lock, in ms. */
  readonly lockWaitMs: number
  /**
   * When COMMIT has to be answered, in ms of monotonic time: what waits for a lock on the way to it gives up before.
   * Default: nobody says.
   */
  readonly endsAtMs?: number
  /**
   * Whether a lost commit would have to be resolved by its trace; one with a key has no need of it, and saves its
   * price. Default true.
   */
  readonly traced?: boolean
  /** The longest wait for the answer to BEGIN, in ms, where it waits for nobody. Default: until the deadline. */
  readonly answerMs?: number
  /**
   * Present: an engine may hold BEGIN back and send it with the first statement of the body. Where it is not answered
   * within `answerMs` then, the handle is poisoned with CONNECT_TIMEOUT. A body that sends nothing begins nothing.
   * Default: the transaction is open when `begin` is answered.
   */
  readonly mayHold?: OpeningLimits | undefined
  /** The claim that `claim` will ask for next, so that an engine can send it together with BEGIN. Default: none. */
  readonly claim?:
    | {
        readonly id: StoredKey
        readonly draft: RecordDraft
        /**
         * The longest that BEGIN and the claim wait for somebody else, in ms, where that is shorter than
         * `lockWaitMs`; from the body on `lockWaitMs` counts. Default: `lockWaitMs`.
         */
        readonly waitMs?: number | undefined
        /**
         * Who was last seen to block this call's claim: kept up by the session, the same list for all attempts of a
         * call.
         */
        readonly blockers?: Blocker[]
      }
    | undefined
}

/** Told of the wait for the answer to a BEGIN that was held back, which is no time of the body's own. */
export interface OpeningLimits {
  /** The wait begins. */
  stand(): void
  /** The wait is over. */
  goOn(): void
}

/** What was stored with a key. */
export interface Stored {
  /** The record, committed by another transaction. */
  readonly record: StoredRecord
  /** The store's clock when it was read, in ms since 1970. */
  readonly nowMs: number
}

/** How an operation ended, as it is written into its record. */
export interface RecordOutcome {
  /** Whether it did what was asked. */
  readonly state: 'succeeded' | 'failed'
  /** How `value` is to be read; undefined: JSON. */
  readonly codec?: string | undefined
  /** The outcome, as text; undefined: it was too large to keep, and `codec` says so. */
  readonly value: string | undefined
  /** How long it is remembered from now on, in ms; `Infinity`: for ever. */
  readonly rememberedMs: number
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
   * Runs a function after this transaction is known to have committed. Best effort: a crash in between loses it, its
   * error is reported on a channel and thrown nowhere, it may take until the deadline, and it does not run where the
   * stored outcome of an earlier commit is handed out. It runs also when a savepoint around the call was undone. What
   * must happen belongs into a message: `tx.emit`.
   */
  afterCommit(work: () => unknown): void
}
