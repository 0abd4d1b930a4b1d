// Which message ended a process. A process that ends takes with it all that it had claimed, and nobody can tell which
// message was to blame: each of them is suspected, and runs alone from then on. Only a process that ends while it does
// nothing else is counted against a message, so that nobody is a dead letter for what another one did.
//
// The count is a note in the history of the lane. It is written before the message begins, while nothing else runs, and
// whoever lives to say how it ended writes the history without it.

import { hasNote, notesIn, withCount, withNote } from './consumer/attempt-history.js'
import type { ClaimedLane } from './lanes.js'

/** What the rules go by. */
export interface CrashRules {
  /** How many processes may end while a message runs alone in them, before it is a dead letter. */
  readonly crashes: number
}

/** What is known of a lane when it is claimed. */
type Known = Pick<ClaimedLane, 'claims' | 'history'>

/**
 * How the first message of a claimed lane is to run. `alone`: nothing runs beside it in this process. `kills`: not at
 * all, since it ended too many processes.
 */
export function howToRun({ claims, history }: Known, { crashes }: CrashRules): 'beside' | 'alone' | 'kills' {
  if (endedBy(history) >= crashes) return 'kills'
  return claims > 1 || hasNote(history, 'suspected') ? 'alone' : 'beside'
}

/** The history of a message that a process had when it ended. */
export function suspected(history: string, atMs: number): string {
  if (hasNote(history, 'suspected')) return history
  const reason = 'A process that had the message ended without a word.'
  return withNote(history, { atMs, what: 'suspected', code: 'MESSAGE_KILLS', reason })
}

/** The history of a message that is about to begin, with nothing beside it. */
export function begunAlone(history: string, atMs: number): string {
  const times = endedBy(history) + 1
  const reason = 'A process began it with nothing beside it, and did not say how it ended.'
  return withCount(history, { atMs, what: 'alone', code: 'MESSAGE_KILLS', reason, times })
}

/** Why a message that kills is a dead letter. */
export function killing({ history }: Pick<Known, 'history'>): {
  readonly is: 'dead'
  readonly code: string
  readonly reason: string
} {
  const reason = `${endedBy(history)} processes ended while they ran this message and nothing else.`
  return { is: 'dead', code: 'MESSAGE_KILLS', reason }
}

function endedBy(history: string): number {
  return notesIn(history).find(({ what }) => what === 'alone')?.times ?? 0
}

/** The lanes of a claim, by what becomes of them first. */
export interface SortedLanes {
  /** They are worked on. Where one is to run alone, the others end without being run. */
  readonly kept: readonly ClaimedLane[]
  /** They are given back, before anything of what is kept begins. */
  readonly released: readonly ClaimedLane[]
  /** The one that is to run alone. */
  readonly alone: ClaimedLane | undefined
}

/**
 * Which lanes of a claim are kept. Where one of them is to run alone all others are given back, since a process that
 * ends with it must not count against them; but not those that end without being run. Each has the suspicion against it
 * in its history.
 */
export function sortedLanes(lanes: readonly ClaimedLane[], rules: CrashRules, atMs: number): SortedLanes {
  const noted = lanes.map((lane) => (lane.claims > 1 ? { ...lane, history: suspected(lane.history, atMs) } : lane))
  const alone = noted.find((lane) => howToRun(lane, rules) === 'alone')
  if (alone === undefined) return { kept: noted, released: [], alone }
  const isKept = (lane: ClaimedLane): boolean => lane === alone || howToRun(lane, rules) === 'kills'
  return { kept: noted.filter(isKept), released: noted.filter((lane) => !isKept(lane)), alone }
}
