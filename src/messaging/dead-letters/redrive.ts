// Redriving many dead letters: whole keys in their order, no more than the cap, and spread over time, so that what
// has just come back is not run over by everything that waited for it.

import { isBehind } from '../../atomicity/index.js'
import { persistently } from '../../idempotency/index.js'
import { deadlineAfter, type Random } from '../../kernel/index.js'
import type { DeadLetter } from '../lanes.js'
import type { LetterQuery } from '../letters.js'
import { type Decider, type LetterCall, redriveDecision, writeDecision } from './decide.js'

/** What became of a redrive of many. */
export interface RedriveCounts {
  /** Letters whose messages go out again. */
  readonly redriven: number
  /** Letters that somebody else decided about meanwhile. */
  readonly elsewhere: number
}

/** How it ended. */
export interface RedriveReport extends RedriveCounts {
  /**
   * Open letters that match and are left: the cap was reached, they failed again, or came meanwhile. Counted up to
   * 1,000.
   */
  readonly left: number
  /** Whether the signal ended it early. */
  readonly interrupted: boolean
}

/** A letter, and how long until its lane is due. */
interface Planned {
  readonly letter: DeadLetter
  readonly inMs: number
}

/** The most letters that a store lists at once. */
export const largestPage = 1_000

/**
 * Which letters go, and when: those of a key in their order and at the same time, the keys evenly over the time, each
 * at a random moment of its share. A key that does not fit under the cap is left out whole; only the first may be cut,
 * and then its first letters go.
 */
export function planRedrive(
  letters: readonly DeadLetter[],
  most: number,
  overMs: number,
  random: Pick<Random, 'next'>,
): readonly Planned[] {
  const byKey = new Map<string, DeadLetter[]>()
  for (const letter of letters) {
    const lane = JSON.stringify([letter.reader, letter.message.key])
    byKey.set(lane, [...(byKey.get(lane) ?? []), letter])
  }
  const keys: DeadLetter[][] = []
  let planned = 0
  for (const all of byKey.values()) {
    if (planned > 0 && planned + all.length > most) continue
    const inOrder = all.sort((a, b) => (isBehind(a.message.place, b.message.place) ? -1 : 1)).slice(0, most)
    keys.push(inOrder)
    planned += inOrder.length
    if (planned >= most) break
  }
  return keys.flatMap((all, place) => {
    const inMs = Math.floor(((place + random.next()) * overMs) / keys.length)
    return all.map((letter) => ({ letter, inMs }))
  })
}

/** Redrives all letters that match, up to the cap. */
export async function redriveMany(
  call: LetterCall,
  query: Omit<LetterQuery, 'limit' | 'state'>,
  decider: Decider,
  limits: {
    readonly most: number
    readonly overMs: number
    readonly signal: AbortSignal | undefined
    readonly onProgress: ((counts: RedriveCounts) => void) | undefined
  },
): Promise<RedriveReport> {
  const { messages, clock, random, limit } = call
  const { most, overMs, signal, onProgress } = limits
  const open = async (): Promise<readonly DeadLetter[]> =>
    (
      await persistently(call, deadlineAfter(limit, clock), (within) =>
        messages.letters({ ...query, state: 'open', limit: largestPage }, within),
      )
    ).answer
  const startedMs = clock.monotonicMs()
  let counts: RedriveCounts = { redriven: 0, elsewhere: 0 }
  for (const { letter, inMs } of planRedrive(await open(), most, overMs, random)) {
    if (signal?.aborted === true) break
    const { source, id } = letter.message
    // The moment counts from the beginning: writing the decisions takes time too.
    const fromNowMs = Math.max(0, Math.floor(inMs - (clock.monotonicMs() - startedMs)))
    const decided = { decision: redriveDecision, ...decider, inMs: fromNowMs }
    const refusal = await writeDecision(call, { reader: letter.reader, source, id }, decided)
    counts =
      refusal === undefined
        ? { ...counts, redriven: counts.redriven + 1 }
        : { ...counts, elsewhere: counts.elsewhere + 1 }
    onProgress?.(counts)
  }
  return { ...counts, left: (await open()).length, interrupted: signal?.aborted === true }
}
