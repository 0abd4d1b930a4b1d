// The contention model for jitter: clients that all start at once and write one row with optimistic concurrency
// control.
//
// After Brooker, "Exponential Backoff And Jitter" (2015) and its published simulator. Each client reads the row's
// version and writes; the write succeeds if the version is still the one that was read. The server is never overloaded
// here, so no backoff at all looks fastest: this model compares jitter, the storm model says what repeats do to a
// service.

import { type Random, RepriseError, seededRandom } from '../kernel/index.js'
import { type Backoff, constantDelay, decorrelatedJitter, equalJitter, fullJitter, noJitter } from '../retry/index.js'
import { EventQueue } from './event-queue.js'
import { normal } from './sampling.js'

/** Settings of {@link simulateContention}. */
export interface ContentionOptions {
  /** How clients wait after a failed write. */
  readonly backoff: Backoff
  /** How many clients compete, 1 to 10,000. Default 100. */
  readonly clients?: number
  /** How many runs the result is the mean of, 1 to 10,000. Default 100. */
  readonly trials?: number
  /** Same seed, same result. Default 1. */
  readonly seed?: number | string
  /** Mean of the time a message takes one way, in ms; its size is taken if it is drawn below 0. Default 10. */
  readonly hopMs?: number
  /** Standard deviation of that time, in ms. Default 2. */
  readonly hopDeviationMs?: number
}

/** Means over all trials. */
export interface ContentionResult {
  /** The clients of the run. */
  readonly clients: number
  /** Writes sent until every client had succeeded. */
  readonly calls: number
  /** How long that took, in ms. */
  readonly timeMs: number
}

/** The backoffs of the published comparison, by their names there. */
export type PublishedBackoff = 'none' | 'exponential' | 'equal' | 'full' | 'decorrelated'

/**
 * The published comparison on our own backoffs. `baseMs` is the first ceiling of the exponential kinds; the publication
 * starts its exponent at 1, so its base of 5 is a first ceiling of 10, and decorrelated jitter begins at half of
 * `baseMs`.
 */
export function publishedBackoffs(baseMs = 10, capMs = 2000): Readonly<Record<PublishedBackoff, Backoff>> {
  return {
    none: constantDelay(0),
    exponential: noJitter({ baseMs, capMs }),
    equal: equalJitter({ baseMs, capMs }),
    full: fullJitter({ baseMs, capMs }),
    decorrelated: decorrelatedJitter({ baseMs: baseMs / 2, capMs }),
  }
}

const readArrives = 0
const writeArrives = 1
const most = 10_000

/** Runs the contention model. Deterministic: same settings, same result. */
export function simulateContention(options: ContentionOptions): ContentionResult {
  if (typeof options?.backoff?.delayMs !== 'function') {
    throw new RepriseError('ARGUMENT_INVALID', 'backoff is a Backoff, such as fullJitter().')
  }
  const { clients = 100, trials = 100, seed = 1, hopMs = 10, hopDeviationMs = 2 } = options
  demandWhole(clients, 'clients')
  demandWhole(trials, 'trials')
  if (!(hopMs >= 0 && hopMs <= most && hopDeviationMs >= 0 && hopDeviationMs <= most)) {
    throw new RepriseError('ARGUMENT_INVALID', `hopMs and hopDeviationMs are from 0 to ${most}.`)
  }
  const random = seededRandom(seed)
  const hop = (): number => Math.abs(normal(random, hopMs, hopDeviationMs))
  const total = { calls: 0, timeMs: 0 }
  for (let trial = 0; trial < trials; trial += 1) {
    const { calls, timeMs } = oneTrial(options.backoff, clients, hop, random)
    total.calls += calls
    total.timeMs += timeMs
  }
  return { clients, calls: total.calls / trials, timeMs: total.timeMs / trials }
}

function demandWhole(value: number, name: string): void {
  if (!Number.isInteger(value) || value < 1 || value > most) {
    throw new RepriseError('ARGUMENT_INVALID', `${name} is a whole number from 1 to ${most}.`)
  }
}

function oneTrial(
  backoff: Backoff,
  clients: number,
  hop: () => number,
  random: Random,
): { readonly calls: number; readonly timeMs: number } {
  const events = new EventQueue()
  const readVersions = new Int32Array(clients)
  const failures = new Int32Array(clients)
  const delays = new Float64Array(clients)
  let version = 0
  let calls = 0
  let timeMs = 0
  for (let client = 0; client < clients; client += 1) events.add(hop(), readArrives, client)
  while (events.take()) {
    const client = events.subject
    if (events.kind === readArrives) {
      readVersions[client] = version
      events.add(events.timeMs + hop() + hop(), writeArrives, client)
      continue
    }
    calls += 1
    const answeredMs = events.timeMs + hop()
    if (readVersions[client] === version) {
      version += 1
      timeMs = Math.max(timeMs, answeredMs)
      continue
    }
    const failed = (failures[client] as number) + 1
    failures[client] = failed
    const delayMs = backoff.delayMs(failed, delays[client] as number, random)
    delays[client] = delayMs
    events.add(answeredMs + hop() + delayMs, readArrives, client)
  }
  return { calls, timeMs }
}
