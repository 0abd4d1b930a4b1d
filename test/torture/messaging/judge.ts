// What is wrong with a round: what callers were told, against what was committed, what came over the wire, and what
// consumers have done.

import type { Violation, ViolationKind } from '../report.js'
import type { WorkerAnswer } from '../worker-process.js'
import type { OnTheWire } from './broker.js'

/** A call, and what its caller was told. */
export interface JudgedCall {
  /** Moments of a counter that all callers share. */
  readonly calledAt: number
  toldAt: number
  /** Whether a caller had been told how the intent ended when this call was made. */
  readonly late: boolean
  /** Undefined: nothing, its process died. */
  told: WorkerAnswer | undefined
}

/** An intent. One that is keyed was asked for until it was decided. */
export interface JudgedIntent {
  readonly id: string
  readonly keyed: boolean
  /** The numbers of its messages that are to be seen. */
  readonly messages: readonly number[]
  readonly calls: readonly JudgedCall[]
}

/** The effect of an intent. */
export interface EmittedRow {
  readonly intent: string
  readonly run: string
}

/** The effect of a message. */
export interface HandledRow {
  readonly reader: string
  readonly key: string
  readonly position: number
  readonly id: string
  readonly intent: string
  readonly n: number
  readonly run: string
  readonly epoch: number
  readonly number: number
}

/** A round, as it is found when all is quiet. */
export interface JudgedRound {
  readonly intents: readonly JudgedIntent[]
  readonly emitted: readonly EmittedRow[]
  readonly handled: readonly HandledRow[]
  readonly wire: readonly OnTheWire[]
  /** What is left to be delivered after the time for it; undefined: nothing. */
  readonly left: string | undefined
  /** Where each lane of each consumer had come before the round. */
  readonly before: LanesSeen
}

/** The last message of each lane, by consumer and key; changed by {@link judge} as it goes on. */
export type LanesSeen = Map<string, Pick<HandledRow, 'position' | 'epoch' | 'number'>>

const consumers = ['direct', 'delivered'] as const

type Add = (kind: ViolationKind, intent: string, says: string) => void
type Found = ReadonlyMap<string, readonly HandledRow[]>

/** What is wrong with a round. */
export function judge(round: JudgedRound): Violation[] {
  const violations: Violation[] = []
  const add: Add = (kind, intent, says) => void violations.push({ kind, intent, says })
  const emitted = groupBy(round.emitted, ({ intent }) => intent)
  const handled = groupBy(round.handled, ({ intent }) => intent)
  const wire = groupBy(round.wire, ({ data }) => data.intent)
  const known = new Set(round.intents.map(({ id }) => id))
  for (const [intent] of [...emitted, ...handled, ...wire]) {
    if (!known.has(intent)) add('phantom', intent, 'Nobody wanted it.')
  }
  for (const intent of round.intents) {
    const effects = emitted.get(intent.id) ?? []
    judgeCalls(intent, effects, add)
    const seen = [...(handled.get(intent.id) ?? []), ...(wire.get(intent.id) ?? []).map(ofWire)]
    judgeMessages(intent, effects[0]?.run, seen, round.left, add)
  }
  judgeOrder(round, add)
  judgeWire(round.wire, add)
  judgeCallers(round, handled, add)
  if (round.left !== undefined) add('stuck', 'messages', round.left)
  return violations
}

const ofWire = ({ id, data }: OnTheWire) => ({ reader: 'wire', id, n: data.n, run: data.run })

function groupBy<Row>(rows: readonly Row[], by: (row: Row) => string): Map<string, Row[]> {
  const groups = new Map<string, Row[]>()
  for (const row of rows) {
    const group = groups.get(by(row))
    if (group === undefined) groups.set(by(row), [row])
    else group.push(row)
  }
  return groups
}

const finalOf = ({ told }: JudgedCall): string | undefined =>
  told !== undefined && 'final' in told ? told.final : undefined

/** The ids that a caller was told; undefined: it was told none. */
const idsOf = (final: string | undefined): readonly string[] | undefined =>
  final === undefined || final === 'refused' ? undefined : final.split(',').filter(Boolean)

/** Whether callers were told the truth about the effect of an intent. */
function judgeCalls({ id, keyed, calls }: JudgedIntent, effects: readonly EmittedRow[], add: Add): void {
  const finals = new Set(calls.flatMap((call) => finalOf(call) ?? []))
  if (effects.length > 1) add('duplicate', id, `It has ${effects.length} effects.`)
  if (finals.size > 1) add('wrongResult', id, `Callers were told ${[...finals].join(' and ')}.`)
  const [final] = finals
  if (idsOf(final) !== undefined && effects.length === 0) add('lost', id, 'It was told as committed, and is not there.')
  if (final === 'refused' && effects.length > 0) add('phantom', id, 'It was told as refused, and is there.')
  if (keyed && finals.size === 0) add('stuck', id, 'Nobody was ever told how it ended.')
  if (calls.some(({ late, told }) => late && told !== undefined && 'final' in told && !told.replayed)) {
    add('forgotten', id, 'A caller was told how it ended, and a later call carried it out anew.')
  }
  // A transaction without a key is called once: one error alone leaves it open.
  const [told] = calls.map((call) => call.told)
  const isAborted = told !== undefined && 'error' in told && told.error !== 'UNKNOWN_OUTCOME'
  if (!keyed && isAborted && effects.length > 0) add('phantom', id, `It failed (${told.error}), and is there.`)
}

type SeenMessage = Pick<HandledRow, 'reader' | 'id' | 'n' | 'run'>

/** Whether the messages of an intent are there exactly when its effect is, and had their effects once. */
function judgeMessages(
  { id, messages, calls }: JudgedIntent,
  run: string | undefined,
  seen: readonly SeenMessage[],
  left: string | undefined,
  add: Add,
): void {
  const wanted = new Set(run === undefined ? [] : messages)
  for (const { reader, n, run: ran } of seen) {
    if (run === undefined) add('torn', id, `Its message ${n} came to ${reader}, and its effect is not there.`)
    else if (!wanted.has(n)) add('phantom', id, `Its message ${n}, which was rolled back, came to ${reader}.`)
    else if (ran !== run) add('torn', id, `Its message ${n} at ${reader} is of another run than its effect.`)
  }
  const told = calls.flatMap((call) => idsOf(finalOf(call)) ?? [])
  const ids = new Set(told)
  const strange = seen.find((message) => ids.size > 0 && !ids.has(message.id))
  if (strange !== undefined) add('wrongResult', id, `Its message ${strange.n} has another id than the caller was told.`)
  for (const reader of [...consumers, 'wire']) {
    const own = seen.filter((message) => message.reader === reader)
    for (const n of wanted) {
      const times = own.filter((message) => message.n === n).length
      if (times === 0) add(left === undefined ? 'lost' : 'stuck', id, `Its message ${n} never came to ${reader}.`)
      // The wire may have it several times, which is counted there.
      if (times > 1 && reader !== 'wire') add('duplicate', id, `Its message ${n} had ${times} effects at ${reader}.`)
    }
  }
}

/** Whether each consumer has taken the messages of each key one after the other, in order and without a gap. */
function judgeOrder({ handled, before }: JudgedRound, add: Add): void {
  for (const [lane, rows] of groupBy(handled, ({ reader, key }) => `${reader} ${key}`)) {
    rows.sort((a, b) => a.position - b.position)
    let last = before.get(lane) ?? { position: -1, epoch: 0, number: 0 }
    for (const row of rows) {
      if (row.position <= last.position) add('zombie', row.intent, `Two handled messages of ${lane} at the same time.`)
      const follows = row.epoch === last.epoch ? row.number === last.number + 1 : row.number === 1
      if (row.epoch < last.epoch || !follows) {
        add('outOfOrder', row.intent, `${lane}: ${placeOf(row)} came after ${placeOf(last)}.`)
      }
      last = row
    }
    before.set(lane, last)
  }
}

const placeOf = ({ epoch, number }: Pick<HandledRow, 'epoch' | 'number'>): string => `${epoch}/${number}`

/** Whether the messages of each key came over the wire in order, each counted when it came first. */
function judgeWire(wire: readonly OnTheWire[], add: Add): void {
  const seen = new Set<string>()
  const last = new Map<string, OnTheWire>()
  for (const message of wire) {
    const { id, key, epoch, number, data } = message
    if (seen.has(id)) continue
    seen.add(id)
    const before = last.get(key)
    last.set(key, message)
    if (before === undefined || epoch > before.epoch || (epoch === before.epoch && number > before.number)) continue
    add('outOfOrder', data.intent, `${key}: ${placeOf(message)} was published after ${placeOf(before)}.`)
  }
}

/** Whether an intent that was called for after another one was told as committed is behind it in every key. */
function judgeCallers({ intents, handled }: JudgedRound, byIntent: Found, add: Add): void {
  const spans = new Map<string, { readonly calledAt: number; readonly toldAt: number }>()
  for (const { id, calls } of intents) {
    if (!byIntent.has(id)) continue
    const told = calls.filter((call) => finalOf(call) !== undefined).map(({ toldAt }) => toldAt)
    const calledAt = Math.min(...calls.map((call) => call.calledAt))
    spans.set(id, { calledAt, toldAt: Math.min(Number.POSITIVE_INFINITY, ...told) })
  }
  const direct = handled.filter(({ reader }) => reader === 'direct')
  for (const [key, rows] of groupBy(direct, (row) => row.key)) {
    rows.sort((a, b) => b.epoch - a.epoch || b.number - a.number)
    let earliestTold = Number.POSITIVE_INFINITY
    for (const { intent } of rows) {
      const span = spans.get(intent)
      if (span === undefined) continue
      if (span.calledAt > earliestTold) add('outOfOrder', intent, `${key}: it is before one that was told before it.`)
      earliestTold = Math.min(earliestTold, span.toldAt)
    }
  }
}
