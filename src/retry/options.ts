// Options of a policy and of a call, and a policy as plain data.

import type { Key, SequenceNumber } from '../identity/index.js'
import {
  type Chance,
  type Clock,
  type Deadline,
  type Duration,
  demandKnown,
  type ErrorCode,
  RepriseError,
} from '../kernel/index.js'
import type { Backoff, BackoffData } from './backoff.js'
import type { ConcurrencyData, ConcurrencyLimit } from './concurrency/slots.js'
import { areForeignLayers, type ForeignLayer } from './foreign-layers.js'
import type { AttemptRecord } from './history.js'
import type { Breaker, BreakerData } from './target/breaker.js'
import type { Budget, BudgetData } from './target/budget.js'
import type { Classifier, ReturnedVerdict, Verdict } from './verdict.js'

/** What the body gets to know of the attempt it makes. Under `keyed(key)` there is always a key. */
export interface Attempt<Named extends Key | undefined = Key | undefined> {
  /** Which call this is; the first is 1. */
  readonly number: number
  /** The key to send: the guard's, the same in every attempt. */
  readonly key: Named
  /** When nobody waits any more; undefined without a deadline. */
  readonly deadline: Deadline | undefined
  /** Aborts when the attempt is over: its time-out, the deadline, the caller's own signal, or a hedge that won. */
  readonly signal: AbortSignal
  /** The number to send: the guard's, the same in every attempt. Absent under other guards than `sequenced`. */
  readonly sequence?: SequenceNumber
}

/** An attempt under `sequenced`: there always is a number. */
export interface SequencedAttempt extends Attempt<undefined> {
  readonly sequence: SequenceNumber
}

/** The caller's function under `sequenced`. */
export type SequencedBody<Result> = (attempt: SequencedAttempt) => ReturnType<Body<Result>>

/** The caller's function. It returns its result, or its verdict on a failure as a value. */
export type Body<Result, Named extends Key | undefined = Key | undefined> = (
  attempt: Attempt<Named>,
) => Result | ReturnedVerdict<Result> | PromiseLike<Result | ReturnedVerdict<Result>>

/** How a policy hedges: made by `hedging`, and used only under a guard. */
export interface Hedging {
  /** How long an attempt is waited for before the next is sent, in ms. */
  readonly afterMs: number
}

/** Options of `hedging`. */
export interface HedgeOptions {
  /** How long to wait for an attempt before sending the next. */
  readonly after: Duration
}

/** Options of a policy. Each has a default. */
export interface RetryPolicyOptions {
  /** The name in events and reports. Default `'retry'`. */
  readonly name?: string
  /** How many calls are made at most, the first included; 1 to 20. Default 3. */
  readonly attempts?: number
  /** How long to wait between attempts. Default `fullJitter({ baseMs: 50, capMs: 2_000 })`. */
  readonly backoff?: Backoff
  /**
   * What limits repeats over all calls of this policy. Default `tokenBudget()`; false: none, and 429 and 503 end the
   * call.
   */
  readonly budget?: Budget | false
  /** What stops calling a target that keeps failing. Default: none. */
  readonly breaker?: Breaker
  /** What limits the attempts that are out at a time: `concurrency({ most: 20, queue: 40 })`. Default: nothing. */
  readonly limit?: ConcurrencyLimit
  /**
   * How long the whole call may take, waits included. The deadline of the intent in flight shortens it. Default: no
   * limit.
   */
  readonly deadline?: Duration
  /** How long one attempt may take. Default: no limit. */
  readonly attemptTimeout?: Duration
  /** The least that must be left of the deadline for an attempt to be worth making. Default `1` ms. */
  readonly minimumRemainder?: Duration
  /** The longest wait that a `Retry-After` may ask for; if it asks for more, the call ends. Default `'60s'`. */
  readonly maxRetryAfter?: Duration
  /** What failures mean, asked before the classifiers for HTTP and the network. Default: none of your own. */
  readonly classify?: Classifier
  /** Sends another attempt while the first is still out: `hedging({ after: '200ms' })`. Default: never. */
  readonly hedge?: Hedging
  /** `'own'`: repeats although a layer around it does. Default `'inherit'`: then it makes one attempt. */
  readonly layer?: 'inherit' | 'own'
  /**
   * Layers that are not ours and repeat inside this policy or around it: `[{ name: 'envoy', attempts: 2 }]`. They count
   * in the product that is reported. Default: none.
   */
  readonly foreignLayers?: readonly ForeignLayer[]
  /**
   * Declares that its bodies call no other policy. Then first attempts need not be seen from inside, and never enter
   * async context, also not after a repeat. A policy that is called inside all the same is seen where the body calls
   * it at once, and in repeats. Default false.
   */
  readonly innermost?: boolean
  /** Default the system's clock. */
  readonly clock?: Clock
  /** Default the system's randomness. */
  readonly random?: Chance
}

/** Options of one call. */
export interface RunOptions<Result> {
  /** Ends the call: no further attempt, and it rejects with the signal's reason at once. */
  readonly signal?: AbortSignal
  /** A deadline of this call; the earliest of all counts. */
  readonly deadline?: Duration | Deadline
  /** Filled with a record of each failed attempt, also when the call succeeds in the end. */
  readonly history?: AttemptRecord[]
  /** The value in place of an error that a classifier says to discard. Default: the error is thrown. */
  readonly onDiscard?: (verdict: Verdict, error: unknown) => Result
  /**
   * Asked when an unguarded attempt may have happened: looks at the world. What it finds ends the call, or proves that
   * the attempt did not happen, so that it can be repeated. Undefined: it cannot tell either. It has until the
   * deadline, or a minute where there is none; then its signal aborts, and it could not tell.
   */
  readonly resolve?: (error: unknown, signal: AbortSignal) => PromiseLike<Resolution<Result>> | Resolution<Result>
}

/** What became of an attempt, found out by looking. */
export type Resolution<Result> =
  | { readonly happened: true; readonly value: Result }
  | { readonly happened: false }
  | undefined

/** A policy as plain data, for reports, audits and simulators. */
export interface PolicyData {
  /** The name in events and reports. */
  readonly name: string
  /** Calls in all, the first included. */
  readonly attempts: number
  /** The waits between attempts. */
  readonly backoff: BackoffData
  /** What limits repeats; absent: nothing does. */
  readonly budget?: BudgetData
  /** What stops calling a failing target; absent: nothing does. */
  readonly breaker?: BreakerData
  /** What limits the attempts that are out at a time; absent: nothing does. */
  readonly limit?: ConcurrencyData
  /** How long a whole call may take, in ms. */
  readonly deadlineMs?: number
  /** How long one attempt may take, in ms. */
  readonly attemptTimeoutMs?: number
  /** The least that must be left of the deadline for an attempt, in ms. */
  readonly minimumRemainderMs: number
  /** The longest wait that a server may ask for, in ms. */
  readonly maxRetryAfterMs: number
  /** How long to wait before a hedge, in ms; absent: no hedges. */
  readonly hedgeAfterMs?: number
  /** Whether it repeats although a layer around it does. */
  readonly layer: 'inherit' | 'own'
  /** Whether its bodies are declared to call no other policy; absent: they may. */
  readonly innermost?: boolean
  /** Layers that are not ours, as they were declared; absent: none. */
  readonly foreignLayers?: readonly ForeignLayer[]
}

type Test = (part: unknown) => boolean

const is =
  (kind: 'boolean' | 'function' | 'object' | 'string'): Test =>
  (part) =>
    typeof part === kind && part !== null
const has =
  (member: string): Test =>
  (part) =>
    typeof (part as Record<string, unknown> | null)?.[member] === 'function'

// Numbers, durations and words are judged where they are read.
const any: Test = () => true

// What an option must be, where it is given.
const policyParts: Readonly<Record<keyof RetryPolicyOptions, Test>> = {
  name: is('string'),
  attempts: any,
  deadline: any,
  attemptTimeout: any,
  minimumRemainder: any,
  maxRetryAfter: any,
  layer: any,
  classify: is('function'),
  innermost: is('boolean'),
  foreignLayers: areForeignLayers,
  hedge: has('callOf'),
  backoff: has('delayMs'),
  budget: (part) => part === false || has('tryRepeat')(part),
  breaker: has('tryEnter'),
  limit: has('callOf'),
  clock: has('monotonicMs'),
  random: has('next'),
}
const callParts: Readonly<Record<keyof RunOptions<unknown>, Test>> = {
  signal: has('addEventListener'),
  history: (part) => Array.isArray(part) && Object.isExtensible(part),
  onDiscard: is('function'),
  resolve: is('function'),
  deadline: (part) => typeof part !== 'object' || Math.abs((part as Deadline | null)?.expiresAtMs as number) >= 0,
}

/**
 * Refuses what is no option of a policy, or not known as one, with `POLICY_INVALID`. Data from a file, and callers
 * without types, may give anything.
 */
export function demandPolicyOptions(options: RetryPolicyOptions): void {
  refuse(options, policyParts, 'POLICY_INVALID')
}

/** Refuses what is no option of a call, or not known as one, with `ARGUMENT_INVALID`. */
export function demandRunOptions<Result>(options: RunOptions<Result>): void {
  refuse(options, callParts, 'ARGUMENT_INVALID')
}

function refuse(options: object, parts: Readonly<Record<string, Test>>, code: ErrorCode): void {
  demandKnown(options, Object.keys(parts), 'options', code)
  for (const [path, test] of Object.entries(parts)) {
    const part = (options as Record<string, unknown>)[path]
    if (part !== undefined && !test(part)) throw new RepriseError(code, `Not valid: ${path}.`, { details: { path } })
  }
}
