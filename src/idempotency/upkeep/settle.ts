// Settling: a person decides what an unknown outcome was, with a reason, and a note of it is stored in the same commit.

import type { AuditNote, RecordLimits, Seen } from '../../atomicity/index.js'
import {
  type Duration,
  deadlineAfter,
  defined,
  demandKnown,
  durationMs,
  earlier,
  isRepriseError,
  RepriseError,
  remainingMs,
} from '../../kernel/index.js'
import type { AnyOperation, Operation } from '../definition.js'
import { type Found, isFound } from '../leased/recovery.js'
import { provesUnwritten, type Step, stepByStep } from '../leased/store-calls.js'
import { decide, type Refusal, type SettleEvent } from '../machine.js'
import { encodeOutcome, isFailure, type OutcomeStorage } from '../outcome.js'
import { type Located, locate, timeAndChance, type UpkeepCall, type Which } from './which.js'

/** Why, and by whom. */
export interface SettleOptions extends UpkeepCall {
  /** Why, in the words of who decides: 1 to 1,000 characters. */
  readonly reason: string
  /** Who decides: 1 to 255 characters. */
  readonly actor: string
  /** How long the outcome is remembered. Default: the operation's window; for ever where only its name was given. */
  readonly window?: Duration
  /** How long past its end a lease must be. Default: the operation's margin; `'5s'` where only its name was given. */
  readonly margin?: Duration
}

/**
 * What a person can decide: `happened(value)`, `failedFinally(failure)`, or `didNotHappen()`, which makes the key free
 * again.
 */
export type Settlement<Result = unknown, Code extends string = string> = Exclude<
  Found<Result, Code>,
  { readonly found: 'still-unknown' }
>

/** What a person can decide about an operation; where only its name is given, anything. */
export type SettlementOf<Named> =
  Named extends Operation<never, infer Result, infer Code> ? Settlement<Result, Code> : Settlement

const optionNames = ['reason', 'actor', 'window', 'margin', 'deadline', 'clock', 'random']
const largestOutcome = 262_144

/**
 * Settles an operation whose outcome is unknown, or whose owner is gone. Refuses with SETTLE_REFUSED where there is
 * nothing to settle; `details.because` says why: `absent`, `finished`, `in-flight`, `invalid`, `format`. Where the
 * store stopped answering and cannot be asked whether it is written, UPKEEP_UNKNOWN: settle it again, the same way.
 *
 * @example
 * ```ts
 * import { happened, settle } from 'reprise/idempotency'
 * import { type Key, scope } from 'reprise/identity'
 * import { memory } from 'reprise/stores/memory'
 *
 * const store = memory({ name: 'shop' })
 * export const settleCharge = (key: Key) =>
 *   settle({ operation: 'charge', scope: scope('shop'), key, store }, happened({ charge: 'c-1' }), {
 *     reason: 'seen in the statement of the bank', actor: 'ops',
 *   })
 * ```
 */
export async function settle<Named extends AnyOperation | string = string>(
  which: Which<Named>,
  settlement: SettlementOf<Named>,
  options: SettleOptions,
): Promise<void> {
  demandKnown(options, optionNames, 'options of settle')
  const note = noteOf(options)
  const located = locate(which)
  const event = await eventOf(located, settlement, options)
  const { id, records } = located
  const time = timeAndChance(records, options)
  const deadline = deadlineAfter(options.deadline ?? '5s', time.clock)
  // Half of what is left, so that a store that falls silent is asked once more: a read, or a write that is not there
  // yet, is repeated, and one that is there is seen.
  const half = (limits: RecordLimits): RecordLimits => ({
    ...limits,
    deadline: earlier(limits.deadline, deadlineAfter(remainingMs(deadline, time.clock) * 0.5, time.clock)),
  })
  let tried: Tried | undefined
  const first: Step<true> = { statement: (limits) => records.read(id, half(limits)) }
  const steps = stepByStep(time, deadline, first, async ({ answer, repeated }): Promise<Step<true>> => {
    const { record, nowMs } = answer
    // The answer to an earlier try was lost: what that one wrote is not to be refused as somebody else's.
    if (repeated && tried?.mayBe === true && (await isWritten(located, tried, answer, { deadline })))
      return { end: true }
    const decision = decide(record, event, nowMs)
    if (decision.act === 'refuse') throw refusal(decision.because, decision.retryInMs)
    // The same decision again, whoever took it first.
    if (decision.act === 'done') return { end: true }
    if (record === undefined || (decision.act !== 'write' && decision.act !== 'remove')) throw refusal('invalid')
    const change = decision.act === 'write' ? decision.change : null
    const trying: Tried = { event, note, sinceMs: nowMs, mayBe: false }
    tried = trying
    const onFailure = (error: unknown): void => {
      if (!provesUnwritten(error)) trying.mayBe = true
    }
    return {
      statement: (limits) => records.swap(id, record, change, half(limits), note),
      written: () => true,
      options: { onFailure },
    }
  })
  const settled = await steps.catch((error: unknown) => {
    // Where nothing was sent that writes, it certainly did not happen, and the error says what was in the way.
    if (tried?.mayBe !== true || isRepriseError(error, 'SETTLE_REFUSED')) throw error
    const message = 'The settlement may have been written: the store did not answer. The same one again does no harm.'
    throw new RepriseError('UPKEEP_UNKNOWN', message, { cause: error, details: { id } })
  })
  if (settled === undefined) throw refusal('in-flight')
}

/** A write of which it may not be known whether it happened. */
interface Tried {
  readonly event: SettleEvent
  readonly note: AuditNote
  /** The store's clock when it was decided, in ms since 1970. */
  readonly sinceMs: number
  /** Whether it may have happened, and its answer was lost. */
  mayBe: boolean
}

// The record is as it was decided; or it has gone on since, as a key that was freed is claimed anew, and the note that
// committed with the write says so.
async function isWritten({ id, records }: Located, tried: Tried, seen: Seen, limits: RecordLimits): Promise<boolean> {
  const { event, note, sinceMs } = tried
  const to = event.decision.state === 'released' ? 'absent' : event.decision.state
  if (seen.record === undefined ? to === 'absent' : decide(seen.record, event, seen.nowMs).act === 'done') return true
  const notes = (await records.inspection?.notes(id, limits)) ?? []
  return notes.some(
    ({ action, actor, reason, atMs, to: became }) =>
      action === note.action && actor === note.actor && reason === note.reason && became === to && atMs >= sinceMs,
  )
}

async function eventOf(
  { id, known }: Located,
  settlement: Settlement,
  { window, margin }: SettleOptions,
): Promise<SettleEvent> {
  if (!isFound(settlement) || (settlement as Found).found === 'still-unknown') {
    throw new RepriseError('ARGUMENT_INVALID', 'A settlement is happened(…), failedFinally(…) or didNotHappen().')
  }
  const marginMs = durationMs(margin ?? known?.plan?.marginMs ?? '5s', { option: 'margin' })
  if (settlement.found === 'did-not-happen') return { kind: 'settle', marginMs, decision: { state: 'released' } }
  const returned = settlement.found === 'happened' ? settlement.value : settlement.failure
  const storage = known?.storage ?? plainStorage(returned)
  const ending = await encodeOutcome(storage, returned, { id, operation: known?.name ?? '' })
  const { state, codec, value } = ending
  const rememberedMs = window === undefined ? ending.rememberedMs : durationMs(window, { option: 'window' })
  return { kind: 'settle', marginMs, decision: { state, codec, value, rememberedMs } }
}

// Where only the name is known the outcome is JSON, remembered for ever, and whoever settles answers for the failure's
// code.
function plainStorage(returned: unknown): OutcomeStorage {
  const failures = new Set(isFailure(returned) ? [returned.code] : [])
  const rememberedMs = Number.POSITIVE_INFINITY
  return { codec: undefined, codecs: new Map(), largestBytes: largestOutcome, failures, rememberedMs }
}

function noteOf({ reason, actor }: SettleOptions): AuditNote {
  if (typeof reason !== 'string' || reason.trim() === '' || reason.length > 1_000) {
    throw new RepriseError('ARGUMENT_INVALID', 'A settlement needs a reason of 1 to 1,000 characters.')
  }
  if (typeof actor !== 'string' || actor.trim() === '' || actor.length > 255) {
    throw new RepriseError('ARGUMENT_INVALID', 'A settlement needs an actor of 1 to 255 characters.')
  }
  return { action: 'settled', actor, reason }
}

function refusal(because: Refusal, retryInMs?: number): RepriseError {
  return new RepriseError(
    'SETTLE_REFUSED',
    'There is nothing to settle: the key is absent, finished or being worked on.',
    { details: { because, ...defined({ retryInMs }) } },
  )
}
