// One call of a leased operation: queue, claim, recovery or run, answer. What is decided is decided by the machine.

import type { StoredKey } from '../../identity/index.js'
import { type Deadline, inTime, RepriseError, remainingMs } from '../../kernel/index.js'
import {
  type OperationEvent,
  operationClaimed,
  operationExecuted,
  operationFailed,
  operationReplayed,
} from '../../telemetry/index.js'
import { refuseInside } from '../../transaction/index.js'
import { type CallIdentity, callDeadline, followed, identify } from '../call-identity.js'
import type { CallOptions } from '../definition.js'
import { tellRefusal } from '../errors.js'
import { refuseReentry, type Visitor } from '../in-process.js'
import { decodeOutcome, discardReturned, type Ending, type Outcome } from '../outcome.js'
import { claimKey } from './claiming.js'
import { askWhatHappened, execute } from './execution.js'
import type { Plan } from './plan.js'

// No call could be made under a window of a few milliseconds.
const shortestMs = 1_000

/** Work that goes on when its caller has been told that it was begun. */
export interface Behind {
  /** How long it may take, in ms. */
  readonly limitMs: number
  /** Hears that the claim is durable. */
  readonly claimed: () => void
}

/** One call. Made, it has refused an input or options that are not valid. */
export class LeasedCall implements Visitor {
  readonly id: StoredKey
  readonly fingerprint: string | undefined
  readonly refusesDuplicates: boolean
  readonly mostWaiting: number
  /** When there must be a claim. */
  readonly deadline: Deadline
  readonly signal: AbortSignal | undefined
  readonly waitUntilMs: number
  readonly #plan: Plan
  readonly #identity: CallIdentity<unknown>
  // When nothing more may be sent.
  readonly #runDeadline: Deadline
  readonly #behind: Behind | undefined

  constructor(plan: Plan, given: unknown, options: CallOptions = {}, behind?: Behind) {
    const { settings, deadlineMs, domain } = plan
    const { clock } = domain
    this.deadline = callDeadline(options, deadlineMs, Math.max(settings.windowMs, shortestMs), clock)
    this.#runDeadline =
      behind === undefined
        ? callDeadline(options, deadlineMs, Number.POSITIVE_INFINITY, clock)
        : { expiresAtMs: clock.monotonicMs() + behind.limitMs }
    this.#behind = behind
    this.signal = options.signal
    // Once: whatever happens to the input from here on, this is what the call is about.
    this.#identity = identify(settings, given, clock, domain.records.pepper)
    this.id = this.#identity.id
    this.fingerprint = this.#identity.fingerprint
    this.refusesDuplicates = settings.refusesDuplicates
    this.mostWaiting = settings.mostWaiting
    this.waitUntilMs = clock.monotonicMs() + settings.waitMs
    this.#plan = plan
  }

  /** Carries the call out. */
  async outcome(): Promise<Outcome<unknown>> {
    const { signal } = this
    const { settings, domain } = this.#plan
    const { queue, clock } = domain
    try {
      refuseReentry(queue, this.id)
      // What leaves the process from inside a transaction would be repeated with it.
      refuseInside()
      if (signal?.aborted === true) throw signal.reason
      if (remainingMs(this.deadline, clock) <= 0) {
        throw new RepriseError('DEADLINE_EXCEEDED', 'The deadline passed before the operation was begun.')
      }
      const told = await queue.enter(this.id, this)
      // Where the caller has gone, nobody gets what the body returned.
      const late = ({ whole }: Ending): void => {
        if (whole !== undefined) discardReturned(settings.storage, whole.value)
      }
      const ending = told === undefined ? await inTime({ signal }, this.#lead(), late) : this.#follow(told)
      const limits = { deadline: this.#runDeadline, signal, clock }
      return await decodeOutcome(settings.storage, ending, { id: this.id, operation: settings.name }, limits)
    } catch (error) {
      tellRefusal(error, () => this.#event())
      throw error
    }
  }

  #follow(told: Ending): Ending {
    const ending = followed(this.#identity, told)
    this.#announceReplay(ending, 'leader')
    return ending
  }

  // Also where the caller has given up: what was begun is brought to its end, and those who wait are told.
  async #lead(): Promise<Ending> {
    let ending: Ending | undefined
    try {
      ending = await this.#perform()
    } finally {
      this.#plan.domain.queue.done(this.id, this, ending)
    }
    if (!ending.own) this.#announceReplay(ending, 'store')
    else {
      const channel = ending.state === 'failed' ? operationFailed : operationExecuted
      if (channel.hasSubscribers) channel.publish(this.#event())
    }
    return ending
  }

  async #perform(): Promise<Ending> {
    const { deadline, waitUntilMs, signal, fingerprint } = this
    const plan = this.#plan
    const claimed = await claimKey({ plan, identity: this.#identity, deadline, waitUntilMs, signal })
    if ('finished' in claimed) {
      const { codec, value, fingerprint: bound } = claimed.finished
      const state = claimed.finished.state === 'failed' ? 'failed' : 'succeeded'
      return { state, codec, value, rememberedMs: plan.settings.windowMs, fingerprint: bound, own: false }
    }
    const { claim } = claimed
    const stopped = plan.domain.drill?.reached(plan.settings)
    if (signal?.aborted === true || stopped !== undefined) {
      // Nothing was begun under the claim, and nobody waits for it any more. What earlier claims may have sent stays
      // unknown.
      const { end } = await claim.end({ kind: 'release', proof: 'unsent' })
      if (end === 'written' && claim.claims === 1) claim.tell('released', 'aborted')
      throw stopped ?? signal?.reason
    }
    plan.domain.queue.claimed(this.id, this)
    this.#behind?.claimed()
    if (operationClaimed.hasSubscribers) operationClaimed.publish({ ...this.#event(), attempt: claim.claims })
    const work = { plan, claim, fingerprint, input: this.#identity.input, deadline: this.#runDeadline }
    // The first claim on a key follows nothing; one that was taken over follows a run that may have had its effect.
    if (claim.claims === 1) return execute(work, true)
    if (plan.recovery.kind === 'rerun') return execute(work, false)
    // What is found is the outcome of an earlier run.
    return (await askWhatHappened(work)) ?? execute(work, true)
  }

  #announceReplay({ state }: Ending, from: 'leader' | 'store'): void {
    if (operationReplayed.hasSubscribers) operationReplayed.publish({ ...this.#event(), outcome: state, from })
  }

  #event(): OperationEvent {
    const { domain, settings } = this.#plan
    return { domain: domain.name, operation: settings.name, mode: 'leased', id: this.id }
  }
}
