// A breaker per target: after enough failures the target is left alone for a while, then tried with a few probes.
//
// Only what says something about the target belongs here: a time-out or a 503 is a failure, a refused argument is not.
// The object is thin; what it does is in breaker-machine.ts.

import { type Chance, type Duration, durationMs, maxDurationMs, systemChance } from '../../kernel/index.js'
import { type RetryBreakerEvent, retryBreaker } from '../../telemetry/index.js'
import { type Backoff, type BackoffData, backoffFrom, constantDelay } from '../backoff.js'
import { demand, demandObject, demandOnly, demandRanges, tiny, within } from '../demand.js'
import {
  at,
  type BreakerEvent,
  type BreakerState,
  firstState,
  type Machine,
  type MachineState,
  step,
} from './breaker-machine.js'
import { stepAt, windowLength } from './sliding-window.js'

export type { BreakerState } from './breaker-machine.js'

/** What all kinds share. */
export interface BreakerOptions {
  /**
   * How long it stays open before probes are let in: one length, or a backoff that grows with each trip until the
   * breaker closes again (not full jitter, which may be no time at all). Default `'10s'`.
   */
  readonly openFor?: Duration | Backoff
  /**
   * Calls let in while half-open, all of which must succeed to close it; the first failure opens it again. Default 1.
   */
  readonly probes?: number
  /** Chance for the jitter of `openFor`. Default: the system's. */
  readonly random?: Chance
}

/** Settings of {@link consecutiveBreaker}. */
export interface ConsecutiveBreakerOptions extends BreakerOptions {
  /** Failures in a row that open it, from 1. Default 5. */
  readonly failures?: number
}

interface RatioOptions extends BreakerOptions {
  /** The share of failures that opens it, above 0 and up to 1. Default 0.5. */
  readonly failureRatio?: number
  /** Fewer calls than this prove nothing; 1 to 10,000. Default 10. */
  readonly minimumCalls?: number
}

/** Settings of {@link countBreaker}. */
export interface CountBreakerOptions extends RatioOptions {
  /** How many of the latest calls are judged, 1 to 10,000. Default 100. */
  readonly size?: number
}

/** Settings of {@link windowBreaker}. */
export interface WindowBreakerOptions extends RatioOptions {
  /** How far back calls are judged, in ten steps. Default `'30s'`. */
  readonly window?: Duration
}

/** What the data of all kinds share. */
export interface CommonBreakerData {
  /** How long it stays open. */
  readonly openFor: BackoffData
  /** Calls let in while half-open. */
  readonly probes: number
}

/** A breaker as plain data, without its state. */
export type BreakerData =
  | (CommonBreakerData & { readonly kind: 'consecutive'; readonly failures: number })
  | (CommonBreakerData & {
      readonly kind: 'count'
      readonly size: number
      readonly failureRatio: number
      readonly minimumCalls: number
    })
  | (CommonBreakerData & {
      readonly kind: 'window'
      readonly windowMs: number
      readonly failureRatio: number
      readonly minimumCalls: number
    })

/**
 * The state of a breaker as a plain value, to be kept or handed to another process. Times are relative, because
 * monotonic time is one process's own. Half-open is saved as open with nothing remaining: a probe is due.
 */
export interface BreakerSnapshot {
  /** Whether calls are let in. */
  readonly state: 'closed' | 'open' | 'isolated'
  /** How long it stays open yet, in ms. */
  readonly remainingMs: number
  /** How long it last opened for, in ms; 0 if it is closed. */
  readonly openForMs: number
  /** How often it opened since it was last closed. */
  readonly trips: number
  /** What it remembers of the calls while closed; calls and failures in pairs, the newest last. */
  readonly evidence: readonly number[]
}

/**
 * Decides whether a target may be called. Times are monotonic ms. Each entry is reported once, by `succeeded`, `failed`
 * or `ignored`, with the pass it was given; the report of a call that entered before the last change of state is
 * ignored.
 */
export interface Breaker {
  /** The breaker as plain data, without its state. */
  readonly data: BreakerData
  /** `half-open` also when the time of being open is over and no probe has come yet. */
  state(nowMs: number): BreakerState
  /** Asks to call the target: the pass to report with, or 0 if the call must not be made. */
  tryEnter(nowMs: number): number
  /** The target answered well. */
  succeeded(pass: number, nowMs: number): void
  /** The target failed. */
  failed(pass: number, nowMs: number): void
  /** The call ended in a way that says nothing about the target: aborted, or its own fault. Frees a probe's place. */
  ignored(pass: number): void
  /** Opens it as a failure would: probes are let in after `openFor`. */
  open(nowMs: number): void
  /** Closes it and forgets. */
  close(): void
  /** Opens it until somebody calls `close`. */
  isolate(): void
  /** The present state as a value. */
  snapshot(nowMs: number): BreakerSnapshot
  /** Takes over a saved state. Refuses one that does not fit this breaker with `POLICY_INVALID`. */
  restore(snapshot: BreakerSnapshot, nowMs: number): void
}

/**
 * Opens after a number of failures in a row.
 *
 * @example
 * ```ts
 * import { consecutiveBreaker, retryPolicy } from 'reprise/retry'
 *
 * const policy = retryPolicy({ breaker: consecutiveBreaker({ failures: 5 }) })
 * ```
 */
export function consecutiveBreaker(options?: ConsecutiveBreakerOptions): Breaker {
  return built('consecutive', { failures: 5, ...options })
}

/** Opens when a share of the latest calls failed. Only a failure opens it. */
export function countBreaker(options?: CountBreakerOptions): Breaker {
  return built('count', { size: 100, ...usual, ...options })
}

/** Opens when a share of the calls of a sliding window of time failed. Only a failure opens it. */
export function windowBreaker({ window = '30s', ...options }: WindowBreakerOptions = {}): Breaker {
  return built('window', { windowMs: durationMs(window, { option: 'window' }), ...usual, ...options })
}

const usual = { failureRatio: 0.5, minimumCalls: 10 }

interface Settings extends BreakerOptions {
  readonly windowMs?: number
}

function built(kind: BreakerData['kind'], { openFor = '10s', probes = 1, random, ...rest }: Settings): Breaker {
  const backoff = typeof openFor === 'object' ? openFor : constantDelay(durationMs(openFor, { option: 'openFor' }))
  return breakerFrom({ ...rest, kind, openFor: backoff.data, probes } as BreakerData, random)
}

const most = 10_000

function machineOf(data: BreakerData): Machine {
  demandObject(data, 'breaker')
  demandObject(data.openFor, 'breaker.openFor')
  const { kind, probes } = data
  const openFor = backoffFrom(data.openFor)
  demand(openFor.data.kind !== 'full' && openFor.data.baseMs > 0, 'breaker.openFor')
  demandRanges('breaker', data, { probes: [1, most, 'whole'] })
  const machine = { openFor, probes, windowMs: Infinity, length: windowLength }
  const only = (...known: readonly string[]): void => demandOnly(data, 'breaker', 'kind', 'openFor', 'probes', ...known)
  if (kind === 'consecutive') {
    const { failures } = data
    only('failures')
    demandRanges('breaker', data, { failures: [1, most, 'whole'] })
    // So many failures in a row are so many latest calls, all of which failed.
    return { ...machine, length: 2 * failures, failureRatio: 1, minimumCalls: failures }
  }
  const counted = kind === 'count'
  demand(counted || kind === 'window', 'breaker.kind')
  only(counted ? 'size' : 'windowMs', 'failureRatio', 'minimumCalls')
  demandRanges('breaker', data, {
    ...(counted ? { size: [1, most, 'whole'] } : { windowMs: [1, maxDurationMs] }),
    failureRatio: [tiny, 1],
    // More calls than are remembered would never be reached.
    minimumCalls: [1, counted ? data.size : most, 'whole'],
  })
  return { ...machine, ...data, openFor, ...(counted && { length: 2 * data.size }) }
}

// The name of a breaker in events: that of the first policy it was given to.
const policies = new WeakMap<Breaker, string>()

/** Says to which policy a breaker belongs, for events. The first one counts. */
export function belongsTo(breaker: Breaker, policy: string): void {
  if (!policies.has(breaker)) policies.set(breaker, policy)
}

// Why an event changes the state; what is missing here is done by hand.
const reasons: Partial<Record<BreakerEvent | 'restore', RetryBreakerEvent['why']>> = {
  enter: 'time',
  succeeded: 'probes-succeeded',
  failed: 'probe-failed',
  restore: 'restored',
}

/** The breaker that the data describes, closed. Refuses data that cannot be with `POLICY_INVALID`. */
export function breakerFrom(data: BreakerData, random: Chance = systemChance): Breaker {
  const machine = machineOf(data)
  let now = firstState
  const become = (next: MachineState, event: BreakerEvent | 'restore'): void => {
    const from = now.mode
    const to = next.mode
    now = next
    if (from === to || !retryBreaker.hasSubscribers) return
    const policy = policies.get(breaker)
    const why = event === 'failed' && from === 'closed' ? 'failures' : (reasons[event] ?? 'by-hand')
    retryBreaker.publish({ ...(policy !== undefined && { policy }), from, to, why })
  }
  const apply = (event: BreakerEvent, nowMs: number, pass?: number): void =>
    become(step(machine, now, event, nowMs, random, pass), event)
  const breaker: Breaker = {
    data: Object.freeze({ ...data, openFor: machine.openFor.data }),
    state: (nowMs) => (now.mode === 'open' && nowMs >= now.untilMs ? 'half-open' : now.mode),
    tryEnter(nowMs) {
      const before = now
      apply('enter', nowMs)
      return now !== before || now.mode === 'closed' ? now.generation : 0
    },
    succeeded: (pass, nowMs) => apply('succeeded', nowMs, pass),
    failed: (pass, nowMs) => apply('failed', nowMs, pass),
    ignored: (pass) => apply('ignored', 0, pass),
    open: (nowMs) => apply('open', nowMs),
    close: () => apply('close', 0),
    isolate: () => apply('isolate', 0),
    snapshot(nowMs) {
      const { mode, trips, openForMs, untilMs, evidence } = at(machine, now, nowMs)
      const halfOpen = mode === 'half-open'
      const remainingMs = halfOpen ? 0 : Math.max(0, untilMs - nowMs)
      return { state: halfOpen ? 'open' : mode, remainingMs, openForMs, trips, evidence: [...evidence] }
    },
    restore(snapshot, nowMs) {
      become({ ...restored(machine, snapshot, nowMs), generation: now.generation + 1 }, 'restore')
    },
  }
  return breaker
}

function restored({ windowMs, length }: Machine, snapshot: BreakerSnapshot, nowMs: number): MachineState {
  demandObject(snapshot, 'breaker.snapshot')
  const { state: mode, remainingMs, openForMs, trips, evidence } = snapshot
  const open = mode === 'open'
  demand(
    (open || mode === 'closed' || mode === 'isolated') &&
      within(openForMs, open ? [tiny, maxDurationMs] : [0, 0]) &&
      within(remainingMs, [0, openForMs]) &&
      within(trips, open ? [1, 1e9, 'whole'] : [0, 0]) &&
      Array.isArray(evidence) &&
      evidence.length <= length &&
      evidence.length % 2 === 0 &&
      // Pairs of calls and failures, of which there are no more than calls.
      evidence.every((count, index) => within(count, [0, index % 2 ? evidence[index - 1] : 1e9, 'whole'])),
    'breaker.snapshot',
  )
  const untilMs = nowMs + remainingMs
  return { ...firstState, mode, trips, openForMs, untilMs, evidence: [...evidence], step: stepAt(nowMs, windowMs) }
}
