// One call of a leased operation: queue, claim, recovery or run, answer. What is decided is decided by the machine; this carries it out.

import { recordFormat } from '../../atomicity/index.js'
import { type Deadline, RepriseError, remainingMs, whenAborted } from '../../kernel/index.js'
import {
  type OperationEvent,
  operationClaimed,
  operationExecuted,
  operationFailed,
  operationReplayed,
} from '../../telemetry/index.js'
import { refuseInside } from '../../transaction/index.js'
import { callDeadline, runDeadline } from '../call/call-deadline.js'
import { checkCall, decodedInTime, leastDecodeMs } from '../call/call-options.js'
import { type CallIdentity, identify, isSameContent } from '../call/identity.js'
import { mismatch, tellRefusal } from '../call/refusals.js'
import type { Told } from '../define/place.js'
import type { CallOptions } from '../definition.js'
import type { Failure } from '../failure.js'
import type { Lead, Visitor } from '../in-process/queue.js'
import { refuseReentry } from '../in-process/reentry.js'
import { type DecodedOutcome, decodeOutcome, type EncodedOutcome, type StoredOutcome } from '../values.js'
import { claimKey } from './claiming.js'
import { askWhatHappened, complete, discardWhole, execute, leaveUnbegun, loseClaim } from './execution.js'
import type { HeldClaim } from './held-claim.js'
import type { Plan } from './plan.js'

/** How a call ended. */
export type CallEnd = DecodedOutcome & { readonly replayed: boolean }

/** Carries one call out. */
export async function carryOut(plan: Plan, given: unknown, options: CallOptions = {}): Promise<CallEnd> {
  checkCall(options)
  // Before anything else, and once: whatever happens to the input from here on, this is what the call is about.
  const identity = identify(plan.settings, given, plan.place.clock.wallMs())
  try {
    refuseReentry(plan.place.queue, identity.id)
    // What leaves the process from inside a transaction would be repeated with it.
    refuseInside()
    return await new LeasedCall(plan, identity, options).end()
  } catch (error) {
    tellRefusal(error, () => eventOf(plan, identity))
    throw error
  }
}

function eventOf({ place, settings }: Plan, { id }: CallIdentity<unknown>): OperationEvent {
  return { domain: place.domain, operation: settings.name, mode: 'leased', id }
}

interface Answer {
  readonly told: Told
  /** Whether this call ran the operation. */
  readonly ran: boolean
  readonly encoded?: EncodedOutcome
}

class LeasedCall implements Visitor {
  /** When there must be a claim. */
  readonly deadline: Deadline
  readonly signal: AbortSignal | undefined
  readonly waitUntilMs: number
  readonly fingerprint: string | undefined
  readonly refusesDuplicates: boolean
  readonly mostWaiting: number
  readonly #plan: Plan
  readonly #identity: CallIdentity<unknown>
  // When nothing more may be sent.
  readonly #runDeadline: Deadline
  // What the caller gets as it is.
  #whole: EncodedOutcome['whole']

  constructor(plan: Plan, identity: CallIdentity<unknown>, { deadline = plan.deadline, signal }: CallOptions) {
    const { clock } = plan.place
    this.#plan = plan
    this.#identity = identity
    this.fingerprint = identity.fingerprint
    this.refusesDuplicates = plan.settings.refusesDuplicates
    this.mostWaiting = plan.settings.mostWaiting
    this.deadline = callDeadline(deadline, plan.settings.windowMs, clock)
    this.#runDeadline = runDeadline(deadline, clock)
    this.waitUntilMs = clock.monotonicMs() + plan.settings.waitMs
    this.signal = signal
  }

  async end(): Promise<CallEnd> {
    const { signal } = this
    const { queue, clock } = this.#plan.place
    if (signal?.aborted === true) throw signal.reason
    if (remainingMs(this.deadline, clock) <= 0) {
      throw new RepriseError('DEADLINE_EXCEEDED', 'The deadline passed before the operation was begun.')
    }
    const entered = await queue.enter(this.#identity.id, this)
    if ('told' in entered) {
      if (!isSameContent(this.#identity, { format: recordFormat, ...entered.told })) throw mismatch()
      return this.#replay(entered.told, 'leader')
    }
    const work = this.#lead(entered.lead)
    return signal === undefined ? work : this.#unlessAborted(work, signal)
  }

  // Also where the caller has given up: what was begun is brought to its end, and those who wait are told.
  async #lead(lead: Lead<Told>): Promise<CallEnd> {
    let answer: Answer | undefined
    try {
      answer = await this.#perform(lead)
    } finally {
      lead.done(answer?.told)
    }
    const { told, ran, encoded } = answer
    const whole = encoded?.whole
    this.#whole = whole
    if (!ran && whole === undefined) return this.#replay(told, 'store')
    if (ran) {
      const channel = told.state === 'failed' ? operationFailed : operationExecuted
      if (channel.hasSubscribers) channel.publish(this.#event())
    } else this.#announceReplay(told, 'store')
    if (whole === undefined) return { ...(await this.#decode(told, leastDecodeMs)), replayed: false }
    // What the store does not keep is still in this call's hands: its body returned it, or it was told what happened.
    return told.state === 'failed'
      ? { outcome: 'failed', failure: whole.value as Failure, replayed: !ran }
      : { outcome: 'succeeded', value: whole.value, replayed: !ran }
  }

  async #perform(lead: Lead<Told>): Promise<Answer> {
    const { deadline, waitUntilMs, signal } = this
    const [plan, identity] = [this.#plan, this.#identity]
    const claimed = await claimKey({ plan, identity, deadline, waitUntilMs, signal })
    if ('finished' in claimed) {
      const { state, codec, value, fingerprint } = claimed.finished
      const told = { state: state === 'failed' ? 'failed' : 'succeeded', codec, value, fingerprint } as const
      return { told, ran: false }
    }
    const { claim } = claimed
    if (signal?.aborted === true) throw await leaveUnbegun(claim, signal.reason)
    lead.claimed()
    if (operationClaimed.hasSubscribers) operationClaimed.publish({ ...this.#event(), attempt: claim.claims })
    // The first claim on a key follows nothing; one that was taken over follows a run that may have had its effect.
    if (claim.claims === 1) return this.#execute(claim, true)
    return plan.recovery.kind === 'rerun' ? this.#execute(claim, false) : this.#askFirst(claim)
  }

  async #execute(claim: HeldClaim, clean: boolean): Promise<Answer> {
    const { input } = this.#identity
    return this.#ended(await execute({ plan: this.#plan, claim, input, deadline: this.#runDeadline, clean }), true)
  }

  async #askFirst(claim: HeldClaim): Promise<Answer> {
    const ending = { plan: this.#plan, claim }
    const asked = await askWhatHappened(this.#plan, claim, this.#identity.input, this.#runDeadline)
    // What was found is the outcome of an earlier run.
    if (asked.found === 'happened') return this.#ended(await complete(ending, asked.value, ''), false)
    if (asked.found === 'failed') return this.#ended(await complete(ending, asked.failure, ''), false)
    if (asked.found === 'did-not-happen') return this.#execute(claim, true)
    throw await loseClaim(ending, asked.because, asked.error)
  }

  #ended(encoded: EncodedOutcome, ran: boolean): Answer {
    const { state, codec, value } = encoded
    return { told: { state, codec, value, fingerprint: this.fingerprint }, ran, encoded }
  }

  async #replay(told: Told, from: 'leader' | 'store'): Promise<CallEnd> {
    this.#announceReplay(told, from)
    return { ...(await this.#decode(told, 0)), replayed: true }
  }

  #announceReplay({ state }: Told, from: 'leader' | 'store'): void {
    if (operationReplayed.hasSubscribers) operationReplayed.publish({ ...this.#event(), outcome: state, from })
  }

  async #decode(stored: StoredOutcome, leastMs: number): Promise<DecodedOutcome> {
    const { settings, place } = this.#plan
    const { signal } = this
    const deadline = this.#runDeadline
    const decoding = decodeOutcome(settings.values, stored, { id: this.#identity.id, operation: settings.name })
    return decodedInTime(decoding, { deadline, signal, clock: place.clock, leastMs })
  }

  #event(): OperationEvent {
    return eventOf(this.#plan, this.#identity)
  }

  #unlessAborted(work: Promise<CallEnd>, signal: AbortSignal): Promise<CallEnd> {
    return new Promise((resolve, reject) => {
      const leave = whenAborted(signal, () => {
        reject(signal.reason)
        // What is in the hands of the call when the caller has gone is got by nobody.
        work.then(
          () => discardWhole(this.#plan, this.#whole),
          () => undefined,
        )
      })
      work.then(resolve, reject).finally(leave)
    })
  }
}
