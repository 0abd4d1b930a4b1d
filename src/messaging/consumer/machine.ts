// The rules of a consumer, as pure functions: what a message is when it arrives or is claimed, and what follows from
// how its handler ended. The runner performs what they say, and decides nothing itself.

import type { Message, MessagePlace } from '../../atomicity/index.js'
import { type Chance, keepableText } from '../../kernel/index.js'
import type { Backoff, Verdict } from '../../retry/index.js'
import type { Arrived } from '../lanes.js'
import { type AttemptNote, hasNote, withNote } from './attempt-history.js'

/** What the rules go by. */
export interface ConsumerRules {
  /** How often a message is handled at most before it is a dead letter. */
  readonly attempts: number
  /** The wait before a message is handled again. */
  readonly backoff: Backoff
}

/** What is known of a message before its handler runs. */
export interface KnownFailures {
  /** How often it has failed. */
  readonly failures: number
  readonly history: string
}

/** A message of which nothing is known. */
export const nothingKnown: KnownFailures = Object.freeze({ failures: 0, history: '' })

/** How the handling of a message ended. */
export type Ending =
  /** Its effect is committed, and that it is done. */
  | { readonly is: 'committed' }
  /** The lane has another owner by now; nothing was committed. */
  | { readonly is: 'fenced' }
  /** Its handler failed, and was rolled back. `spared`: there is no budget left for repeats. */
  | {
      readonly is: 'failed'
      readonly verdict: Verdict
      readonly code: string
      readonly reason: string
      readonly spared: boolean
    }
  /** It is not to be handled as it is: unreadable, not as its schema says, behind a gap, or it kills its process. */
  | { readonly is: 'dead'; readonly code: string; readonly reason: string }
  /** The store was lost while the handler was at work; the message may be the reason, or not. */
  | { readonly is: 'lost'; readonly code: string; readonly reason: string }
  /** The store was away, or what became of the commit is not known: the message has no part in it. */
  | { readonly is: 'away' }
  /** The store will not have what is to be written about the message before its handler begins, now or later. */
  | { readonly is: 'refused'; readonly code: string; readonly reason: string }
  /** Others held what was needed before the handler could begin. */
  | { readonly is: 'busy' }
  /** The consumer is to stop. */
  | { readonly is: 'stopped' }

/** Why a consumer pauses. */
export type PauseCause = 'store' | 'overload' | 'source'

/** What follows. */
export type Next =
  /** It is done; what came from a broker is acknowledged. */
  | { readonly is: 'done' }
  /** It is to be done without an effect, in a commit of its own. */
  | { readonly is: 'skip'; readonly why: string }
  /** It rests in the store, and comes again. What came from a broker is acknowledged once it is there. */
  | {
      readonly is: 'rest'
      readonly forMs: number
      readonly failures: number
      readonly history: string
      readonly pause: PauseCause | undefined
    }
  /** It is a dead letter, and its key waits for it. */
  | { readonly is: 'park'; readonly code: string; readonly reason: string; readonly history: string }
  /**
   * Nothing is written about it, and nothing answered: it is tried again in its place, after `forMs`, or when the pause
   * is over.
   */
  | { readonly is: 'again'; readonly forMs: number; readonly pause: PauseCause | undefined }
  /** It belongs to somebody else now. Where it does not after all, it is tried again after `forMs`. */
  | { readonly is: 'leave'; readonly forMs: number }

const mostReason = 1_000

/**
 * What follows from the end of a message's handling.
 *
 * @param atMs The time for the history, in ms since 1970.
 */
export function afterHandling(
  known: KnownFailures,
  ending: Ending,
  rules: ConsumerRules,
  chance: Chance,
  atMs: number,
): Next {
  switch (ending.is) {
    case 'committed':
      return { is: 'done' }
    case 'fenced':
      return { is: 'leave', forMs: rules.backoff.delayMs(1, 0, chance) }
    case 'away':
      return { is: 'again', forMs: 0, pause: 'store' }
    case 'stopped':
      return { is: 'again', forMs: 0, pause: undefined }
    case 'busy':
      return { is: 'again', forMs: rules.backoff.delayMs(1, 0, chance), pause: undefined }
    case 'dead':
      return { is: 'park', code: ending.code, reason: shown(ending.reason), history: known.history }
    case 'refused':
      return parked(known, ending, atMs)
    case 'lost': {
      // Once may be the store's own trouble. A message that loses its connection each time is told from that by the
      // note, which is only written when the store answers again.
      if (hasNote(known.history, 'lost')) return failedAgain(known, ending, rules, chance, atMs, {})
      const history = withNote(known.history, { atMs, what: 'lost', code: ending.code, reason: ending.reason })
      const forMs = rules.backoff.delayMs(1, 0, chance)
      return { is: 'rest', forMs, failures: known.failures, history, pause: 'store' }
    }
    case 'failed': {
      const { verdict, spared } = ending
      if (verdict.help === 'discard') return { is: 'skip', why: verdict.why }
      if (verdict.help === 'transient' && verdict.overload === true && verdict.doNotRepeat !== true) {
        return { is: 'again', forMs: verdict.retryAfterMs ?? 0, pause: 'overload' }
      }
      if (verdict.help === 'permanent' || verdict.doNotRepeat === true) return parked(known, ending, atMs)
      return failedAgain(known, ending, rules, chance, atMs, { verdict, spared })
    }
  }
}

function failedAgain(
  known: KnownFailures,
  ending: { readonly code: string; readonly reason: string },
  { attempts, backoff }: ConsumerRules,
  chance: Chance,
  atMs: number,
  { verdict, spared = false }: { readonly verdict?: Verdict; readonly spared?: boolean },
): Next {
  const failures = known.failures + 1
  if (failures >= attempts) return parked(known, ending, atMs)
  const history = noted(known, ending, atMs)
  const askedMs = verdict?.retryAfterMs ?? 0
  // Without a budget it waits for the longest: many fail, and each repeat is load on what fails.
  const drawnMs = spared ? backoff.data.capMs : backoff.delayMs(failures, 0, chance)
  const forMs = verdict?.exactly === true ? askedMs : Math.max(askedMs, drawnMs)
  return { is: 'rest', forMs: Math.ceil(forMs), failures, history, pause: undefined }
}

function parked(known: KnownFailures, ending: { readonly code: string; readonly reason: string }, atMs: number): Next {
  return { is: 'park', code: ending.code, reason: shown(ending.reason), history: noted(known, ending, atMs) }
}

function noted(known: KnownFailures, { code, reason }: Pick<AttemptNote, 'code' | 'reason'>, atMs: number): string {
  return withNote(known.history, { atMs, what: 'failed', code, reason })
}

function shown(reason: string): string {
  return keepableText(reason, mostReason)
}

/** What becomes of a message that arrived from a broker. */
export type ArrivalStep =
  /** Its effect belongs into this transaction. */
  | { readonly is: 'handle' }
  /** It is acknowledged, and counted as this. */
  | { readonly is: 'ack'; readonly as: 'duplicates' | 'stored' | 'gaps' }
  /** It is a dead letter that no key waits for, acknowledged, and counted as this. */
  | {
      readonly is: 'bury'
      readonly as: 'mismatches' | 'late' | 'outdated'
      readonly code: string
      readonly reason: string
    }

/** What follows from what the store says of a message. Only a processed row proves a duplicate, never a number. */
export function onArrival(arrived: Arrived, { discarded }: Pick<Message, 'discarded'>): ArrivalStep {
  switch (arrived.is) {
    case 'new':
      return { is: 'handle' }
    case 'duplicate':
      return { is: 'ack', as: 'duplicates' }
    case 'stored':
      return { is: 'ack', as: 'stored' }
    case 'gap':
      return { is: 'ack', as: 'gaps' }
    case 'mismatch':
      // A message without data in the place of one that was handled after all: there is nothing to do.
      if (discarded !== undefined) return { is: 'ack', as: 'duplicates' }
      return buried(
        'mismatches',
        'MESSAGE_MISMATCH',
        'A message with this source and id, and other content, was handled.',
      )
    case 'late':
      return buried('late', 'MESSAGE_LATE', 'A later message of its key was handled before it arrived.')
    case 'outdated':
      return buried('outdated', 'MESSAGE_OUTDATED', `Its key is in epoch ${arrived.epoch} by now.`)
  }
}

function buried(as: 'mismatches' | 'late' | 'outdated', code: string, reason: string): ArrivalStep {
  return { is: 'bury', as, code, reason }
}

/** Which number is missing before a message of a lane whose numbers are checked; undefined: none. */
export function missingBefore(done: MessagePlace | undefined, place: MessagePlace): number | undefined {
  if (done === undefined) return undefined
  const expected = place.epoch === done.epoch ? done.number + 1 : 1
  return place.number > expected ? expected : undefined
}
