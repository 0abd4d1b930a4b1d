// A barrier: nobody continues before all have arrived. With it a test can force a race and prove that it happened.

import { type Clock, RepriseError, systemClock, waitFor } from '../kernel/index.js'

/** How long a barrier waits. */
export interface BarrierOptions {
  /** How long the first to arrive waits for the last, in ms. Default 10,000. */
  readonly limitMs?: number
  /** The clock to wait by. Default the system's. */
  readonly clock?: Clock
}

/** A point where parties wait for each other, once. */
export interface Barrier {
  readonly parties: number
  /** How many have arrived so far. */
  readonly arrived: number
  /** Whether all arrived in time, which proves that they raced. */
  readonly opened: boolean
  /**
   * Waits until all have arrived. Returns the order of arrival, the first being 1. Rejects with `DEADLINE_EXCEEDED` if
   * not all arrive in time, for those who wait and those who come later, and with `ARGUMENT_INVALID` if more arrive
   * than were agreed.
   */
  arrive(): Promise<number>
}

/**
 * A new {@link Barrier} for a whole number of parties, at least 1.
 *
 * @example
 * ```ts
 * import { barrier } from 'reprise/testing'
 *
 * const start = barrier(2)
 * const race = async (name: string) => `${name} arrived as number ${await start.arrive()}`
 * console.log(await Promise.all([race('a'), race('b')]), start.opened)
 * ```
 *
 * ```text
 * [ 'a arrived as number 1', 'b arrived as number 2' ] true
 * ```
 */
export function barrier(parties: number, options: BarrierOptions = {}): Barrier {
  const { limitMs = 10_000, clock = systemClock } = options
  if (!Number.isSafeInteger(parties) || parties < 1) {
    throw new RepriseError('ARGUMENT_INVALID', 'A barrier is for a whole number of parties, at least 1.')
  }
  let arrived = 0
  let opened = false
  let late: RepriseError | undefined
  let cancel = (): void => undefined
  const waiting: { readonly go: () => void; readonly fail: (error: RepriseError) => void }[] = []

  const giveUp = (): void => {
    const message = `Only ${arrived} of ${parties} arrived at the barrier within ${limitMs} ms.`
    late = new RepriseError('DEADLINE_EXCEEDED', message, { details: { arrived, parties, limitMs } })
    for (const { fail } of waiting) fail(late)
  }
  const arrive = (): Promise<number> => {
    if (late !== undefined) return Promise.reject(late)
    if (opened) {
      const message = 'More parties arrived at the barrier than were agreed.'
      return Promise.reject(new RepriseError('ARGUMENT_INVALID', message, { details: { parties } }))
    }
    arrived += 1
    const place = arrived
    if (place === parties) {
      opened = true
      cancel()
      for (const { go } of waiting) go()
      return Promise.resolve(place)
    }
    if (place === 1) cancel = clock.setTimer(limitMs, giveUp)
    return waitFor<number>({}, (resolve, reject) => void waiting.push({ go: () => resolve(place), fail: reject }))
  }
  return {
    parties,
    get arrived() {
      return arrived
    },
    get opened() {
      return opened
    },
    arrive,
  }
}
