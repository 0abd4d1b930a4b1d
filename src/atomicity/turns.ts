// Turns: who works next where only a few can work at once. First come, first served, the urgent before the others;
// every wait has an end, and the queue a limit.

import { type Clock, RepriseError, systemClock, waitFor } from '../kernel/index.js'

/** How many work at once and how many may wait. */
export interface TurnsOptions {
  /** How many turns are out at the same time, at least 1. Default 1. */
  readonly places?: number
  /** How many may wait at the same time; one more is refused with QUEUE_FULL. Default 1,000. */
  readonly queue?: number
  /** The clock that ends waits. Default the system's. */
  readonly clock?: Clock
}

/** How long to wait for a turn. */
export interface TurnLimits {
  /** The longest wait, in ms; 0 takes a turn that is free now, or fails. */
  readonly waitMs: number
  /**
   * Whether it goes before all who are not: for what is short, and too late when it is late, such as a heartbeat.
   * Default false.
   */
  readonly urgent?: boolean
  /** Ends the wait: it is rejected with the signal's reason. Default: none. */
  readonly signal?: AbortSignal | undefined
}

/** A turn that was taken. */
export interface Turn {
  /** Passes it to the urgent one who has waited longest, or else to the one who has. Calling it again does nothing. */
  done(): void
}

/** A bounded queue of turns. */
export interface Turns {
  /**
   * Waits for a turn: POOL_EXHAUSTED after `waitMs`, QUEUE_FULL where too many wait already, STORE_CLOSED after
   * `close`.
   */
  take(limits: TurnLimits): Promise<Turn>
  /**
   * A turn that is free now, or undefined: for those who can do without the promise. Nobody waits in front of it then.
   * STORE_CLOSED after `close`.
   */
  tryTake(): Turn | undefined
  /** How many turns are out. */
  readonly taken: number
  readonly waiting: number
  /** Refuses all who wait and all who come, and waits until every turn that is out was given back. */
  close(): Promise<void>
}

interface Waiter {
  readonly resolve: (turn: Turn) => void
  readonly reject: (reason: unknown) => void
}

/** A queue of turns; nobody overtakes but the urgent, who have a queue of their own with the same limit. */
export function turnsOf(options: TurnsOptions = {}): Turns {
  const { places = 1, queue = 1000, clock = systemClock } = options
  checkCount('places', places, 1)
  checkCount('queue', queue, 0)
  // A set keeps the order of arrival and gives up a waiter from the middle at once.
  const waiters = new Set<Waiter>()
  const urgentOnes = new Set<Waiter>()
  const idle: (() => void)[] = []
  let taken = 0
  let closed = false

  const turn = (): Turn => {
    let out = true
    return {
      done() {
        if (!out) return
        out = false
        const [next] = urgentOnes.size > 0 ? urgentOnes : waiters
        // The place goes from hand to hand: a newcomer cannot take it in between.
        if (next !== undefined) next.resolve(turn())
        else {
          taken -= 1
          if (taken === 0) for (const wake of idle.splice(0)) wake()
        }
      },
    }
  }

  const tryTake = (): Turn | undefined => {
    if (closed) throw closedError()
    if (taken >= places) return undefined
    taken += 1
    return turn()
  }

  return {
    get taken() {
      return taken
    },
    get waiting() {
      return waiters.size + urgentOnes.size
    },
    tryTake,
    async take({ waitMs, signal, urgent = false }) {
      signal?.throwIfAborted()
      const free = tryTake()
      if (free !== undefined) return free
      if (waitMs <= 0) throw exhausted(places, 0)
      const line = urgent ? urgentOnes : waiters
      if (line.size >= queue) {
        throw new RepriseError('QUEUE_FULL', `All places are taken, and ${queue} wait already.`, {
          details: { places, queue },
        })
      }
      return waitFor<Turn>(
        { clock, limitMs: waitMs, signal, expired: () => exhausted(places, waitMs) },
        (resolve, reject) => {
          const waiter: Waiter = { resolve, reject }
          line.add(waiter)
          return () => line.delete(waiter)
        },
      )
    },
    async close() {
      closed = true
      for (const waiter of [...urgentOnes, ...waiters]) waiter.reject(closedError())
      if (taken > 0) await new Promise<void>((resolve) => idle.push(resolve))
    },
  }
}

function exhausted(places: number, waitMs: number): RepriseError {
  const message = `No place of ${places} became free within ${Math.round(waitMs)} ms.`
  return new RepriseError('POOL_EXHAUSTED', message, { details: { places, waitMs } })
}

function closedError(): RepriseError {
  return new RepriseError('STORE_CLOSED', 'The store was closed.')
}

function checkCount(name: string, value: number, least: number): void {
  if (Number.isSafeInteger(value) && value >= least && value <= 1_000_000) return
  throw new RepriseError('ARGUMENT_INVALID', `The number of ${name} must be whole, from ${least} to 1000000.`)
}
