// Duplicates in one process: one leads, the others wait in memory and hold nothing. Each waits by its own deadline and signal.

import type { StoredKey } from '../../identity/index.js'
import { type Clock, type Deadline, RepriseError, whenAborted } from '../../kernel/index.js'
import { inFlight, mismatch } from '../call/refusals.js'

/** Who comes with a key. */
export interface Visitor {
  /** The fingerprint of the content; undefined: nothing is compared. */
  readonly fingerprint: string | undefined
  /** Whether it would rather be refused than wait. */
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

/** The one who is to carry the operation out. */
export interface Lead<Told> {
  /** The key is claimed: whoever waits with other content, or would rather not wait, is refused now. */
  claimed(): void
  /**
   * The work is over. With an outcome that is stored, all who wait get it; without one the next in the queue becomes the leader, and it alone. Once; to be
   * called on every way out.
   */
  done(told?: Told): void
}

/** What became of a visitor. */
export type Entered<Told> = { readonly lead: Lead<Told> } | { readonly told: Told }

interface Waiter<Told> {
  readonly visitor: Visitor
  readonly settle: (entered: Entered<Told>) => void
  readonly refuse: (reason: unknown) => void
}

interface Flight<Told> {
  fingerprint: string | undefined
  // Until the store has said so, the leader may itself be the one with the wrong content.
  claimed: boolean
  // A set keeps the order of arrival and gives up a waiter from the middle at once. Made for the first who waits.
  waiters: Set<Waiter<Told>>
}

// Who would rather be refused waits this long, in ms, until the store has told the leader whose the key is: it may be finished, and then both are given its outcome. Not for longer: a store
// that is slow to answer does not make the leader any less at work.
const shortWaitMs = 250

// Of all flights for which nobody waits; never added to.
const none: Set<never> = new Set()

/** The queues of all keys that are being worked on. */
export class InProcessQueue<Told> {
  readonly #flights = new Map<StoredKey, Flight<Told>>()
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** How many keys are being worked on. */
  get size(): number {
    return this.#flights.size
  }

  /** How many wait for a key. */
  waiting(id: StoredKey): number {
    return this.#flights.get(id)?.waiters.size ?? 0
  }

  /** Becomes the leader of a key at once, or waits until one is to lead or is told an outcome. Refuses with OPERATION_MISMATCH, OPERATION_IN_FLIGHT, QUEUE_FULL. */
  enter(id: StoredKey, visitor: Visitor): Entered<Told> | Promise<Entered<Told>> {
    const flight = this.#flights.get(id)
    if (flight === undefined) {
      const { fingerprint } = visitor
      const opened: Flight<Told> = { fingerprint, claimed: false, waiters: none }
      this.#flights.set(id, opened)
      return { lead: this.#lead(id, opened) }
    }
    const refusal = flight.claimed ? refusalOf(flight, visitor) : undefined
    if (refusal !== undefined) throw refusal
    if (flight.waiters.size >= visitor.mostWaiting) {
      throw new RepriseError('QUEUE_FULL', `${visitor.mostWaiting} duplicates wait for this key already.`, {
        details: { waiters: visitor.mostWaiting },
      })
    }
    return this.#wait(flight, visitor)
  }

  #lead(id: StoredKey, flight: Flight<Told>): Lead<Told> {
    let leading = true
    return {
      claimed: () => {
        if (!leading || flight.claimed) return
        flight.claimed = true
        for (const { visitor, refuse } of flight.waiters) {
          const refusal = refusalOf(flight, visitor)
          if (refusal !== undefined) refuse(refusal)
        }
      },
      done: (told) => {
        if (!leading) return
        leading = false
        if (told === undefined) this.#pass(id, flight)
        else {
          this.#flights.delete(id)
          for (const { settle } of flight.waiters) settle({ told })
        }
      },
    }
  }

  #pass(id: StoredKey, flight: Flight<Told>): void {
    const [next] = flight.waiters
    if (next === undefined) {
      this.#flights.delete(id)
      return
    }
    flight.fingerprint = next.visitor.fingerprint
    flight.claimed = false
    next.settle({ lead: this.#lead(id, flight) })
  }

  #wait(flight: Flight<Told>, visitor: Visitor): Promise<Entered<Told>> {
    const { signal, deadline } = visitor
    if (signal?.aborted) return Promise.reject(signal.reason)
    const clock = this.#clock
    const sinceMs = clock.monotonicMs()
    const waitUntilMs = visitor.refusesDuplicates
      ? Math.min(visitor.waitUntilMs, sinceMs + shortWaitMs)
      : visitor.waitUntilMs
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        flight.waiters.delete(waiter)
        cancel()
        unhear?.()
      }
      const refuse = (reason: unknown): void => {
        leave()
        reject(reason)
      }
      const settle = (entered: Entered<Told>): void => {
        leave()
        resolve(entered)
      }
      const waiter: Waiter<Told> = { visitor, settle, refuse }
      const callOff = (): void => refuse(signal?.reason)
      const late = (): void => {
        if (deadline.expiresAtMs <= waitUntilMs) refuse(deadlinePassed())
        else refuse(inFlight({ waitedMs: Math.round(clock.monotonicMs() - sinceMs) }))
      }
      const unhear = signal === undefined ? undefined : whenAborted(signal, callOff)
      const cancel = clock.setTimer(Math.max(0, Math.min(waitUntilMs, deadline.expiresAtMs) - sinceMs), late)
      if (flight.waiters === none) flight.waiters = new Set()
      flight.waiters.add(waiter)
    })
  }
}

// Other content is told before anything else: waiting would not help it.
function refusalOf<Told>(flight: Flight<Told>, visitor: Visitor): RepriseError | undefined {
  if (flight.fingerprint !== visitor.fingerprint) return mismatch()
  return visitor.refusesDuplicates ? inFlight({ waitedMs: 0 }) : undefined
}

function deadlinePassed(): RepriseError {
  const details = { phase: 'waiting for a duplicate' }
  return new RepriseError('DEADLINE_EXCEEDED', 'The deadline passed while a duplicate was being carried out.', {
    details,
  })
}
