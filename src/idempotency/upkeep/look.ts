// One look of a sweep at one record: what the machine says is done, under a claim of the sweep's own, with a note beside it.

import type { AuditNote, NamedRecord, Seen, StoredRecord, Written } from '../../atomicity/index.js'
import { type Clock, deadlineAfter, isRepriseError, type Random, uuidv4 } from '../../kernel/index.js'
import { parseJson } from '../codecs/json.js'
import { askWhatHappened, complete, discardWhole, execute, loseClaim } from '../leased/execution.js'
import { HeldClaim } from '../leased/held-claim.js'
import type { Plan } from '../leased/plan.js'
import { type Answered, persistently } from '../leased/store-calls.js'
import { type Decision, decide, type LookEvent } from '../machine.js'

/**
 * What became of a record. `held`: a person has to settle it. `waiting`: it can only be run again by a caller, since its input was not kept. `elsewhere`: somebody else
 * works on it, or has ended it.
 */
export type Looked = 'succeeded' | 'failed' | 'released' | 'unknown' | 'held' | 'waiting' | 'elsewhere' | 'error'

/** What a look needs. */
export interface Look {
  /** The operations that are looked after, by name. */
  readonly plans: ReadonlyMap<string, Plan>
  /** The first wait between two looks, in ms. */
  readonly baseMs: number
  /** The longest one, in ms. */
  readonly capMs: number
  /** How long a look may take, in ms. */
  readonly limitMs: number
  /** Who is named in notes. */
  readonly actor: string
  /** Time. */
  readonly clock: Clock
  /** Chance. */
  readonly random: Random
}

const mostRounds = 4

/** Looks at a record that was taken as due. */
export async function lookAt(look: Look, { id, record: taken }: NamedRecord): Promise<Looked> {
  const plan = look.plans.get(taken.operation ?? '')
  if (plan === undefined) return 'elsewhere'
  const { records } = plan.place
  const deadline = deadlineAfter(look.limitMs, look.clock)
  const token = uuidv4(look.random)
  const { leaseMs, marginMs, recovery } = plan
  const event: LookEvent = { kind: 'look', token, leaseMs, marginMs, recovery }
  let seen: Answered<Seen | Written> = await persistently(look, deadline, (limits) => records.read(id, limits))
  for (let round = 0; round < mostRounds; round += 1) {
    const { record, nowMs } = seen.answer
    const decision = decide(record, event, nowMs)
    if (record === undefined) return 'elsewhere'
    if (decision.act === 'wait') return record.state === 'unknown' ? 'waiting' : 'elsewhere'
    const change = changeOf(decision)
    if (change === undefined) return 'elsewhere'
    const note = noteOf(decision, look.actor)
    const written: Answered<Written> = await persistently(look, deadline, (limits) =>
      records.swap(id, record, change, limits, note),
    )
    const { answer } = written
    if (answer.written && decision.act === 'write') return 'held'
    if (answer.written && answer.record !== undefined) {
      const own = { ...written, answer: { record: answer.record, nowMs: answer.nowMs } }
      return drive(look, plan, new HeldClaim(plan, id, own), answer.record)
    }
    seen = written
  }
  return 'elsewhere'
}

function changeOf(decision: Decision) {
  const { act } = decision
  return act === 'own' || act === 'ask' || act === 'execute' || act === 'write' ? decision.change : undefined
}

function noteOf(decision: Decision, actor: string): AuditNote | undefined {
  return decision.act === 'write' && decision.note !== undefined ? { ...decision.note, actor } : undefined
}

async function drive(look: Look, plan: Plan, claim: HeldClaim, record: StoredRecord): Promise<Looked> {
  const note = (reason: string): AuditNote => ({ action: 'swept', actor: look.actor, reason })
  // However it stays unknown, the next look comes later than this one did.
  const ending = { plan, claim, note, lookInMs: nextLookMs(look, record) }
  const deadline = deadlineAfter(look.limitMs, look.clock)
  const input: unknown = record.input === undefined ? undefined : parseJson(record.input)
  try {
    if (plan.recovery.kind === 'rerun') {
      const { state, whole } = await execute({ ...ending, input, deadline, clean: false })
      discardWhole(plan, whole)
      return state
    }
    const asked = await askWhatHappened(plan, claim, input, deadline)
    switch (asked.found) {
      case 'happened':
        return (await complete(ending, asked.value, 'asked: it happened')).state
      case 'failed':
        return (await complete(ending, asked.failure, 'asked: it failed for good')).state
      case 'did-not-happen':
        return await free(claim, note('asked: it did not happen'))
      default:
        throw await loseClaim(ending, asked.because, asked.error)
    }
  } catch (error) {
    if (isRepriseError(error, 'OPERATION_UNKNOWN')) return 'unknown'
    if (isRepriseError(error, 'LEASE_LOST')) return 'elsewhere'
    throw error
  }
}

async function free(claim: HeldClaim, note: AuditNote): Promise<Looked> {
  const ended = await claim.end({ kind: 'release', proof: 'asked' }, note)
  if (ended.end === 'undelivered') throw ended.error
  if (ended.end === 'stale') return 'elsewhere'
  claim.tell('released', 'asked')
  return 'released'
}

function nextLookMs({ baseMs, capMs }: Look, { looks }: StoredRecord): number {
  return Math.min(capMs, baseMs * 2 ** Math.max(0, looks - 1))
}
