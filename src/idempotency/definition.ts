// What an operation is, as data: the five answers, and what its runner needs to know. Definitions that cannot be safe
// are refused here.

import type { RecordMode } from '../atomicity/index.js'
import type { Content, FieldRule, Key, Scope } from '../identity/index.js'
import type { Duration } from '../kernel/index.js'
import type { ForeignLayer } from '../retry/index.js'
import type { Recovery } from './machine.js'
import type { Failure, Outcome, ValueCodec } from './outcome.js'

/** What kind of effect is protected. */
export type Reversibility = 'repeatable' | 'guarded' | 'compensable' | 'irreversible'

/** Options of atomic and of leased operations alike. */
export interface OperationOptions<Input, Result, Code extends string = string> {
  /**
   * Who may share a key, of an input. Mandatory: without it a stranger with the same key gets somebody else's outcome.
   */
  readonly scope: (input: Input) => Scope
  /** The intent's key, of an input; minted by the caller before the first attempt. */
  readonly key: (input: Input) => Key
  /** What is bound to the key, of an input. Default: the whole input, as JSON. `'none'`: nothing is compared. */
  readonly content?: ((input: Input) => Content) | 'none'
  /** Which fields of the content count. Default: all. */
  readonly fields?: FieldRule
  /** How long the outcome is remembered, counted from completion. A replay never extends it. */
  readonly window: Duration
  /** The longest time after which a repeat may still arrive. Default: the window. A longer one is refused. */
  readonly retryHorizon?: Duration
  /**
   * Keys that carry their time (UUIDv7) and are older than this are refused with KEY_TOO_OLD. Default: a repeat after
   * the window executes anew.
   */
  readonly oldestKey?: Duration
  /**
   * What a duplicate does while the first one is under way: wait for it, or be refused with OPERATION_IN_FLIGHT at
   * once. Where the store's manifest says `refuse: 'coarse'`, a writer of another process cannot be told from one on
   * the same key: there it waits too, and is then refused with `details.certain: false`. Default `'wait'`.
   */
  readonly duplicates?: 'wait' | 'refuse'
  /** How long a duplicate waits at most. Never longer than its deadline. Default `'5s'`. */
  readonly wait?: Duration
  /** How many duplicates of one key may wait in this process; one more is refused with QUEUE_FULL. Default 10,000. */
  readonly waiters?: number
  /** The codes of final failures. Default: none. */
  readonly failures?: readonly Code[]
  /**
   * Makes a final failure of a thrown error, or returns undefined. What the body wrote is rolled back. Where it throws
   * itself, the body's error decides, and `reprise.operation.misjudged` says so. Default: no thrown error is final.
   */
  readonly terminal?: (error: unknown) => Failure<Code> | undefined
  /** How results are stored. Default: JSON. */
  readonly codec?: ValueCodec<Result>
  /** Codecs of earlier versions, to read what they wrote. Default: none. */
  readonly earlierCodecs?: readonly ValueCodec<Result>[]
  /**
   * The most bytes of an outcome that are stored; a larger one leaves a tombstone, and a repeat is refused with
   * OUTCOME_TOO_LARGE. Default 256 KiB.
   */
  readonly largestOutcome?: number
  /** What kind of effect is protected. Default: `'guarded'`. */
  readonly reversibility?: Reversibility
  /** Who mints the keys, in a few words, for an audit. Default `'caller'`. */
  readonly mintedBy?: string
}

/** Any operation, whatever it takes and gives. */
export type AnyOperation = Operation<never, unknown>

/** The five answers of an operation, as plain data. */
export interface OperationAnswers {
  readonly name: string
  /** Where marker and effect commit. */
  readonly mode: RecordMode
  /** Which intent is this, and how long may a repeat arrive? */
  readonly identity: {
    readonly mintedBy: string
    readonly windowMs: number
    readonly retryHorizonMs: number
    /** Whether the horizon was declared, or taken to be the window. */
    readonly horizonDeclared: boolean
    /** Whether content is compared, and by which fields. */
    readonly content: 'compared' | 'ignored'
  }
  /** What makes a repeat harmless: marker and effect in one commit, or a record beside the effect. */
  readonly rung: 'atomic' | 'key'
  /** Which layers repeat, and how often at most. */
  readonly placement: {
    readonly layer: 'transaction' | 'application'
    readonly attempts: number
    /** Layers that are not ours, as they were declared. */
    readonly foreignLayers: readonly ForeignLayer[]
    /** The calls that all of them together would make at most. */
    readonly declared: number
  }
  /** What kind of effect is protected. */
  readonly reversibility: Reversibility
  /** Where marker and effect commit together, or where the marker is kept. */
  readonly domain: { readonly name: string; readonly engine: string; readonly holds: 'marker and effect' | 'marker' }
  /** How long a claim lives without a heartbeat, in ms; undefined in atomic mode. */
  readonly leaseMs: number | undefined
  /** What happens where the effect may have happened; undefined in atomic mode. */
  readonly recovery: Recovery | undefined
}

/** Options of one call of an operation. */
export interface CallOptions {
  /**
   * How long the call may take, or when it ends; the deadline of the intent in flight shortens it, and so does the
   * window. Default: the domain's.
   */
  readonly deadline?: Duration
  /**
   * Ends the call with its reason. Atomic: what the body has done is rolled back, unless COMMIT is on its way. Leased:
   * what was begun is brought to its end, and recorded; only the caller does not wait for it.
   */
  readonly signal?: AbortSignal
}

/** An operation: call it with its input. */
export interface Operation<Input, Result, Code extends string = string> {
  /** Carries the intent out, once: the result, or an `OperationFailedError` for a final failure, or a refusal. */
  (input: Input, options?: CallOptions): Promise<Result>
  /** The same, with a final failure as data. */
  outcome(input: Input, options?: CallOptions): Promise<Outcome<Result, Code>>
  readonly answers: OperationAnswers
}

/** A leased operation: one that a sweep can drive to its outcome. */
export interface LeasedOperation<Input, Result, Code extends string = string> extends Operation<Input, Result, Code> {
  readonly answers: OperationAnswers & { readonly mode: 'leased' }
}
