// The lease of one run: it checks before each call that the claim still stands, and keeps account of what may have
// left.

import { derive, type Key } from '../../identity/index.js'
import { type Clock, type Deadline, RepriseError, remainingMs } from '../../kernel/index.js'
import { type Classifier, SentWatch } from '../../retry/index.js'
import { leaseLost, operationUnknown } from '../errors.js'
import { reach } from './fault-points.js'
import type { HeldClaim } from './held-claim.js'
import type { EffectCall, Lease } from './lease.js'

// `waiting`: it is being made sure that the claim stands; nothing was sent yet, but its step is taken.
type Sent = 'waiting' | 'under-way' | 'done' | 'maybe' | 'no'

/** What a lease is made of. */
export interface LeaseParts {
  readonly claim: HeldClaim
  /** When nothing more may be sent. */
  readonly deadline: Deadline
  /** How much of the lease must be left for a call to begin, in ms. */
  readonly leftForCallMs: number
  /** Judges what a call threw. */
  readonly classify: Classifier
  /**
   * Runs that follow one that may have sent something: how long after the first claim the receiver knows a key, in ms.
   * `Infinity`: it does not matter.
   */
  readonly knownForMs: number
  readonly clock: Clock
}

/**
 * The lease of one run: it checks before each call that the claim still stands, and keeps account of what may have
 * left.
 */
export class BodyLease implements Lease {
  readonly token: string
  readonly fence: number
  readonly attempt: number
  readonly signal: AbortSignal
  readonly deadline: Deadline
  readonly #parts: LeaseParts
  readonly #calls: { readonly step: string; sent: Sent }[] = []
  readonly #pending = new Set<{ readonly work: Promise<unknown>; readonly handed: Promise<unknown> }>()
  #unsent: { readonly error: unknown } | undefined
  #closed = false

  constructor(parts: LeaseParts) {
    const { claim } = parts
    this.#parts = parts
    this.token = claim.token
    this.fence = claim.fence
    this.attempt = claim.claims
    this.signal = claim.signal
    this.deadline = parts.deadline
  }

  key(step: string): Key {
    return stepKey(this.#parts.claim, step)
  }

  notSent<Thrown>(error: Thrown): Thrown {
    this.#unsent = { error }
    return error
  }

  renew(): Promise<void> {
    return this.#closed ? Promise.reject(leaseLost('over')) : this.#parts.claim.renew()
  }

  effect<Value>(step: string, call: (call: EffectCall) => PromiseLike<Value> | Value): Promise<Value> {
    const work = this.#effect(step, call)
    // The body gets a promise of its own, on which nobody else waits: a failure that it does not hear of is an
    // unhandled rejection, as that of any other promise.
    const handed = work.then((value) => value)
    const pending = { work, handed }
    this.#pending.add(pending)
    const left = (): void => void this.#pending.delete(pending)
    work.then(left, left)
    return handed
  }

  /** Waits for calls that are still under way when the body has returned; a failure of theirs is the body's. */
  async settled(): Promise<void> {
    for (const { handed } of this.#pending) handed.catch(() => undefined)
    while (this.#pending.size > 0) await Promise.all([...this.#pending].map(({ work }) => work))
  }

  /** Nothing is to be sent any more: the body has ended. */
  close(): void {
    this.#closed = true
  }

  /** Whether it is proven that nothing left. */
  sentNothing(error: unknown): boolean {
    if (this.#calls.some(({ sent }) => sent === 'done' || sent === 'under-way')) return false
    if (this.#unsent !== undefined) {
      const { error: declared } = this.#unsent
      // An error around the one that was declared says the same: a text that was thrown travels inside of one.
      if (error === declared || (error instanceof Error && 'cause' in error && error.cause === declared)) return true
    }
    // A body that makes no calls here may have sent something by other means.
    return this.#calls.length > 0 && this.#calls.every(({ sent }) => sent === 'no' || sent === 'waiting')
  }

  async #effect<Value>(step: string, call: (call: EffectCall) => PromiseLike<Value> | Value): Promise<Value> {
    const { claim, leftForCallMs, classify } = this.#parts
    const entry: { readonly step: string; sent: Sent } = { step, sent: 'waiting' }
    const repeated = this.#calls.some((earlier) => earlier.step === step && earlier.sent !== 'no')
    const key = this.key(step)
    if (repeated)
      throw new RepriseError('STEP_INVALID', 'The step was used before in this run: two calls need two names.')
    this.#calls.push(entry)
    try {
      const fault = reach('leased.before-effect')
      if (fault) await fault
      await claim.refresh(leftForCallMs)
      this.#refuseLate()
    } catch (error) {
      entry.sent = 'no'
      throw error
    }
    // From here to the call there is no wait, so that nothing can come between check and use.
    entry.sent = 'under-way'
    const watch = new SentWatch()
    try {
      const value = await watch.call(call, { key, signal: this.signal, attempt: this.attempt, fence: this.fence })
      entry.sent = 'done'
      const after = reach('leased.after-effect')
      if (after) await after
      return value
    } catch (error) {
      const verdict = entry.sent === 'under-way' ? classify(error) : undefined
      if (verdict !== undefined && watch.judge(verdict, error).happened === 'no') entry.sent = 'no'
      else if (entry.sent === 'under-way') entry.sent = 'maybe'
      throw error
    }
  }

  #refuseLate(): void {
    const { claim, knownForMs, leftForCallMs, clock } = this.#parts
    if (this.#closed) throw leaseLost('over')
    // A run may take longer than was thought when it began.
    if (claim.storeNowMs + leftForCallMs > claim.firstClaimedAtMs + knownForMs) {
      throw operationUnknown({ because: 'rerun-window-over' })
    }
    if (remainingMs(this.deadline, clock) > 0) return
    throw new RepriseError('DEADLINE_EXCEEDED', 'The deadline passed before the call was made; nothing was sent.')
  }
}

/** The key of a step: made of the record's name, so that a sweep knows it too. */
export function stepKey({ id }: Pick<HeldClaim, 'id'>, step: string): Key {
  return derive(id as string as Key, step)
}
