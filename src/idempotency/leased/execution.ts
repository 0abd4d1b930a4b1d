// Working under a claim: running the body, or asking what happened, and writing what its end means.

import type { AuditNote } from '../../atomicity/index.js'
import { type Key, withIntent } from '../../identity/index.js'
import { type Deadline, inTime, isRepriseError, remainingMs } from '../../kernel/index.js'
import { privateCopy } from '../call-identity.js'
import { leaseLost, operationUnknown } from '../errors.js'
import { insideOperation } from '../in-process.js'
import {
  discardReturned,
  type Ending,
  encodeOutcome,
  finalFailureIn,
  isFailure,
  isUnencoded,
  unencodedOutcome,
} from '../outcome.js'
import { BodyLease, stepKey } from './body-lease.js'
import { reach } from './fault-points.js'
import type { HeldClaim } from './held-claim.js'
import type { Plan } from './plan.js'
import { type Found, isFound } from './recovery.js'

/** Work under a claim. */
export interface ClaimedWork {
  readonly plan: Plan
  readonly claim: HeldClaim
  /** The fingerprint in the record. Default: none, nobody waits for it. */
  readonly fingerprint?: string | undefined
  /** Makes a line about how it ended, for sweeps. Default: none. */
  readonly note?: (reason: string) => AuditNote
  /** When a sweep looks at it again where it stays unknown, in ms from now. Default: as the definition says. */
  readonly lookInMs?: number
  /** The input; body and recovery get a copy. */
  readonly input: unknown
  /** When nothing more may be sent. */
  readonly deadline: Deadline
}

/**
 * Runs the body and writes how it ended. Throws the body's own error where nothing was sent, OPERATION_UNKNOWN or
 * LEASE_LOST otherwise.
 *
 * @param clean Whether it is sure that no earlier run had an effect.
 */
export async function execute(work: ClaimedWork, clean: boolean): Promise<Ending> {
  const { plan, claim, deadline } = work
  const { leftForCallMs, classify, domain, recovery, settings } = plan
  const knownForMs = clean || recovery.kind !== 'rerun' ? Number.POSITIVE_INFINITY : recovery.windowMs
  const lease = new BodyLease({ claim, deadline, leftForCallMs, classify, clock: domain.clock, knownForMs })
  claim.keepUp(deadline)
  const running = run(work, lease)
  let returned: unknown
  try {
    returned = await claim.unlessLost(running)
  } catch (error) {
    lease.close()
    // A body that goes on after its claim is lost returns when nobody listens any more.
    running.then(
      (late) => discardReturned(settings.storage, late),
      () => undefined,
    )
    // Where only no renewal was confirmed in time, the store decides about what the body ended with.
    const { lost, gone } = claim
    if (gone !== undefined || (lost !== undefined && error === lost)) {
      const because = gone === undefined ? 'not-renewed' : 'lost-while-running'
      throw leaseLost(because, { ran: true }, error === lost ? undefined : error)
    }
    const event = () => ({ domain: domain.name, operation: settings.name, mode: 'leased', id: claim.id }) as const
    const failure = finalFailureIn(error, settings.options.terminal, event)
    if (failure !== undefined) return complete(work, failure, 'run again: it failed for good', ranHere)
    if (clean && lease.sentNothing(error)) throw await release(work, error)
    throw await loseClaim(work, becauseOf(plan, error), error, ranHere)
  }
  lease.close()
  const reason = `run again: it ${isFailure(returned) ? 'failed for good' : 'succeeded'}`
  return complete(work, returned, reason, ranHere)
}

// Says in errors that the body ran in this call, for whoever answers for it.
const ranHere = { ran: true } as const
const notRun = {} as const

function run({ plan, claim, input, deadline }: ClaimedWork, lease: BodyLease): Promise<unknown> {
  const work = async (): Promise<unknown> => {
    const fault = reach('leased.claimed')
    if (fault) await fault
    const returned = await plan.run(lease, privateCopy(input))
    await lease.settled()
    return returned
  }
  // The record's name is the key that calls below derive theirs from: two operations never share one.
  const intent = { key: claim.id as string as Key, deadline }
  return insideOperation(plan.domain.queue, claim.id, () => withIntent(intent, work))
}

// Stores what a body returned, or what was found out. Throws LEASE_LOST where the claim is somebody else's,
// OPERATION_UNKNOWN where it could not be stored; nobody gets the value then.
async function complete(
  work: ClaimedWork,
  returned: unknown,
  reason: string,
  ran: typeof ranHere | typeof notRun,
): Promise<Ending> {
  const { plan, claim, note, fingerprint } = work
  const { storage, name } = plan.settings
  try {
    let ending: Ending
    try {
      const encoding = encodeOutcome(storage, returned, { id: claim.id, operation: name }, fingerprint)
      // A codec may take its time, but not longer than the claim lasts.
      ending = await claim.unlessLost(Promise.resolve(encoding))
    } catch (error) {
      const said = isRepriseError(error) && error !== claim.lost
      const kept = unencodedOutcome(storage, returned, fingerprint, error)
      if (kept === undefined) throw await loseClaim(work, said ? error.code : 'outcome-not-encoded', error, ran)
      // The effect is there, and another run would return the same: what can be kept is that it is done.
      ending = kept
    }
    const before = reach('leased.before-complete')
    if (before) await before
    const { state, codec, value, rememberedMs } = ending
    const written = await claim.end({ kind: 'complete', state, codec, value, rememberedMs }, note?.(reason))
    if (written.end === 'stale') throw leaseLost(`${written.because}-before-completion`, ran)
    if (written.end === 'undelivered') {
      claim.tell('unknown', 'outcome-not-stored')
      // The effect is there. Its record stays claimed, and is recovered as declared.
      throw operationUnknown({ because: 'outcome-not-stored', ran: true }, written.error)
    }
    claim.tell('completed', isUnencoded(ending) ? 'unencoded' : state)
    const after = reach('leased.completed')
    if (after) await after
    return ending
  } catch (error) {
    discardReturned(storage, returned)
    throw error
  }
}

// The key is free again; the caller gets the body's own error, also where the store could not be told: then the lease
// has to end first.
async function release({ claim, note }: ClaimedWork, error: unknown): Promise<unknown> {
  const before = reach('leased.before-release')
  if (before) await before
  // Only where no earlier run had an effect does one come here: there was none, or the world was asked.
  const proof = claim.claims === 1 ? 'unsent' : 'asked'
  const ended = await claim.end({ kind: 'release', proof }, note?.('nothing was sent'))
  if (ended.end === 'stale') return leaseLost(`${ended.because}-before-release`, ranHere, error)
  if (ended.end === 'undelivered') return error
  claim.tell('released')
  const after = reach('leased.released')
  if (after) await after
  return error
}

// Writes that nobody knows; the error for the caller.
async function loseClaim(
  work: ClaimedWork,
  because: string,
  cause: unknown,
  ran: typeof ranHere | typeof notRun,
): Promise<unknown> {
  const { plan, claim, note, lookInMs = plan.lookAfterMs } = work
  const before = reach('leased.before-lose')
  if (before) await before
  const look = plan.recovery.kind === 'hold' ? undefined : lookInMs
  const ended = await claim.end({ kind: 'lose', because, lookInMs: look }, note?.(`still unknown: ${because}`))
  if (ended.end === 'stale') return leaseLost(ended.because, ran, cause)
  claim.tell('unknown', because)
  const after = ended.end === 'written' ? reach('leased.unknown') : undefined
  if (after) await after
  return operationUnknown({ because, ...ran }, cause)
}

/**
 * Asks what happened under earlier claims, until the deadline at the latest, and stores it. Undefined: it did not
 * happen. Slow answers, wrong ones and errors all mean that nobody knows yet: OPERATION_UNKNOWN. Throws LEASE_LOST
 * where the claim is lost.
 */
export async function askWhatHappened(work: ClaimedWork): Promise<Ending | undefined> {
  const { plan, claim, deadline } = work
  const { clock } = plan.domain
  claim.keepUp(deadline)
  const fault = reach('leased.asking')
  if (fault) await fault
  let found: Found | undefined
  let because = 'resolve-still-unknown'
  let cause: unknown
  try {
    // Asking has no effect, so nobody needs to hear of an answer that comes too late.
    const limits = { clock, limitMs: remainingMs(deadline, clock), expired: () => tooLate }
    const answer = await claim.unlessLost(inTime(limits, ask(work)))
    if (isFound(answer)) found = answer
    else because = 'resolve-answer-invalid'
  } catch (error) {
    if (claim.lost !== undefined) throw claim.lost
    because = error === tooLate ? 'resolve-timeout' : 'resolve-failed'
    cause = error === tooLate ? undefined : error
  }
  claim.tell('asked', found?.found ?? 'still-unknown')
  const after = reach('leased.asked')
  if (after) await after
  switch (found?.found) {
    case 'happened':
      return { ...(await complete(work, found.value, 'asked: it happened', notRun)), own: false }
    case 'failed':
      return { ...(await complete(work, found.failure, 'asked: it failed for good', notRun)), own: false }
    case 'did-not-happen':
      return undefined
    default:
      throw await loseClaim(work, because, cause, notRun)
  }
}

const tooLate = Symbol('too late')

async function ask({ plan, claim, input }: ClaimedWork): Promise<unknown> {
  return plan.ask?.({
    operation: plan.settings.name,
    key: (step) => stepKey(claim, step),
    claimedAtMs: claim.firstClaimedAtMs,
    input: privateCopy(input),
    signal: claim.signal,
  })
}

const word = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/

// Only words from closed sets are stored, never what an error says.
function becauseOf(plan: Plan, error: unknown): string {
  if (isRepriseError(error, 'OPERATION_UNKNOWN')) return String(error.details['because'] ?? error.code)
  if (isRepriseError(error)) return error.code
  const why = plan.classify(error)?.why
  return why !== undefined && word.test(why) ? why : 'unclassified'
}
