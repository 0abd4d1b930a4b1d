// What one process knows of the keys it works on. Of duplicates one leads, the others wait in memory and hold nothing,
// each by its own deadline and signal. An operation that calls itself is refused. Keys that were seen finished are
// remembered.

import type { StoredKey } from '../identity/index.js'
import {
  type Clock,
  type Deadline,
  RepriseError,
  type ScopeKind,
  type ScopeValue,
  scopeKind,
  waitFor,
} from '../kernel/index.js'
import { inFlight, mismatch } from './errors.js'

/** Who comes with a key. */
export interface Visitor {
  /** The fingerprint of the content; undefined: nothing is compared. */
  readonly fingerprint: string | undefined
  /** Whether it is refused instead of waiting. */
  readonly refusesDuplicates: boolean
  /** How many may wait for the same key already. */
  readonly mostWaiting: number
  /** When its wait for others ends, in ms of monotonic time. */
  readonly waitUntilMs: number
  /** When the call ends. */
  readonly deadline: Deadline
  /** Ends the wait with its reason. */
  readonly signal: AbortSignal | undefined
}

interface Waiter<Shared> {
  readonly visitor: Visitor
  /** Undefined: it leads now. */
  readonly settle: (told: Shared | undefined) => void
  readonly refuse: (reason: unknown) => void
}

interface Flight<Shared> {
  leader: Visitor
  // Since when it leads, in ms of monotonic time.
  sinceMs: number
  // Until the store has said so, the leader may itself be the one with the wrong content.
  claimed: boolean
  // A set keeps the order of arrival and gives up a waiter from the middle at once. Made for the first who waits.
  waiters: Set<Waiter<Shared>>
}

// In refuse mode, wait at most this long, in ms, for the store to say who holds the key: if the key is finished, both
// get its outcome. No longer, because a slow store does not change that the leader is at work.
const shortWaitMs = 250

// Of all flights for which nobody waits; never added to.
const nobody: Set<never> = new Set()

/** The queues of all keys that are being worked on. */
export class InProcessQueue<Shared> {
  readonly #flights = new Map<StoredKey, Flight<Shared>>()
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** How many keys are being worked on. */
  get size(): number {
    return this.#flights.size
  }

  /** Whether a key is being worked on. */
  isLed(id: StoredKey): boolean {
    return this.#flights.has(id)
  }

  /** How many wait for a key. */
  waiting(id: StoredKey): number {
    return this.#flights.get(id)?.waiters.size ?? 0
  }

  /**
   * Undefined: the visitor leads, at once or after a wait, and has to end that with {@link done}. Otherwise what the
   * leader before it told. Refuses with OPERATION_MISMATCH, OPERATION_IN_FLIGHT, QUEUE_FULL.
   */
  enter(id: StoredKey, visitor: Visitor): Promise<Shared | undefined> | undefined {
    const flight = this.#flights.get(id)
    if (flight === undefined) {
      this.#flights.set(id, { leader: visitor, sinceMs: this.#clock.monotonicMs(), claimed: false, waiters: nobody })
      return undefined
    }
    const refused = flight.claimed ? whyNotWait(flight, visitor, this.#clock) : undefined
    if (refused !== undefined) throw refused
    if (flight.waiters.size >= visitor.mostWaiting) {
      const waiters = visitor.mostWaiting
      throw new RepriseError('QUEUE_FULL', `${waiters} duplicates wait for this key already.`, {
        details: { waiters, ...heldSince(flight, this.#clock) },
      })
    }
    return this.#wait(flight, visitor)
  }

  /** The leader has claimed the key: waiters with other content, or in refuse mode, are refused now. */
  claimed(id: StoredKey, leader: Visitor): void {
    const flight = this.#flights.get(id)
    if (flight?.leader !== leader || flight.claimed) return
    flight.claimed = true
    for (const { visitor, refuse } of flight.waiters) {
      const refused = whyNotWait(flight, visitor, this.#clock)
      if (refused !== undefined) refuse(refused)
    }
  }

  /**
   * The leader's work is over. With an outcome that is stored, all who wait get it; without one the next in the queue
   * becomes the leader, and it alone. To be called on every way out.
   */
  done(id: StoredKey, leader: Visitor, told?: Shared): void {
    const flight = this.#flights.get(id)
    if (flight?.leader !== leader) return
    if (told !== undefined || flight.waiters.size === 0) {
      this.#flights.delete(id)
      for (const { settle } of flight.waiters) settle(told)
      return
    }
    const [next] = flight.waiters
    if (next === undefined) return
    flight.leader = next.visitor
    flight.sinceMs = this.#clock.monotonicMs()
    flight.claimed = false
    next.settle(undefined)
  }

  #wait(flight: Flight<Shared>, visitor: Visitor): Promise<Shared | undefined> {
    const { signal, deadline } = visitor
    const clock = this.#clock
    const sinceMs = clock.monotonicMs()
    const waitUntilMs = visitor.refusesDuplicates
      ? Math.min(visitor.waitUntilMs, sinceMs + shortWaitMs)
      : visitor.waitUntilMs
    const expired = (): RepriseError => {
      if (deadline.expiresAtMs > waitUntilMs) return stillHeld(flight, clock, sinceMs)
      const details = { phase: 'waiting for a duplicate' }
      const message = 'The deadline passed while a duplicate was being carried out.'
      return new RepriseError('DEADLINE_EXCEEDED', message, { details })
    }
    const limitMs = Math.min(waitUntilMs, deadline.expiresAtMs) - sinceMs
    return waitFor<Shared | undefined>({ clock, limitMs, signal, expired }, (settle, refuse) => {
      const waiter: Waiter<Shared> = { visitor, settle, refuse }
      if (flight.waiters === nobody) flight.waiters = new Set()
      flight.waiters.add(waiter)
      return () => flight.waiters.delete(waiter)
    })
  }
}

// Refuse different content first: waiting would not help.
function whyNotWait(flight: Held, visitor: Visitor, clock: Clock): RepriseError | undefined {
  if (flight.leader.fingerprint !== visitor.fingerprint) return mismatch()
  return visitor.refusesDuplicates ? stillHeld(flight, clock, clock.monotonicMs()) : undefined
}

type Held = Pick<Flight<never>, 'leader' | 'sinceMs' | 'claimed'>

function stillHeld(flight: Held, clock: Clock, waitsSinceMs: number): RepriseError {
  const waitedMs = Math.round(clock.monotonicMs() - waitsSinceMs)
  return inFlight({ waitedMs, ...heldSince(flight, clock) })
}

// A leader that has not claimed the key may itself be waiting for another process.
function heldSince({ claimed, sinceMs }: Held, clock: Clock): { readonly heldSinceMs?: number } {
  return claimed ? { heldSinceMs: Math.round(clock.wallMs() - (clock.monotonicMs() - sinceMs)) } : {}
}

interface Running {
  readonly queue: object
  readonly id: StoredKey
  readonly outer: Running | undefined
}

const running: ScopeKind<Running> = /* @__PURE__ */ scopeKind<Running>('reprise.operation')

/**
 * What is in force around the body of an operation, so that a call of itself is recognised.
 *
 * @param queue The queue of the domain: the same name means another record in another domain.
 */
export function operationScope(queue: object, id: StoredKey): ScopeValue {
  return running.with({ queue, id, outer: running.current() })
}

/** Runs work on a key, such as the body of an operation, so that {@link refuseReentry} knows a call from inside it. */
export function insideOperation<Result>(queue: object, id: StoredKey, work: () => Result): Result {
  return running.run({ queue, id, outer: running.current() }, work)
}

/**
 * Refuses a call from inside the very operation and key it is about.
 *
 * @param refusal Default: OPERATION_REENTERED.
 */
export function refuseReentry(queue: object, id: StoredKey, refusal: () => RepriseError = reentered): void {
  for (let around = running.current(); around !== undefined; around = around.outer) {
    if (around.queue === queue && around.id === id) throw refusal()
  }
}

function reentered(): RepriseError {
  return new RepriseError('OPERATION_REENTERED', 'The operation was called with its own key from inside itself.')
}

/**
 * The last names that were seen to be finished, at most a fixed number of them: a hint that a repeat may look before it
 * opens a transaction. Nothing depends on it. The older half is forgotten at once: to forget one name for each new one
 * would cost as much as all the rest.
 */
export class FinishedNames {
  readonly #half: number
  #newer = new Set<StoredKey>()
  #older = new Set<StoredKey>()

  /** @param most How many are remembered at most. */
  constructor(most = 10_000) {
    this.#half = Math.max(1, Math.floor(most / 2))
  }

  has(id: StoredKey): boolean {
    return this.#newer.has(id) || this.#older.has(id)
  }

  add(id: StoredKey): void {
    if (this.#newer.size >= this.#half && !this.#newer.has(id)) {
      this.#older = this.#newer
      this.#newer = new Set()
    }
    this.#newer.add(id)
  }

  delete(id: StoredKey): void {
    this.#newer.delete(id)
    this.#older.delete(id)
  }
}
