// What operations report: one channel for each kind of decision. A record's name is a digest; no message holds a key.

import { type EventChannel, eventChannel } from './channels.js'

/** What every message about an operation says. */
export interface OperationEvent {
  readonly domain: string
  readonly operation: string
  /** Where marker and effect commit. */
  readonly mode: 'atomic' | 'leased'
  /** The record's name. */
  readonly id: string
}

/** A key was claimed, and the body begins. */
export interface OperationClaimedEvent extends OperationEvent {
  /** Which attempt it was; the first is 1. */
  readonly attempt: number
}

/** An outcome was handed out again. */
export interface OperationReplayedEvent extends OperationEvent {
  readonly outcome: 'succeeded' | 'failed'
  /** Where it came from: a leader in this process, or the store. */
  readonly from: 'leader' | 'store'
}

/** A call was refused; nothing was executed by it. */
export interface OperationRefusedEvent extends OperationEvent {
  /** The code of the error. */
  readonly code: string
}

/** The `terminal` of a definition made a mistake: what the body threw was taken for no final failure. */
export interface OperationMisjudgedEvent extends OperationEvent {
  /** What it did: it threw, or returned something other than a failure or undefined. */
  readonly because: 'threw' | 'no-failure'
  /** What it threw. Undefined where it threw nothing. */
  readonly error?: unknown
}

/** `reprise.operation.claimed`: a key was claimed; the claim commits with the outcome, or not at all. */
export const operationClaimed: EventChannel<OperationClaimedEvent> =
  /* @__PURE__ */ eventChannel('reprise.operation.claimed')

/** `reprise.operation.executed`: an operation succeeded, and its outcome is stored. */
export const operationExecuted: EventChannel<OperationEvent> =
  /* @__PURE__ */ eventChannel('reprise.operation.executed')

/** `reprise.operation.failed`: an operation failed for good, and its failure is stored. */
export const operationFailed: EventChannel<OperationEvent> = /* @__PURE__ */ eventChannel('reprise.operation.failed')

/** `reprise.operation.replayed`: a stored outcome was handed out. */
export const operationReplayed: EventChannel<OperationReplayedEvent> =
  /* @__PURE__ */ eventChannel('reprise.operation.replayed')

/** `reprise.operation.refused`: a call was refused, such as for other content under the same key. */
export const operationRefused: EventChannel<OperationRefusedEvent> =
  /* @__PURE__ */ eventChannel('reprise.operation.refused')

/** `reprise.operation.misjudged`: the `terminal` of a definition threw, or returned something other than a failure. */
export const operationMisjudged: EventChannel<OperationMisjudgedEvent> =
  /* @__PURE__ */ eventChannel('reprise.operation.misjudged')
