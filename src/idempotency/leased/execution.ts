// Working under a claim: running the body, or asking what happened, and writing what its end means.

import type { AuditNote } from '../../atomicity/index.js'
import { type Key, withIntent } from '../../identity/index.js'
import { type Deadline, isRepriseError, remainingMs } from '../../kernel/index.js'
import { finalFailureIn } from '../call/final-failure.js'
import { privateCopy } from '../call/private-copy.js'
import { isFailure } from '../failure.js'
import { insideOperation } from '../in-process/reentry.js'
import { discardReturned, type EncodedOutcome, encodeOutcome, isUnencoded, unencodedOutcome } from '../values.js'
import { BodyLease, stepKey } from './body-lease.js'
import { reach } from './fault-points.js'
import type { HeldClaim } from './held-claim.js'
import type { Plan } from './plan.js'
import { type Found, isFound } from './recovery.js'
import { leaseLost, operationUnknown } from './refusals.js'

/** What is needed to write an end. */
export interface Ending {
  /** The operation. */
  readonly plan: Plan
  /** The claim. */
  readonly claim: HeldClaim
  /** Makes a line about how it ended, for sweeps. Default: none. */
  readonly note?: (reason: string) => AuditNote
  /** When a sweep looks at it again where it stays unknown, in ms from now. Default: as the definition says. */
  readonly lookInMs?: number
}

/** One run. */
export interface Execution extends Ending {
  /** The input; the body gets a copy. */
  readonly input: unknown
  /** When nothing more may be sent. */
  readonly deadline: Deadline
  /** Whether it is sure that no earlier run had an effect. */
  readonly clean: boolean
}

/** Runs the body and writes how it ended. Throws the body's own error where nothing was sent, OPERATION_UNKNOWN or LEASE_LOST otherwise. */
export async function execute(execution: Execution): Promise<EncodedOutcome> {
  const { plan, claim, deadline } = execution
  const { allowanceMs, classify, place, recovery, settings } = plan
  const knownForMs = execution.clean || recovery.kind !== 'rerun' ? Number.POSITIVE_INFINITY : recovery.windowMs
  const lease = new BodyLease({ claim, deadline, allowanceMs, classify, clock: place.clock, knownForMs })
  claim.keepUp(deadline)
  const running = run(execution, lease)
  let returned: unknown
  try {
    returned = await claim.unlessLost(running)
  } catch (error) {
    lease.close()
    // A body that goes on after its claim is lost returns when nobody listens any more.
    running.then(
      (late) => discardReturned(settings.values, late),
      () => undefined,
    )
    // Where only no renewal was confirmed in time, the store decides about what the body ended with.
    const { lost } = claim
    if (claim.gone !== undefined || (lost !== undefined && error === lost)) throw lostWhileRunning(claim, error)
    const event = () => ({ domain: place.domain, operation: settings.name, mode: 'leased', id: claim.id }) as const
    const failure = finalFailureIn(error, settings.options, event)
    if (failure !== undefined) return complete(execution, failure, 'run again: it failed for good')
    if (execution.clean && lease.sentNothing(error)) throw await release(execution, error)
    throw await loseClaim(execution, becauseOf(plan, error), error)
  }
  lease.close()
  return complete(execution, returned, `run again: it ${isFailure(returned) ? 'failed for good' : 'succeeded'}`)
}

function lostWhileRunning({ lost, gone }: HeldClaim, error: unknown): unknown {
  const because = gone === undefined ? 'not-renewed' : 'lost-while-running'
  return leaseLost(because, { ran: true }, error === lost ? undefined : error)
}

function run({ plan, claim, input, deadline }: Execution, lease: BodyLease): Promise<unknown> {
  const work = async (): Promise<unknown> => {
    const fault = reach('leased.claimed')
    if (fault) await fault
    const returned = await plan.run(lease, privateCopy(input))
    await lease.settled()
    return returned
  }
  // The record's name is the key that calls below derive theirs from: two operations never share one.
  const intent = { key: claim.id as string as Key, deadline }
  return insideOperation(plan.place.queue, claim.id, () => withIntent(intent, work))
}

/**
 * Stores what a body returned, or what was found out. Throws LEASE_LOST where the claim is somebody else's, OPERATION_UNKNOWN where it could not be stored.
 *
 * @param returned The result, or a failure made by `fail`.
 */
export async function complete(ending: Ending, returned: unknown, reason: string): Promise<EncodedOutcome> {
  try {
    return await store(ending, returned, reason)
  } catch (error) {
    discardReturned(ending.plan.settings.values, returned)
    throw error
  }
}

/** Discards what only the caller of an operation could have got, where there is none. */
export function discardWhole({ settings }: Plan, whole: EncodedOutcome['whole']): void {
  if (whole !== undefined) discardReturned(settings.values, whole.value)
}

async function store(ending: Ending, returned: unknown, reason: string): Promise<EncodedOutcome> {
  const { plan, claim, note } = ending
  const { values, name, windowMs } = plan.settings
  let encoded: EncodedOutcome
  try {
    // A codec may take its time, but not longer than the claim lasts.
    encoded = await claim.unlessLost(
      Promise.resolve(encodeOutcome(values, returned, { id: claim.id, operation: name })),
    )
  } catch (error) {
    const said = isRepriseError(error) && error !== claim.lost
    const kept = unencodedOutcome(returned, error)
    if (kept === undefined) throw await loseClaim(ending, said ? error.code : 'outcome-not-encoded', error)
    // The effect is there, and another run would return the same: what can be kept is that it is done.
    encoded = kept
  }
  const before = reach('leased.before-complete')
  if (before) await before
  const { state, codec, value } = encoded
  const event = { kind: 'complete', state, codec, value, rememberedMs: windowMs } as const
  const written = await claim.end(event, note?.(reason))
  if (written.end === 'stale') throw leaseLost(`${written.because}-before-completion`, ran(ending))
  if (written.end === 'undelivered') {
    claim.tell('unknown', 'outcome-not-stored')
    // The effect is there. Its record stays claimed, and is recovered as declared.
    throw operationUnknown({ because: 'outcome-not-stored', ran: true }, written.error)
  }
  claim.tell('completed', isUnencoded(encoded) ? 'unencoded' : state)
  const after = reach('leased.completed')
  if (after) await after
  return encoded
}

// The key is free again; the caller gets the body's own error, also where the store could not be told: then the lease has to end first.
async function release({ claim, note }: Execution, error: unknown): Promise<unknown> {
  const before = reach('leased.before-release')
  if (before) await before
  // Only where no earlier run had an effect does one come here: there was none, or the world was asked.
  const proof = claim.claims === 1 ? 'unsent' : 'asked'
  const ended = await claim.end({ kind: 'release', proof }, note?.('nothing was sent'))
  if (ended.end === 'stale') return leaseLost(`${ended.because}-before-release`, { ran: true }, error)
  if (ended.end === 'undelivered') return error
  claim.tell('released')
  const after = reach('leased.released')
  if (after) await after
  return error
}

/** Gives up a claim under which nothing was begun, since nobody waits for it any more; the error for the caller. What earlier claims may have sent stays unknown. */
export async function leaveUnbegun(claim: HeldClaim, reason: unknown): Promise<unknown> {
  const { end } = await claim.end({ kind: 'release', proof: 'unsent' })
  if (end === 'written' && claim.claims === 1) claim.tell('released', 'aborted')
  return reason
}

/** Writes that nobody knows; the error for the caller. */
export async function loseClaim(ending: Ending, because: string, cause: unknown): Promise<unknown> {
  const { plan, claim, note, lookInMs = plan.lookAfterMs } = ending
  const before = reach('leased.before-lose')
  if (before) await before
  const look = plan.recovery.kind === 'hold' ? undefined : lookInMs
  const ended = await claim.end({ kind: 'lose', because, lookInMs: look }, note?.(`still unknown: ${because}`))
  if (ended.end === 'stale') return leaseLost(ended.because, ran(ending), cause)
  claim.tell('unknown', because)
  const after = ended.end === 'written' ? reach('leased.unknown') : undefined
  if (after) await after
  return operationUnknown({ because, ...ran(ending) }, cause)
}

// Whether the body ran in this call, for whoever answers for it.
function ran(ending: Ending): { readonly ran?: true } {
  return 'clean' in ending ? { ran: true } : {}
}

/** What was found, and why nothing was. */
export type Asked =
  | Exclude<Found, { readonly found: 'still-unknown' }>
  | { readonly found: 'still-unknown'; readonly because: string; readonly error?: unknown }

/** Asks what happened, until the deadline at the latest: slow answers, wrong ones and errors all mean that nobody knows yet. Throws LEASE_LOST where the claim is lost. */
export async function askWhatHappened(
  plan: Plan,
  claim: HeldClaim,
  input: unknown,
  deadline: Deadline,
): Promise<Asked> {
  claim.keepUp(deadline)
  const fault = reach('leased.asking')
  if (fault) await fault
  let asked: Asked
  try {
    asked = await claim.unlessLost(cutOff(plan, deadline, () => ask(plan, claim, input)))
  } catch (error) {
    if (claim.lost !== undefined) throw claim.lost
    asked = { found: 'still-unknown', because: 'resolve-failed', error }
  }
  claim.tell('asked', asked.found)
  const after = reach('leased.asked')
  if (after) await after
  return asked
}

async function ask(plan: Plan, claim: HeldClaim, input: unknown): Promise<Asked> {
  const found: unknown = await plan.ask?.({
    operation: plan.settings.name,
    key: (step) => stepKey(claim, step),
    claimedAtMs: claim.firstClaimedAtMs,
    input: privateCopy(input),
    signal: claim.signal,
  })
  if (!isFound(found)) return { found: 'still-unknown', because: 'resolve-answer-invalid' }
  return found.found === 'still-unknown' ? { found: 'still-unknown', because: 'resolve-still-unknown' } : found
}

// Asking has no effect, so nobody needs to hear of an answer that comes too late.
function cutOff({ place: { clock } }: Plan, deadline: Deadline, work: () => Promise<Asked>): Promise<Asked> {
  return new Promise((resolve, reject) => {
    const cancel = clock.setTimer(remainingMs(deadline, clock), () => {
      resolve({ found: 'still-unknown', because: 'resolve-timeout' })
    })
    work().then(resolve, reject).finally(cancel)
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
