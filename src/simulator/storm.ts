// The retry storm: intents arrive, time out behind a slow service, and are repeated while the service still works on
// what nobody waits for. Discrete events in virtual time; after Bronson et al. (HotOS 2021) and Huang et al. (OSDI
// 2022).

import { type Random, seededRandom } from '../kernel/index.js'
import { type Slots, type StopReason, transient, type Verdict } from '../retry/index.js'
import { EventQueue } from './event-queue.js'
import { exponential } from './sampling.js'
import { type StormFindings, type StormSecond, stormFindings } from './storm-findings.js'
import { StormFleet } from './storm-fleet.js'
import { StormService } from './storm-service.js'
import { type StormOptions, type StormSettings, stormSettings } from './storm-settings.js'

/** Counts over a whole run. */
export interface StormTotals {
  /** Intents that arrived. */
  readonly offered: number
  /** Requests sent, repeats included. */
  readonly attempts: number
  /** Intents whose client got its answer in time. */
  readonly succeeded: number
  /** Requests the service worked off, whether or not somebody still waited. */
  readonly completions: number
  /** Completions of an intent that the service had completed before. */
  readonly repeatedCompletions: number
  /** Effects beyond the first of an intent: the repeated completions of a service that does not recognise repeats. */
  readonly doubleBilled: number
  /** Why intents were given up, and how often. */
  readonly stops: Readonly<Partial<Record<StopReason, number>>>
}

/** A whole run. */
export interface StormReport {
  /** Everything the run depended on. */
  readonly settings: StormSettings
  /** What became of the service. */
  readonly findings: StormFindings
  /** Counts over the run. */
  readonly totals: StormTotals
  /** Second by second. */
  readonly series: readonly StormSecond[]
}

const arrives = 0
const timesOut = 1
const completes = 2
const sends = 3
const leavesQueue = 4
const begins = 5

const timedOut = transient('timeout', 'maybe')
const refusals: Readonly<Record<StormSettings['refusal'], Verdict>> = {
  overload: transient('http-503', 'no', { overload: true }),
  unsent: transient('ECONNREFUSED', 'no'),
}

const nobody = -1

interface Intent {
  readonly client: number
  readonly startedMs: number
  failures: number
  delayMs: number
  anyMaybe: boolean
  /** The place of the attempt that its client waits for, or -1. */
  awaited: number
  pass: number
  completions: number
  /** The place of its wait for a slot, or -1, and how that wait ends. */
  queued: number
  leaveQueue: () => void
}

/** A run that is played second by second, for those who draw it while it happens. */
export class Storm {
  /** Everything the run depends on. */
  readonly settings: StormSettings
  readonly #events = new EventQueue()
  readonly #service: StormService
  readonly #fleet: StormFleet
  readonly #arrivals: Random
  // An attempt has a place until both its time-out and the service are done with it; then the place is used again.
  readonly #places: Intent[] = []
  readonly #holders: number[] = []
  readonly #free: number[] = []
  readonly #series: StormSecond[] = []
  readonly #stops: Partial<Record<StopReason, number>> = {}
  #offered = 0
  #sent = 0
  #goodput = 0
  #completions = 0
  #repeated = 0

  constructor(options: StormOptions) {
    this.settings = stormSettings(options)
    // Streams of their own, so that two policies meet the same arrivals.
    const stream = (name: string): Random => seededRandom(`${name} ${this.settings.seed}`)
    this.#arrivals = stream('arrivals')
    this.#service = new StormService(this.settings, stream('service'))
    this.#fleet = new StormFleet(this.settings, stream('clients'))
    this.#events.add(this.#gapMs(), arrives, 0)
  }

  /** Plays the next second; undefined when the run is over. */
  next(): StormSecond | undefined {
    const second = this.#series.length
    if (second >= this.settings.seconds) return undefined
    const endMs = (second + 1) * 1000
    this.#offered = 0
    this.#sent = 0
    this.#goodput = 0
    while (this.#events.nextMs() < endMs && this.#events.take()) this.#happen(this.#events.timeMs)
    const played: StormSecond = {
      second,
      offered: this.#offered,
      attempts: this.#sent,
      goodput: this.#goodput,
      queue: this.#service.queue,
      tokens: this.#fleet.meanLevel(endMs),
    }
    this.#series.push(played)
    return played
  }

  /** What has happened so far. */
  report(): StormReport {
    const series = [...this.#series]
    const sum = (member: 'offered' | 'attempts' | 'goodput'): number =>
      series.reduce((total, second) => total + second[member], 0)
    return {
      settings: this.settings,
      findings: stormFindings(this.settings, series),
      totals: {
        offered: sum('offered'),
        attempts: sum('attempts'),
        succeeded: sum('goodput'),
        completions: this.#completions,
        repeatedCompletions: this.#repeated,
        doubleBilled: this.settings.idempotent ? 0 : this.#repeated,
        stops: { ...this.#stops },
      },
      series,
    }
  }

  #happen(nowMs: number): void {
    const { kind, subject } = this.#events
    if (kind === arrives) this.#arrive(nowMs)
    else if (kind === completes) this.#complete(subject, nowMs)
    else if (kind === timesOut) this.#timeOut(subject, nowMs)
    else if (kind === sends) this.#send(subject, nowMs)
    else if (kind === leavesQueue) this.#leaveQueue(subject)
    else this.#begin(subject, nowMs)
  }

  #gapMs(): number {
    return exponential(this.#arrivals, 1000 / this.settings.load)
  }

  #arrive(nowMs: number): void {
    this.#offered += 1
    const client = Math.floor(this.#arrivals.next() * this.settings.clients)
    this.#events.add(nowMs + this.#gapMs(), arrives, 0)
    const intent: Intent = {
      client,
      startedMs: nowMs,
      failures: 0,
      delayMs: 0,
      anyMaybe: false,
      awaited: nobody,
      pass: 0,
      completions: 0,
      queued: nobody,
      leaveQueue: () => {},
    }
    this.#send(this.#placeFor(intent), nowMs)
  }

  #send(place: number, nowMs: number): void {
    const intent = this.#places[place] as Intent
    const slots = this.#fleet.slots(intent.client)
    if (slots === undefined || slots.tryEnter()) this.#begin(place, nowMs)
    else if (this.#fleet.isOpen(intent.client, nowMs)) this.#giveUp(place, 'breaker')
    else this.#wait(place, slots, nowMs)
  }

  // The wait has a place until both the queue and the deadline are done with it; the attempt gets one of its own.
  #wait(place: number, slots: Slots, nowMs: number): void {
    const intent = this.#places[place] as Intent
    const leave = slots.wait(() => {
      intent.queued = nobody
      this.#letGo(place)
      this.#events.add(this.#events.timeMs, begins, this.#placeFor(intent))
    })
    if (leave === undefined) {
      this.#giveUp(place, 'limit')
      return
    }
    intent.queued = place
    intent.leaveQueue = leave
    const limitMs = this.#remainingMs(intent, nowMs) - this.settings.policy.minimumRemainderMs
    const isLimited = limitMs !== Number.POSITIVE_INFINITY
    this.#holders[place] = isLimited ? 2 : 1
    if (isLimited) this.#events.add(nowMs + Math.max(0, limitMs), leavesQueue, place)
  }

  #leaveQueue(place: number): void {
    const intent = this.#places[place] as Intent
    if (intent.queued === place) {
      intent.queued = nobody
      intent.leaveQueue()
      this.#stop('limit')
      this.#letGo(place)
    }
    this.#letGo(place)
  }

  #giveUp(place: number, reason: StopReason): void {
    this.#stop(reason)
    this.#free.push(place)
  }

  #begin(place: number, nowMs: number): void {
    const intent = this.#places[place] as Intent
    intent.pass = this.#fleet.enter(intent.client, nowMs)
    if (intent.pass === 0) {
      this.#leaveSlot(intent)
      this.#giveUp(place, 'breaker')
      return
    }
    this.#sent += 1
    const admission = this.#service.admit(place)
    if (admission === 'refused') {
      this.#free.push(place)
      this.#fail(intent, refusals[this.settings.refusal], nowMs)
      return
    }
    this.#holders[place] = 2
    intent.awaited = place
    if (admission === 'working') this.#events.add(nowMs + this.#service.workMs(nowMs), completes, place)
    const limitMs = Math.min(this.settings.timeoutMs, this.#remainingMs(intent, nowMs))
    this.#events.add(nowMs + limitMs, timesOut, place)
  }

  #complete(place: number, nowMs: number): void {
    const next = this.#service.next()
    if (next !== nobody) this.#events.add(nowMs + this.#service.workMs(nowMs), completes, next)
    const intent = this.#places[place] as Intent
    this.#completions += 1
    if (intent.completions > 0) this.#repeated += 1
    intent.completions += 1
    if (intent.awaited === place) {
      intent.awaited = nobody
      this.#leaveSlot(intent)
      this.#goodput += 1
      this.#fleet.succeeded(intent.client, intent.pass, nowMs, intent.failures > 0)
    }
    this.#letGo(place)
  }

  #timeOut(place: number, nowMs: number): void {
    const intent = this.#places[place] as Intent
    if (intent.awaited === place) {
      intent.awaited = nobody
      intent.anyMaybe = true
      this.#fail(intent, timedOut, nowMs)
    }
    this.#letGo(place)
  }

  #fail(intent: Intent, verdict: Verdict, nowMs: number): void {
    this.#leaveSlot(intent)
    intent.failures += 1
    const decision = this.#fleet.failed(intent.client, intent.pass, {
      failures: intent.failures,
      verdict,
      guarded: this.settings.guarded,
      anyMaybe: intent.anyMaybe,
      previousDelayMs: intent.delayMs,
      remainingMs: this.#remainingMs(intent, nowMs),
      nowMs,
    })
    if (!decision.again) {
      this.#stop(decision.reason)
      return
    }
    intent.delayMs = decision.delayMs
    this.#events.add(nowMs + decision.delayMs, sends, this.#placeFor(intent))
  }

  #leaveSlot({ client }: Intent): void {
    this.#fleet.slots(client)?.leave()
  }

  #remainingMs({ startedMs }: Intent, nowMs: number): number {
    const { deadlineMs = Number.POSITIVE_INFINITY } = this.settings.policy
    return startedMs + deadlineMs - nowMs
  }

  #stop(reason: StopReason): void {
    this.#stops[reason] = (this.#stops[reason] ?? 0) + 1
  }

  #placeFor(intent: Intent): number {
    const place = this.#free.pop() ?? this.#places.length
    this.#places[place] = intent
    return place
  }

  #letGo(place: number): void {
    const holders = (this.#holders[place] as number) - 1
    this.#holders[place] = holders
    if (holders === 0) this.#free.push(place)
  }
}

/**
 * Plays a whole run. Deterministic: same options, same report.
 *
 * @example
 * ```ts
 * import { retryPolicy } from 'reprise/retry'
 * import { simulateStorm } from 'reprise/simulator'
 *
 * const policy = retryPolicy({ attempts: 6, attemptTimeout: '1s' }).toJSON()
 * const { findings } = simulateStorm({ policy, load: 700, capacity: 1000 })
 * console.log(findings.outcome, findings.peakAmplification)
 * ```
 */
export function simulateStorm(options: StormOptions): StormReport {
  const storm = new Storm(options)
  while (storm.next() !== undefined);
  return storm.report()
}
