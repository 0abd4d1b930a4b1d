// Dead letters of a domain, for people: to see them, and to decide what becomes of them.

import { persistently, type RecordStore, timeOfRecords, type UpkeepCall } from '../../idempotency/index.js'
import {
  type Duration,
  deadlineAfter,
  defined,
  demandKnown,
  demandWhole,
  durationMs,
  RepriseError,
} from '../../kernel/index.js'
import type { DeadLetter } from '../lanes.js'
import type { LetterGroup, LetterQuery, LetterStore, WhichLetter } from '../letters.js'
import type { MessageStore } from '../store.js'
import {
  checkedWhich,
  deciderOf,
  demandDecided,
  editedId,
  type LetterCall,
  redriveDecision,
  writeDecision,
} from './decide.js'
import { type ListedLetter, listedLetter, type ShownLetter, shownLetter } from './letter.js'
import { largestPage, type RedriveCounts, type RedriveReport, redriveMany } from './redrive.js'

/** A domain, as far as people and upkeep need it. */
export interface LetterDomain extends Pick<RecordStore, 'name' | 'records'> {
  readonly messages: LetterStore & Pick<MessageStore<never>, 'dataOf' | 'textOf'>
}

/** Which letters are listed, the oldest first. */
export interface LetterListQuery extends Omit<LetterQuery, 'limit'> {
  /** 1 to 1,000. Default 100. */
  readonly limit?: number
}

/** Letters that have something in common: at least one of the three is given. */
export interface WhichLetters {
  readonly reader?: string | undefined
  readonly code?: string | undefined
  readonly key?: string | undefined
}

/** Who redrives, and how. */
export interface RedriveOptions extends UpkeepCall {
  /** Who decides: 1 to 255 characters. */
  readonly actor: string
  /** Why: 1 to 1,000 characters. Default `'redriven'`. */
  readonly reason?: string
  /** Many: at most so many letters, 1 to 1,000. Default 1,000. */
  readonly most?: number
  /** Many: their keys become due spread over this time. Default `'1m'`. */
  readonly over?: Duration
  /** Many: ends it after the letter at hand. Default: none. */
  readonly signal?: AbortSignal
  /** Many: hears of the counts after each letter. Default: none. */
  readonly onProgress?: (counts: RedriveCounts) => void
}

/** Who decides, and why. */
export interface DecisionOptions extends UpkeepCall {
  /** Who decides: 1 to 255 characters. */
  readonly actor: string
  /** Why: 1 to 1,000 characters. It is kept; a relay's discard also sends it. */
  readonly reason: string
}

/** Who edits, why, and what the data is to be. */
export interface EditOptions extends DecisionOptions {
  /** Plain data, as for `emit`. */
  readonly data: unknown
}

/** The dead letters of a domain. Each decision is one commit, and is kept with who took it and why. */
export interface DeadLetters {
  /** Letters, the oldest first, without their data. Default: those that are not closed. */
  list(query?: LetterListQuery, call?: UpkeepCall): Promise<readonly ListedLetter[]>
  /** How many letters that are not closed have the same reader and cause. */
  groups(call?: UpkeepCall): Promise<readonly LetterGroup[]>
  /** One letter with its history; undefined: there is none. Its data is left out unless `data` asks for it. */
  show(which: WhichLetter & { readonly data?: boolean }, call?: UpkeepCall): Promise<ShownLetter | undefined>
  /**
   * Sends the message again under its own id, and then what waits behind it in its key. Of many, whole keys go in their
   * order, up to the cap, spread over time. One letter that is not open is refused with LETTER_REFUSED.
   */
  redrive(which: WhichLetter | WhichLetters, options: RedriveOptions): Promise<RedriveReport>
  /**
   * Sends other data in its place, under an id that is derived from its own: the same however often. The letter is
   * closed in the commit in which its key goes on behind it. Answers with that id.
   */
  edit(which: WhichLetter, options: EditOptions): Promise<{ readonly id: string }>
  /**
   * Gives the message up. A relay sends a message without data under its id and place in its stead, which says so; a
   * consumer goes on behind it, and it is not handled when it comes again.
   */
  discard(which: WhichLetter, options: DecisionOptions): Promise<void>
}

const callNames = ['deadline', 'clock', 'random']
const deciderNames = ['actor', 'reason', ...callNames]
const states: readonly DeadLetter['state'][] = ['open', 'redriving', 'discarding', 'closed']

/**
 * The dead letters of a domain.
 *
 * @example
 * ```ts
 * import { deadLetters } from 'reprise/messaging'
 * import { memory } from 'reprise/stores/memory'
 *
 * const letters = deadLetters(memory({ name: 'shop' }))
 * for (const { reader, code, letters: count } of await letters.groups()) console.log(reader, code, count)
 * const { redriven, left } = await letters.redrive({ reader: 'receipts' }, { actor: 'ada', reason: 'fixed in 4.2' })
 * console.log(redriven, left)
 * ```
 * ```text
 * 0 0
 * ```
 */
export function deadLetters(db: LetterDomain): DeadLetters {
  const { messages } = Object(db) as Partial<LetterDomain>
  if (messages === undefined) throw new RepriseError('ARGUMENT_INVALID', 'Dead letters need a domain with messages.')
  const callOf = ({ deadline = '5s', clock, random }: UpkeepCall): LetterCall => ({
    ...timeOfRecords(db.records),
    ...defined({ clock, random }),
    messages,
    limit: deadline,
  })
  const asking = async <Answer>(
    call: UpkeepCall,
    statement: Parameters<typeof persistently<Answer>>[2],
  ): Promise<Answer> => {
    demandKnown(call, callNames, 'options of dead letters')
    const { limit, ...time } = callOf(call)
    return (await persistently(time, deadlineAfter(limit, time.clock), statement)).answer
  }
  return {
    async list(query = {}, call = {}) {
      const checked = checkedQuery(query)
      return (await asking(call, (limits) => messages.letters(checked, limits))).map(listedLetter)
    },
    groups: async (call = {}) => asking(call, (limits) => messages.groups(limits)),
    async show(which, call = {}) {
      demandKnown(which, ['reader', 'source', 'id', 'data'], 'members of a dead letter')
      const checked = checkedWhich(which)
      const letter = await asking(call, (limits) => messages.letter(checked, limits))
      return letter && shownLetter(letter, which.data === true, messages)
    },
    async redrive(which, options) {
      const names = [...deciderNames, 'most', 'over', 'signal', 'onProgress']
      demandKnown(options, names, 'options of redrive')
      const decider = deciderOf(options, 'redriven')
      if ('id' in Object(which)) {
        const decided = { decision: redriveDecision, ...decider, inMs: 0 }
        demandDecided(await writeDecision(callOf(options), checkedWhich(which as WhichLetter), decided))
        return { redriven: 1, elsewhere: 0, left: 0, interrupted: false }
      }
      const { most = largestPage, over = '1m', signal, onProgress } = options
      return redriveMany(callOf(options), checkedMany(which), decider, {
        most: wholeOf('most', most),
        overMs: durationMs(over, { option: 'over' }),
        signal,
        onProgress,
      })
    },
    async edit(which, options) {
      demandKnown(options, ['data', ...deciderNames], 'options of edit')
      const decider = deciderOf(options)
      const checked = checkedWhich(which)
      const call = callOf(options)
      const letter = await asking({}, (limits) => messages.letter(checked, limits))
      if (letter === undefined) return demandDecided('absent') as never
      const { source, type, subject, key } = letter.message
      const id = editedId(letter.message)
      const identity = { source, id, type, subject, key }
      const text = messages.textOf(identity, options.data)
      demandDecided(await writeDecision(call, checked, { decision: { is: 'edit', id, ...text }, ...decider, inMs: 0 }))
      return { id }
    },
    async discard(which, options) {
      demandKnown(options, deciderNames, 'options of discard')
      const decider = deciderOf(options)
      const decision = { is: 'discard', reason: decider.reason } as const
      demandDecided(await writeDecision(callOf(options), checkedWhich(which), { decision, ...decider, inMs: 0 }))
    },
  }
}

function checkedQuery(query: LetterListQuery): LetterQuery {
  demandKnown(query, ['reader', 'key', 'code', 'state', 'limit'], 'members of a query for dead letters')
  const { state, limit = 100 } = query
  if (state !== undefined && !states.includes(state)) {
    throw new RepriseError('ARGUMENT_INVALID', `The state of a dead letter is one of ${states.join(', ')}.`)
  }
  return { ...query, limit: wholeOf('limit', limit) }
}

// All letters of a store at once are nobody's intention.
function checkedMany(which: WhichLetters): WhichLetters {
  demandKnown(which, ['reader', 'code', 'key'], 'members that dead letters have in common')
  const given = Object.values(defined(which))
  if (given.length > 0 && given.every((value) => typeof value === 'string' && value !== '')) return which
  throw new RepriseError(
    'ARGUMENT_INVALID',
    'Which dead letters? One by reader, source and id; many by reader, code or key.',
  )
}

function wholeOf(option: string, value: number): number {
  return demandWhole(
    value,
    1,
    largestPage,
    (why) => new RepriseError('ARGUMENT_INVALID', `The option ${option}: ${why}`),
  )
}
