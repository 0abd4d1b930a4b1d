// Getting a claim: the store's unique index decides, the machine says what is there, and whoever comes second waits for
// the winner or is refused.

import { isSameContent, type RecordLimits, type Seen, type StoredRecord, type Written } from '../../atomicity/index.js'
import { type Deadline, defined, isRepriseError, RepriseError, remainingMs, sleep, uuidv4 } from '../../kernel/index.js'
import { type Backoff, equalJitter } from '../../retry/index.js'
import type { CallIdentity } from '../call-identity.js'
import { printJson } from '../codecs/json.js'
import { inFlight, refusedBy } from '../errors.js'
import { type ClaimEvent, type Decision, decide } from '../machine.js'
import { reach } from './fault-points.js'
import { HeldClaim } from './held-claim.js'
import type { Plan } from './plan.js'
import { type Step, type StoreAnswer, stepByStep } from './store-calls.js'

/** A claim, or the finished record that was there already. */
export type Claimed = { readonly claim: HeldClaim } | { readonly finished: StoredRecord }

/** One call, up to its claim. */
export interface Claiming {
  readonly plan: Plan
  /** Which intent it is about. */
  readonly identity: CallIdentity<unknown>
  /** When the call ends. */
  readonly deadline: Deadline
  /** When the wait for a winner ends, in ms of monotonic time. */
  readonly waitUntilMs: number
  /** Ends the wait for a winner. */
  readonly signal: AbortSignal | undefined
}

// How often a winner is looked at: soon at first, since most are quick, then once a second at most.
const pollBackoff: Backoff = /* @__PURE__ */ equalJitter({ baseMs: 20, capMs: 1_000 })
const mostSteps = 10_000
// A lock is waited for at least this long, in ms: other writers hold it for a moment each.
const shortWaitMs = 25
const largestInput = 262_144

/** Claims the key, or hands out what is there. Refuses with the codes of operations. */
export async function claimKey(claiming: Claiming): Promise<Claimed> {
  const { clock, manifest } = claiming.plan.domain
  const sinceMs = clock.monotonicMs()
  try {
    const claimed = await claimOrFind(claiming)
    if (claimed !== undefined) return claimed
  } catch (error) {
    if (!isRepriseError(error, 'LOCK_TIMEOUT')) throw error
    // Where only the whole store can be locked, whoever holds it may be at work on this very key.
    const waitedMs = Math.round(clock.monotonicMs() - sinceMs)
    throw inFlight({ waitedMs, certain: manifest.refuse !== 'coarse' }, error.cause)
  }
  throw refusedBy({ because: 'in-flight' }, undefined)
}

// Undefined: the record changed under every step.
async function claimOrFind(claiming: Claiming): Promise<Claimed | undefined> {
  const { plan, identity, deadline, waitUntilMs } = claiming
  const { domain, settings, leaseMs, marginMs, recovery } = plan
  const { clock, random, records } = domain
  const { id, scope, fingerprint } = identity
  const token = uuidv4(random)
  const input = plan.keepInput ? keptInput(identity.input) : undefined
  const base = { kind: 'claim', mode: 'leased', token, fingerprint, leaseMs, marginMs, recovery, input } as const
  const claim = { mode: 'leased', operation: settings.name, scope, token, leaseMs } as const
  const draft = { ...claim, ...defined({ fingerprint, input }) }
  let waits = 0

  const held = (record: StoredRecord | undefined, answered: StoreAnswer<Seen>): Claimed => {
    if (record === undefined) throw refusedBy({ because: 'invalid' }, record)
    return { claim: new HeldClaim(plan, id, record, answered) }
  }
  // Nothing has begun under a claim, so it is not waited for where the store is full or locked. Not so one that may be
  // our own already: that is not left behind.
  const impatient = () => ({ lockUntilMs: Math.max(waitUntilMs, clock.monotonicMs() + shortWaitMs) })
  const insert = (): Step<Claimed> => ({
    statement: (limits) => records.insert(id, draft, limits),
    written: held,
    options: impatient(),
  })
  const read = (): Step<Claimed> => ({ statement: (limits) => records.read(id, limits), options: impatient() })
  const decideOn = async ({ answer }: StoreAnswer<Seen>): Promise<Step<Claimed>> => {
    const { record, nowMs } = answer
    const event: ClaimEvent = { ...base, sameContent: record === undefined || isSameContent(identity, record) }
    const decision = decide(record, event, nowMs)
    if (decision.act === 'insert') return insert()
    if (record === undefined) throw refusedBy({ because: 'invalid' }, record)
    const options = record.token === token ? {} : impatient()
    switch (decision.act) {
      case 'replay':
        return { end: { finished: record } }
      // One's own claim whose answer was lost begins its lease anew: nobody knows how long the answer took.
      case 'own':
      case 'execute':
      case 'ask': {
        const statement = (limits: RecordLimits): Promise<Written> => records.swap(id, record, decision.change, limits)
        return { statement, written: held, options }
      }
      case 'refuse': {
        const { change } = decision
        if (change !== undefined) {
          const refuse = (written: StoredRecord | undefined): never => {
            throw refusedBy(decision, written)
          }
          return { statement: (limits) => records.swap(id, record, change, limits), written: refuse, options }
        }
        waits += 1
        await waitForWinner(claiming, waits, decision, record)
        return read()
      }
      default:
        throw refusedBy({ because: 'invalid' }, record)
    }
  }

  const fault = reach('leased.claiming')
  if (fault) await fault
  // Most keys are new, so the insert comes first, and says what is there where it is not.
  return stepByStep(domain, deadline, insert(), decideOn, mostSteps)
}

// Waits before the winner is looked at again. Throws the refusal where nobody waits, or not any longer.
async function waitForWinner(
  { plan, deadline, waitUntilMs, signal }: Claiming,
  waits: number,
  decision: Extract<Decision, { readonly act: 'refuse' }>,
  record: StoredRecord,
): Promise<void> {
  const { clock, random } = plan.domain
  const untilMs = plan.settings.refusesDuplicates ? 0 : Math.min(waitUntilMs, deadline.expiresAtMs)
  const leftMs = remainingMs({ expiresAtMs: untilMs }, clock)
  if (decision.because !== 'in-flight' || leftMs <= 0) throw refusedBy(decision, record)
  const delayMs = Math.min(pollBackoff.delayMs(waits, 0, random), leftMs, decision.retryInMs ?? leftMs)
  await sleep(delayMs, { clock, ...defined({ signal }) })
  // The last look would come too late to be of use.
  if (remainingMs(deadline, clock) <= 0) throw refusedBy({ because: 'in-flight' }, record)
}

function keptInput(input: unknown): string {
  const text = printJson(input, largestInput)
  if (text !== undefined) return text
  throw new RepriseError('ARGUMENT_INVALID', `An input that is kept has at most ${largestInput} bytes of JSON.`, {
    details: { largestInput },
  })
}
