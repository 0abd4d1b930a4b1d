// Settling: a person decides what an unknown outcome was, with a reason, and a note of it is stored in the same commit.

import type { AuditNote, RecordChange, StoredRecord, Written } from '../../atomicity/index.js'
import { type Duration, deadlineAfter, demandKnown, durationMs, RepriseError } from '../../kernel/index.js'
import type { AnyOperation, Operation } from '../definition.js'
import { isFailure } from '../failure.js'
import { type Found, isFound } from '../leased/recovery.js'
import { type Answered, persistently } from '../leased/store-calls.js'
import { decide, type Refusal, type SettleEvent } from '../machine.js'
import { encodeOutcome, type OutcomeValues, outcomeValues } from '../values.js'
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

/** What a person can decide: `happened(value)`, `failedFinally(failure)`, or `didNotHappen()`, which makes the key free again. */
export type Settlement<Result = unknown, Code extends string = string> = Exclude<
  Found<Result, Code>,
  { readonly found: 'still-unknown' }
>

/** What a person can decide about an operation; where only its name is given, anything. */
export type SettlementOf<Named> =
  Named extends Operation<never, infer Result, infer Code> ? Settlement<Result, Code> : Settlement

const mostRounds = 8
const optionNames = ['reason', 'actor', 'window', 'margin', 'deadline', 'clock', 'random']
const largestOutcome = 262_144

/**
 * Settles an operation whose outcome is unknown, or whose owner is gone. Refuses with SETTLE_REFUSED where there is nothing to settle; `details.because` says why:
 * `absent`, `finished`, `in-flight`, `invalid`, `format`.
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
  const around = timeAndChance(records, options)
  const deadline = deadlineAfter(options.deadline ?? '5s', around.clock)
  const seen = await persistently(around, deadline, (limits) => records.read(id, limits))
  let { record, nowMs } = seen.answer
  for (let round = 0; round < mostRounds; round += 1) {
    const decision = decide(record, event, nowMs)
    if (decision.act === 'refuse') throw refusal(decision.because, decision.retryInMs)
    // The same decision again, whoever took it first.
    if (decision.act === 'done') return
    const change = decision.act === 'write' ? decision.change : decision.act === 'remove' ? null : undefined
    if (change === undefined || record === undefined) throw refusal('invalid')
    const over: StoredRecord = record
    const written: Answered<Written> = await persistently(around, deadline, (limits) =>
      records.swap(id, over, change, limits, note),
    )
    if (written.answer.written || (written.repeated && isOurs(written.answer.record, over.version, change))) return
    record = written.answer.record
    nowMs = written.answer.nowMs
  }
  throw refusal('in-flight')
}

// The answer to an earlier try was lost, and what is there now is what it was to write.
function isOurs(record: StoredRecord | undefined, version: number, change: RecordChange | null): boolean {
  if (change === null || record === undefined) return change === null && record === undefined
  return record.version === version + 1 && record.because === 'settled' && record.value === (change.value ?? undefined)
}

async function eventOf(
  { id, known }: Located,
  settlement: Settlement,
  { window, margin }: SettleOptions,
): Promise<SettleEvent> {
  if (!isFound(settlement) || (settlement as Found).found === 'still-unknown') {
    throw new RepriseError('ARGUMENT_INVALID', 'A settlement is happened(…), failedFinally(…) or didNotHappen().')
  }
  const marginMs = durationMs(margin ?? known?.plan?.marginMs ?? '5s')
  if (settlement.found === 'did-not-happen') return { kind: 'settle', marginMs, decision: { state: 'released' } }
  const rememberedMs = window === undefined ? (known?.windowMs ?? Number.POSITIVE_INFINITY) : durationMs(window)
  const returned = settlement.found === 'happened' ? settlement.value : settlement.failure
  const { state, codec, value } = await encodeOutcome(known?.values ?? plainValues(returned), returned, {
    id,
    operation: known?.name ?? '',
  })
  return { kind: 'settle', marginMs, decision: { state, codec, value, rememberedMs } }
}

// Where only the name is known the outcome is JSON, and whoever settles answers for the failure's code.
function plainValues(returned: unknown): OutcomeValues {
  const failures = new Set(isFailure(returned) ? [returned.code] : [])
  return outcomeValues({ codec: undefined, earlier: [], largestBytes: largestOutcome, failures })
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
    {
      details: { because, ...(retryInMs === undefined ? {} : { retryInMs }) },
    },
  )
}
