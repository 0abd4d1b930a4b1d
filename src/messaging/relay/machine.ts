// The rules of a relay, as pure functions: which messages are published next and in which company, and what follows for
// a lane from the answers. The runner performs what they say, and decides nothing itself.

import type { Message, MessagePlace, StoredMessage } from '../../atomicity/index.js'
import { type Chance, keepableText } from '../../kernel/index.js'
import type { Backoff } from '../../retry/index.js'
import type { BrokerManifest, Published } from '../broker.js'
import { hasNote, withNote } from '../consumer/attempt-history.js'
import { type KnownFailures, nothingKnown } from '../consumer/machine.js'
import type { ClaimedLane, LaneEnd } from '../lanes.js'
import { type CrashRules, howToRun } from '../suspicion.js'

/** What the rules go by. */
export interface RelayRules extends CrashRules {
  /** How often a message is published at most before it is a dead letter, where it is refused. */
  readonly attempts: number
  /** The wait before a message is published again. */
  readonly backoff: Backoff
}

/** What is to be done with a message of a lane. */
export type Item =
  | { readonly is: 'send'; readonly message: Message }
  /** It is not for this relay. */
  | { readonly is: 'skip' }
  /** It never can be published. */
  | { readonly is: 'dead'; readonly code: string; readonly reason: string }
  /** It was tried, and failed before it came to the broker. */
  | { readonly is: 'failed'; readonly code: string; readonly reason: string }

/** A lane at work: its messages as far as they were looked at, and what the broker said of them. */
export interface LaneWork {
  readonly lane: ClaimedLane
  /** In the order of the lane. What follows one that is dead or has failed is not there. */
  readonly items: readonly Item[]
  /** Whether its first message goes alone, and no other one in the same claim. */
  readonly single: boolean
  /** The answers to the first ones of those that are sent, in order. */
  readonly answers: readonly Published[]
}

/** How a lane is to go. */
export type Company = 'together' | 'single' | 'alone' | 'kills'

/**
 * In which company the first message of a lane goes. `single`: in a call of its own, since nobody knows what became of
 * it when it went with others. `alone`: while this process does nothing else, since one may have ended by it. `kills`:
 * not at all.
 */
export function companyOf(lane: Pick<ClaimedLane, 'claims' | 'history'>, rules: CrashRules): Company {
  const how = howToRun(lane, rules)
  if (how !== 'beside') return how
  return hasNote(lane.history, 'lost') ? 'single' : 'together'
}

/** A message that is published: of which lane, and which one of those that are sent. */
export interface Chosen {
  readonly lane: number
  readonly message: Message
}

/** So many calls in a row without an answer are enough. */
const mostAway = 2

/**
 * The messages of the next call of `publish`; none: all were tried that may be. Those that go singly are first, each in
 * a call of its own; then the others, in one call. Where the broker keeps no order, each call has one message of a
 * lane.
 *
 * @param awayInRow How many calls in a row had no answer. After two the others are tried in place of further single
 * ones: if they are confirmed, the broker is there, and the single ones were to blame.
 */
export function nextCall(
  works: readonly LaneWork[],
  order: BrokerManifest['order'],
  awayInRow: number,
): readonly Chosen[] {
  for (const [lane, work] of works.entries()) {
    if (!work.single || awayInRow >= mostAway) continue
    const [message] = sendable(work)
    if (message !== undefined) return [{ lane, message }]
  }
  return works.flatMap((work, lane) => {
    if (work.single) return []
    const messages = order === 'none' ? sendable(work).slice(0, 1) : sendable(work)
    return messages.map((message) => ({ lane, message }))
  })
}

/**
 * Whether a message that went singly and is not confirmed is itself to blame: the broker confirmed another one after
 * it, or after the last time that it went singly and was not confirmed. All are numbers of calls.
 */
export function isToBlame(call: number, lastConfirmed: number, doubtedAt: number | undefined): boolean {
  return lastConfirmed > call || (doubtedAt !== undefined && lastConfirmed > doubtedAt)
}

// The messages of a lane that are still to be sent: none behind one that is not confirmed.
function sendable({ items, single, answers }: LaneWork): readonly Message[] {
  if (answers.some(({ is }) => is !== 'confirmed') || (single && answers.length > 0)) return []
  const all = items.flatMap((item) => (item.is === 'send' ? [item.message] : []))
  return all.slice(answers.length)
}

/** What a call says about the broker: it answered, or it is away. */
export function callSays(answers: readonly Published[]): 'there' | 'away' {
  return answers.some(({ is }) => is === 'confirmed' || is === 'refused') ? 'there' : 'away'
}

/** What is known beside the answers, when a lane ends. */
export interface LaneContext {
  /** Whether the broker confirmed another message after the last one of this lane went out. */
  readonly othersConfirmed: boolean
  /** Whether the message goes to waste if it is repeated soon: there is no budget left. */
  readonly spared: () => boolean
  readonly chance: Chance
  /** The time for the history, in ms since 1970. */
  readonly atMs: number
}

/** How a lane ends, and what is to be counted. */
export interface LaneStep {
  readonly done: MessagePlace | undefined
  readonly next: LaneEnd['then']
  /** Messages that were confirmed, in order, up to the first that was not. */
  readonly published: readonly StoredMessage[]
  readonly skipped: number
  /** The message that the lane ends at, with how often it has failed by now, and why. */
  readonly refused: { readonly message: StoredMessage; readonly code: string; readonly failures: number } | undefined
}

/** What follows for a lane from what became of its messages. It ends at the first one that is not done. */
export function afterPublish(
  { lane, items, answers }: Pick<LaneWork, 'lane' | 'items' | 'answers'>,
  rules: RelayRules,
  context: LaneContext,
): LaneStep {
  let done: MessagePlace | undefined
  const published: StoredMessage[] = []
  let skipped = 0
  let sent = 0
  for (const [index, stored] of lane.messages.entries()) {
    const item = items[index]
    const answer = item?.is === 'send' ? answers[sent] : undefined
    if (answer?.is === 'confirmed') {
      sent += 1
      published.push(stored)
    } else if (item?.is === 'skip') skipped += 1
    else {
      const known = index === 0 ? lane : nothingKnown
      return { done, published, skipped, ...atMessage(stored, item, answer, known, rules, context) }
    }
    done = stored.place
  }
  return { done, published, skipped, next: { is: 'free' }, refused: undefined }
}

// What follows from the one message that is not done.
function atMessage(
  message: StoredMessage,
  item: Item | undefined,
  answer: Published | undefined,
  known: KnownFailures,
  rules: RelayRules,
  context: LaneContext,
): Pick<LaneStep, 'next' | 'refused'> {
  const { failures, history } = known
  if (item?.is === 'dead') {
    const { code, reason } = item
    return { next: parked(message, code, reason, history), refused: undefined }
  }
  if (item?.is === 'failed') return failedAgain(message, item, known, rules, context)
  if (answer?.is === 'refused') {
    const reason = `${answer.code}: ${answer.reason}`
    return failedAgain(message, { code: 'MESSAGE_REFUSED', reason }, known, rules, context)
  }
  if (answer?.is === 'unknown' && context.othersConfirmed) {
    const reason = 'It is never confirmed, while other messages are.'
    return failedAgain(message, { code: 'MESSAGE_UNCONFIRMED', reason }, known, rules, context)
  }
  if (answer === undefined) return { next: { is: 'rest', forMs: 0, failures, history }, refused: undefined }
  // The broker is away, and no message is to blame. One that may have left goes singly from now on.
  const forMs = awayRestMs(context.chance)
  const isSuspect = answer.is === 'unknown' && !hasNote(history, 'lost')
  const note = {
    atMs: context.atMs,
    what: 'lost',
    code: 'MESSAGE_UNCONFIRMED',
    reason: 'The broker did not say.',
  } as const
  return {
    next: { is: 'rest', forMs, failures, history: isSuspect ? withNote(history, note) : history },
    refused: undefined,
  }
}

function failedAgain(
  message: StoredMessage,
  { code, reason }: { readonly code: string; readonly reason: string },
  known: KnownFailures,
  { attempts, backoff }: RelayRules,
  { chance, atMs, spared }: LaneContext,
): Pick<LaneStep, 'next' | 'refused'> {
  const failures = known.failures + 1
  const history = withNote(known.history, { atMs, what: 'failed', code, reason })
  const refused = { message, code, failures }
  if (failures >= attempts) return { next: parked(message, code, reason, history), refused }
  const forMs = Math.ceil(spared() ? backoff.data.capMs : backoff.delayMs(failures, 0, chance))
  return { next: { is: 'rest', forMs, failures, history }, refused }
}

function parked(message: StoredMessage, code: string, reason: string, history: string): LaneEnd['then'] {
  const shown = keepableText(reason, 1_000)
  return { is: 'park', letter: { message, code, reason: shown, history: history === '' ? '[]' : history } }
}

const leastAwayMs = 250

function awayRestMs(chance: Chance): number {
  return Math.ceil(leastAwayMs * (1 + chance.next()))
}

/** How much is claimed at a time: `lanes` lanes of up to `perLane` messages, all together no more than a batch. */
export interface ClaimShape {
  readonly lanes: number
  readonly perLane: number
  /** For so many claims it stays: it was just seen to fit. */
  readonly keepsFor: number
}

/** As many lanes go side by side, where there are as many with work. */
const leastLanes = 16

/** After so many full claims it is tried whether there is more in their lanes, or in others. */
const keptClaims = 8

/** The shape of the first claim. */
export function firstShape(batch: number): ClaimShape {
  return shapeOf(batch, Math.max(1, Math.floor(batch / leastLanes)), 0)
}

/**
 * The shape of the next claim, by what the last one gave. Few lanes with many messages each are read deeper, many lanes
 * with few messages each wider, by as many as fill a batch.
 */
export function nextShape(batch: number, last: ClaimShape, claimed: readonly number[]): ClaimShape {
  if (claimed.length === 0) return last
  const { perLane, keepsFor } = last
  const widest = Math.max(1, Math.floor(batch / leastLanes))
  const full = claimed.filter((messages) => messages >= perLane).length
  // With all lanes that are due in one claim, each may have its share of the batch.
  if (claimed.length < last.lanes) {
    if (full === 0) return last
    const deep = Math.min(perLane * 2, Math.floor(batch / claimed.length))
    return shapeOf(batch, deep, deep > widest ? keptClaims : 0)
  }
  const messages = claimed.reduce((a, b) => a + b)
  const isCut = full * 4 >= claimed.length
  if (!isCut && messages * 4 < batch * 3) return shapeOf(batch, Math.round(messages / claimed.length), keptClaims)
  if (!isCut || perLane === widest) return last
  // There may be more in these lanes, or more lanes.
  return keepsFor > 0 ? { ...last, keepsFor: keepsFor - 1 } : shapeOf(batch, Math.min(perLane * 2, widest), 0)
}

function shapeOf(batch: number, perLane: number, keepsFor: number): ClaimShape {
  const deep = Math.min(batch, Math.max(1, perLane))
  return { lanes: Math.max(1, Math.floor(batch / deep)), perLane: deep, keepsFor }
}
