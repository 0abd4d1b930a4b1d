// The words of the machine: what can happen to a record, and what may be decided about it.

import type { AuditNote, RecordChange, RecordMode, RecordOutcome } from '../atomicity/index.js'

/**
 * What to do about an operation that may have had its effect. `rerun`: run it again, since the receiver honours our key
 * for this long after the first claim. `resolve`: ask what happened. `hold`: a person settles it.
 */
export type Recovery =
  | { readonly kind: 'rerun'; readonly windowMs: number }
  | { readonly kind: 'resolve' }
  | { readonly kind: 'hold' }

/** Somebody wants to carry the operation out. */
export interface ClaimEvent {
  readonly kind: 'claim'
  /** The mode of the operation's definition. */
  readonly mode: RecordMode
  /**
   * Names this claim: new for every claim that is tried, and the same only to find out what became of it after a lost
   * answer, before anything was sent.
   */
  readonly token: string
  /** Whether the content is the one that the record is bound to; true where there is no fingerprint to compare with. */
  readonly sameContent: boolean
  /** The fingerprint of the content, for a key that is used anew. */
  readonly fingerprint: string | undefined
  /** How long the claim lives without a heartbeat, in ms; undefined in atomic mode. */
  readonly leaseMs: number | undefined
  /**
   * How long past its time a lease must be before it is taken over, in ms; and how long before its end the receiver's
   * window is not relied on any more.
   */
  readonly marginMs: number
  /** What to do where it may have happened; undefined in atomic mode. */
  readonly recovery: Recovery | undefined
  /** The input, as text, for recovery; undefined: not kept. */
  readonly input: string | undefined
}

/** A sweep has come to a record. */
export interface LookEvent {
  readonly kind: 'look'
  /** The claim's token, should the record be taken over. */
  readonly token: string
  /** How long that claim lives without a heartbeat, in ms. */
  readonly leaseMs: number
  /** How long before its end the receiver's window is not relied on any more, in ms. */
  readonly marginMs: number
  /** What to do where it may have happened. */
  readonly recovery: Recovery
  /** Why what the record keeps cannot be read, so that nobody can go on with it. Default: it can be. */
  readonly unreadable?: string
}

/** What only the owner of a claim may do. */
export type OwnerEvent =
  | { readonly kind: 'renew'; readonly token: string; readonly fence: number; readonly leaseMs: number }
  | ({ readonly kind: 'complete'; readonly token: string; readonly fence: number } & RecordOutcome)
  | {
      readonly kind: 'release'
      readonly token: string
      readonly fence: number
      /**
       * `unsent`: nothing was sent under this claim, at no time of it. `asked`: the world was asked, and nothing
       * happened under any claim, nor can it any more. An attempt that is proven unsent says nothing about the attempts
       * before it: after one of them that may have arrived, `lose` is the event.
       */
      readonly proof: 'unsent' | 'asked'
    }
  | {
      readonly kind: 'lose'
      readonly token: string
      readonly fence: number
      readonly because: string
      /** When a sweep is to look at it, in ms from now; undefined: never, a person settles it. */
      readonly lookInMs: number | undefined
    }

/** A person decides. */
export interface SettleEvent {
  readonly kind: 'settle'
  /** How long past its time a lease must be before it is decided on, in ms. */
  readonly marginMs: number
  /** What the person says: an outcome to store, or that the key is free again. */
  readonly decision: RecordOutcome | { readonly state: 'released' }
}

/** Everything that can happen to a record. */
export type MachineEvent = ClaimEvent | LookEvent | OwnerEvent | SettleEvent

/** Why a claim, a look or a settlement is refused. */
export type Refusal = 'absent' | 'finished' | 'format' | 'in-flight' | 'invalid' | 'mismatch' | 'mode' | 'unknown'

/** How long a run that repeats may go on sending, however often its lease is renewed. */
interface SendLimit {
  /**
   * In ms from the moment the record was read: after it the receiver may have forgotten the key, and another send be
   * another effect.
   */
  readonly sendWithinMs: number
}

/** What is to be done. A change is written only if the record is still the one that was decided on. */
export type Decision =
  /** Nothing is there: insert the claim, then run. */
  | { readonly act: 'insert' }
  /** Write the claim, then run: `anew` after the memory ended, `rerun` where it may have happened. */
  | { readonly act: 'execute'; readonly how: 'anew'; readonly change: RecordChange }
  | ({ readonly act: 'execute'; readonly how: 'rerun'; readonly change: RecordChange } & SendLimit)
  /** Write the claim, then ask what happened. */
  | { readonly act: 'ask'; readonly change: RecordChange }
  /**
   * The claim is ours already; its answer was lost. Write the change, which begins the lease anew, then do what the
   * claim was for.
   */
  | { readonly act: 'own'; readonly how: 'run' | 'ask'; readonly change: RecordChange }
  | ({ readonly act: 'own'; readonly how: 'rerun'; readonly change: RecordChange } & SendLimit)
  /** Hand out the stored outcome. */
  | { readonly act: 'replay' }
  /** Say why not; write the change first, where there is one. */
  | {
      readonly act: 'refuse'
      readonly because: Refusal
      readonly change?: RecordChange
      /** When another try makes sense, in ms from now; absent where time alone changes nothing. */
      readonly retryInMs?: number
    }
  | { readonly act: 'write'; readonly change: RecordChange; readonly note?: Omit<AuditNote, 'actor'> }
  /** Remove the record: the key is free. */
  | { readonly act: 'remove' }
  /** It is so already; the answer to the write was lost. */
  | { readonly act: 'done' }
  /** The claim is no longer ours: whatever it wanted to write is refused. */
  | { readonly act: 'stale' }
  /** Nothing to do, now. */
  | { readonly act: 'wait' }
