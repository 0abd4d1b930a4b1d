// One look of a sweep at one record: what the machine says is done, under a claim of the sweep's own, with a note
// beside it.

import type { AuditNote, NamedRecord, StoredRecord } from '../../atomicity/index.js'
import { deadlineAfter, defined, isRepriseError, uuidv4 } from '../../kernel/index.js'
import { parseJson } from '../codecs/json.js'
import { askWhatHappened, type ClaimedWork, execute } from '../leased/execution.js'
import { HeldClaim } from '../leased/held-claim.js'
import type { Plan } from '../leased/plan.js'
import { type Step, stepByStep, type TimeAndChance } from '../leased/store-calls.js'
import { decide, type LookEvent } from '../machine.js'
import { discardReturned } from '../outcome.js'

/**
 * What became of a record. `held`: a person has to settle it. `waiting`: it can only be run again by a caller, since
 * its input was not kept. `elsewhere`: somebody else works on it, or has ended it.
 */
export type Looked = 'succeeded' | 'failed' | 'released' | 'unknown' | 'held' | 'waiting' | 'elsewhere' | 'error'

/** What a look needs. */
export interface Look extends TimeAndChance {
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
}

/** Looks at a record that was taken as due. */
export async function lookAt(look: Look, { id, record: taken }: NamedRecord): Promise<Looked> {
  const plan = look.plans.get(taken.operation ?? '')
  if (plan === undefined) return 'elsewhere'
  const { leaseMs, marginMs, recovery, domain } = plan
  const { records } = domain
  const deadline = deadlineAfter(look.limitMs, look.clock)
  const token = uuidv4(look.random)
  const first: Step<Looked | Promise<Looked>> = { statement: (limits) => records.read(id, limits) }
  const looked = await stepByStep<Looked | Promise<Looked>>(look, deadline, first, ({ answer: { record, nowMs } }) => {
    if (record === undefined) return { end: 'elsewhere' }
    // Read before the record is taken over: one that cannot be read keeps its state and its reason.
    const { input, unreadable } = inputOf(record)
    const event: LookEvent = { kind: 'look', token, leaseMs, marginMs, recovery, ...defined({ unreadable }) }
    const decision = decide(record, event, nowMs)
    switch (decision.act) {
      case 'wait':
        return { end: record.state === 'unknown' ? 'waiting' : 'elsewhere' }
      case 'write': {
        const note = decision.note === undefined ? undefined : { ...decision.note, actor: look.actor }
        return {
          statement: (limits) => records.swap(id, record, decision.change, limits, note),
          written: () => 'held',
        }
      }
      case 'own':
      case 'ask':
      case 'execute':
        return {
          statement: (limits) => records.swap(id, record, decision.change, limits),
          written: (own, answered) =>
            own === undefined ? 'elsewhere' : drive(look, plan, new HeldClaim(plan, id, own, answered), own, input),
        }
      default:
        return { end: 'elsewhere' }
    }
  })
  return looked ?? 'elsewhere'
}

// Inputs are kept as JSON. Only another version, or somebody else, names a codec on a record without an outcome.
function inputOf({ input, codec }: StoredRecord): { readonly input?: unknown; readonly unreadable?: string } {
  if (codec !== undefined) return { unreadable: `written by the codec ${codec}, which nobody names here` }
  try {
    return { input: input === undefined ? undefined : parseJson(input) }
  } catch {
    return { unreadable: 'the kept input cannot be read as JSON' }
  }
}

async function drive(look: Look, plan: Plan, claim: HeldClaim, record: StoredRecord, input: unknown): Promise<Looked> {
  const note = (reason: string): AuditNote => ({ action: 'swept', actor: look.actor, reason })
  const deadline = deadlineAfter(look.limitMs, look.clock)
  // However it stays unknown, the next look comes later than this one did.
  const lookInMs = Math.min(look.capMs, look.baseMs * 2 ** Math.max(0, record.looks - 1))
  const work: ClaimedWork = { plan, claim, note, lookInMs, input, deadline }
  try {
    const ending = plan.recovery.kind === 'rerun' ? await execute(work, false) : await askWhatHappened(work)
    if (ending === undefined) return await free(claim, note('asked: it did not happen'))
    // Nobody waits for what the body returned.
    if (ending.whole !== undefined) discardReturned(plan.settings.storage, ending.whole.value)
    return ending.state
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
