// A race with proof: all start together, and the last one must begin before the first one has ended.

import type { Manifest } from '../../atomicity/index.js'
import { ConformanceFailure } from './expectations.js'
import { gate } from './gate.js'

/**
 * What must overlap: the bodies if the store runs writers in parallel, else only the calls, because bodies run one by
 * one.
 */
export type Overlap = 'bodies' | 'calls'

/** What can overlap in a store with this manifest. */
export function overlapOf({ writers }: Manifest): Overlap {
  return writers === 'many' ? 'bodies' : 'calls'
}

/** One participant of a race. */
export interface Racer {
  /** Its number, from 0. */
  readonly number: number
  /** Makes the call that races. */
  call<Result>(start: () => Promise<Result>): Promise<Result>
  /** Runs a body of that call, which ends when its work ends. */
  body<Result>(work: () => Promise<Result>): Promise<Result>
  /**
   * For a body: waits until every racer has entered its body, or at least made its call. Only the first time: a
   * repeated body goes on at once.
   */
  meet(): Promise<void>
}

/** How a race ended. */
export interface RaceEnd<Result> {
  /** What each racer returned, by its number. */
  readonly results: readonly Result[]
  /** How many bodies were run in all, repeats included. */
  readonly bodies: number
}

/** Runs that many racers. Fails the case if they did not overlap; otherwise throws the first error of a racer. */
export async function race<Result>(
  count: number,
  work: (racer: Racer) => Promise<Result>,
  overlap: Overlap = 'calls',
): Promise<RaceEnd<Result>> {
  const [ready, called, inside] = [gate(count), gate(count), gate(count)]
  let [sequence, begun, lastBegin, firstEnd, bodies] = [0, 0, 0, Number.POSITIVE_INFINITY, 0]
  const begin = (): void => {
    begun += 1
    lastBegin = ++sequence
  }
  const end = (): void => {
    firstEnd = Math.min(firstEnd, ++sequence)
  }
  const racerOf = (number: number): Racer => {
    let met = false
    return {
      number,
      call(start) {
        if (overlap === 'calls') begin()
        void called.arrive()
        return start()
      },
      async body(run) {
        bodies += 1
        try {
          return await run()
        } finally {
          if (met || overlap === 'calls') end() // a body that broke before the meeting is run again
        }
      },
      async meet() {
        if (met) return
        met = true
        if (overlap === 'bodies') begin()
        await (overlap === 'bodies' ? inside.arrive() : called.waiting(count))
      },
    }
  }
  const runs = Array.from({ length: count }, async (_, number) => {
    await ready.arrive()
    try {
      return await work(racerOf(number))
    } finally {
      end()
      // Those who have not arrived by now come too late: nobody waits for them.
      for (const waited of [called, inside]) waited.open()
    }
  })
  const ends = await Promise.allSettled(runs)
  const failed = ends.find((ended) => ended.status === 'rejected')
  if (begun !== count || lastBegin > firstEnd) {
    const what = `${begun} of ${count} ${overlap} began, and not all of them before the first one ended`
    throw new ConformanceFailure(`${what}: they did not race`, { cause: failed?.reason })
  }
  if (failed !== undefined) throw failed.reason
  return { results: await Promise.all(runs), bodies }
}
