// What leased operations and their upkeep report: one channel for the life of a claim, one for what sweeps do, one for
// the upkeep of a service.

import { type EventChannel, eventChannel } from './channels.js'

/** Something happened to a claim. */
export interface OperationLeaseEvent {
  readonly operation: string
  /** The name of the store that keeps its records. */
  readonly domain: string
  /** The name of the record, a digest, by which `inspect` finds it. */
  readonly id: string
  /**
   * `claimed`: a claim was made. `taken-over`: one that may have had its effect was taken over. `renewal-failed`: a
   * heartbeat was not confirmed, and is tried again. `lost`: the claim is no longer held. `asked`: the recovery said
   * what happened. `completed`, `released`, `unknown`: how it ended.
   */
  readonly what: 'claimed' | 'taken-over' | 'renewal-failed' | 'lost' | 'asked' | 'completed' | 'released' | 'unknown'
  /** The number of the claim. */
  readonly fence: number
  /** How many claims there were on the key, this one included. */
  readonly claims: number
  /**
   * A short word: the state it ended in, why it was lost or is unknown, what was found. Absent where there is nothing
   * to say.
   */
  readonly why?: string
}

/** A sweep looked at a record, or failed to. */
export interface OperationSweepEvent {
  readonly domain: string
  /** The operation's name; absent where the sweep could not get at the records. */
  readonly operation?: string
  /** The name of the record, a digest, by which `inspect` finds it; absent where the sweep could not get at any. */
  readonly id?: string
  /** What became of it; `error`: the look failed, and is repeated later. */
  readonly what: 'succeeded' | 'failed' | 'released' | 'unknown' | 'held' | 'waiting' | 'elsewhere' | 'error'
  /** The error; absent where there is none. */
  readonly error?: unknown
}

/** A pass of the upkeep that a service does by itself is over. */
export interface OperationUpkeepEvent {
  readonly domain: string
  /** Which part: `sweep`, `records`, `messages`, `sequences`, or whose `turn` it is. */
  readonly part: 'sweep' | 'turn' | 'records' | 'messages' | 'sequences'
  /** How many of each kind; a part that failed tells what it counted until then. */
  readonly counts: Readonly<Record<string, number>>
  /** Why it failed; absent where it did not. It is tried again. */
  readonly error?: unknown
}

/** `reprise.operation.lease`: the life of a claim. */
export const operationLease: EventChannel<OperationLeaseEvent> = /* @__PURE__ */ eventChannel('reprise.operation.lease')

/** `reprise.operation.sweep`: what a sweep did about a record. */
export const operationSweep: EventChannel<OperationSweepEvent> = /* @__PURE__ */ eventChannel('reprise.operation.sweep')

/** `reprise.operation.upkeep`: a pass of the upkeep that a service does by itself is over, or failed. */
export const operationUpkeep: EventChannel<OperationUpkeepEvent> =
  /* @__PURE__ */ eventChannel('reprise.operation.upkeep')
