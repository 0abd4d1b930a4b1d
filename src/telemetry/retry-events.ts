// What retries report: one channel for each kind of decision.

import { type EventChannel, eventChannel } from './channels.js'

/** An attempt failed, and this was decided about it. */
export interface RetryAttemptEvent {
  readonly policy: string
  /** Which call it was; the first is 1. */
  readonly attempt: number
  /** Would another try help? */
  readonly help: 'transient' | 'permanent' | 'discard'
  /** May it have happened? */
  readonly happened: 'no' | 'maybe'
  /** The word by which it was classified, such as `http-503`. */
  readonly why: string
  /**
   * The wait that was decided on before the next attempt, in ms; absent when there is none. In hedged calls: what was
   * asked for.
   */
  readonly delayMs?: number
  /** Why there is no further attempt; absent when there is one. */
  readonly stop?: string
  /** What the budget held afterwards, in its own unit; absent without one. */
  readonly budgetLevel?: number
}

/** A call, or a further attempt of one, was not made. */
export interface RetryRefusedEvent {
  readonly policy: string
  readonly by: 'breaker' | 'deadline' | 'limit' | 'signal'
}

/** A retry runs inside another one. */
export interface RetryLayersEvent {
  /** The inner layer's name: of a policy, or of the domain of a transaction. */
  readonly policy: string
  /** What the inner layer is. */
  readonly kind: 'policy' | 'transaction'
  /**
   * How many layers there are: this one, those around it, a trusted caller in another process, and those that are not
   * ours and were declared.
   */
  readonly depth: number
  /** The calls that all layers together would make at most if each repeated. */
  readonly declared: number
  /**
   * The calls that this layer may make by itself: of a policy inside one that repeats, for what may have happened.
   */
  readonly allowed: number
  /** The calls that the intent may cause in all, whoever repeats: the largest `attempts` on its way. */
  readonly allowance: number
  /** The repeats that its layers had made. */
  readonly spent: number
}

/** A hedged call sent another attempt, or would have and did not. */
export interface RetryHedgeEvent {
  readonly policy: string
  /** The number of the attempt that was sent, or would have been; the first hedge is 2. */
  readonly attempt: number
  /** How many attempts of the call were out already; 0 where all of them had failed. */
  readonly out: number
  /** Who refused it; absent when it was sent. `'attempts'` comes with the last one that may be sent. */
  readonly refused?: 'allowance' | 'attempts' | 'breaker' | 'budget' | 'deadline' | 'limit'
}

/** An attempt found no free slot under a concurrency limit: this is how its wait in the queue ended. */
export interface RetryLimitEvent {
  readonly policy: string
  /**
   * `entered`: it got its slot. `queue`: the queue was full. `deadline`: too little was left of it. `breaker`: it was
   * open, so that waiting had no use. `signal`: the caller left.
   */
  readonly ended: 'entered' | 'queue' | 'deadline' | 'breaker' | 'signal'
  /** How long it waited, in ms. */
  readonly waitedMs: number
  /** How many attempts were out then, this one included if it entered. */
  readonly out: number
  /** How many waited then. */
  readonly waiting: number
}

/** What a breaker can be. */
export type BreakerMode = 'closed' | 'open' | 'half-open' | 'isolated'

/** A breaker changed its state. */
export interface RetryBreakerEvent {
  /** The name of the first policy that was made with the breaker; absent where none was. */
  readonly policy?: string
  readonly from: BreakerMode
  readonly to: BreakerMode
  /** Why: failures, its time of being open, its probes, somebody's hand, or a state that was restored. */
  readonly why: 'failures' | 'time' | 'probe-failed' | 'probes-succeeded' | 'by-hand' | 'restored'
}

/** `reprise.retry.attempt`: an attempt failed. */
export const retryAttempt: EventChannel<RetryAttemptEvent> = /* @__PURE__ */ eventChannel('reprise.retry.attempt')

/** `reprise.retry.refused`: a call was not made. */
export const retryRefused: EventChannel<RetryRefusedEvent> = /* @__PURE__ */ eventChannel('reprise.retry.refused')

/** `reprise.retry.hedge`: a hedge was sent, or refused. */
export const retryHedge: EventChannel<RetryHedgeEvent> = /* @__PURE__ */ eventChannel('reprise.retry.hedge')

/** `reprise.retry.limit`: an attempt had to wait for a slot, or found none. */
export const retryLimit: EventChannel<RetryLimitEvent> = /* @__PURE__ */ eventChannel('reprise.retry.limit')

/** `reprise.retry.breaker`: a breaker changed its state. */
export const retryBreaker: EventChannel<RetryBreakerEvent> = /* @__PURE__ */ eventChannel('reprise.retry.breaker')

/** `reprise.retry.layers`: a retry inside a retry. */
export const retryLayers: EventChannel<RetryLayersEvent> = /* @__PURE__ */ eventChannel('reprise.retry.layers')
