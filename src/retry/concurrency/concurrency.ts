// A limit on the attempts that are out at a time, so that a target which has become slow cannot collect more of them
// than it answers in time. Elsewhere it is called a bulkhead.
//
// A slot belongs to an attempt, and not to a call: nobody holds one during a backoff. It is taken before the breaker is
// asked, since a place in the queue says nothing about the target, and given back when the attempt is over: its body
// has ended, or its signal was aborted.

import { isRepriseError, RepriseError, waitFor } from '../../kernel/index.js'
import { type RetryLimitEvent, retryLimit } from '../../telemetry/index.js'
import { demand, demandOnly } from '../demand.js'
import { Call } from '../run/call.js'
import { endCall, leaveCall } from '../run/end-of-call.js'
import { type ConcurrencyData, type ConcurrencyLimit, Slots } from './slots.js'

/** Options of {@link concurrency}. */
export interface ConcurrencyOptions {
  /** Attempts that may be out at a time, 1 to 100,000. */
  readonly most: number
  /**
   * Attempts that may wait for a slot, 0 to 100,000; the next one is refused at once. Each waits until its deadline, or
   * its caller's signal, at most. Default 0: nobody waits.
   */
  readonly queue?: number
}

/**
 * Limits how many attempts are out at a time, hedges and repeats included. Give the same limit to all policies that
 * call one target. What finds no slot ends with CONCURRENCY_LIMITED, and was not sent. Refuses numbers outside their
 * limits with POLICY_INVALID.
 *
 * @example
 * ```ts
 * import { concurrency, retryPolicy } from 'reprise/retry'
 *
 * const policy = retryPolicy({ deadline: '2s', limit: concurrency({ most: 20, queue: 40 }) })
 * ```
 */
export function concurrency(options: ConcurrencyOptions): ConcurrencyLimit {
  demandOnly(options, 'limit', 'most', 'queue')
  const { most, queue = 0 } = options
  return new MadeLimit({ kind: 'concurrency', most, queue })
}

/** The limit that the data describes, with all slots free. Refuses data that cannot be with `POLICY_INVALID`. */
export function limitFrom(data: ConcurrencyData): ConcurrencyLimit {
  const limit = new MadeLimit(data)
  demand(data.kind === 'concurrency', 'limit.kind')
  return limit
}

type Refusal = Exclude<RetryLimitEvent['ended'], 'entered' | 'signal'>

const refusals: Readonly<Record<Refusal, string>> = {
  breaker: '',
  deadline: 'no slot became free before the deadline',
  queue: 'the queue is full',
}

/** What {@link concurrency} made, as a policy uses it. */
export class MadeLimit extends Slots {
  /** A call whose attempts take slots. */
  callOf<Result>(...parts: ConstructorParameters<typeof Call<Result>>): Call<Result> {
    return new LimitedCall(this, parts)
  }

  /**
   * Waits for a slot, where none is free: no longer than the deadline leaves time for an attempt, and not at all where
   * the breaker would refuse it. What it rejects with is for {@link MadeLimit.turnedAway}.
   */
  async inTurn<Result>(call: Call<Result>): Promise<void> {
    const { settings, signal, deadline } = call
    const { breaker, clock, rules } = settings
    const sinceMs = clock.monotonicMs()
    const state = breaker?.state(sinceMs)
    let ended: RetryLimitEvent['ended'] = 'signal'
    const refuse = (by: Refusal): RepriseError => {
      ended = by
      const message = `As many attempts are out as the limit allows, and ${refusals[by]}; the target was not called.`
      return new RepriseError('CONCURRENCY_LIMITED', message, { details: { ...this.data, by } })
    }
    const limitMs = deadline && deadline.expiresAtMs - sinceMs - rules.minimumRemainderMs
    try {
      if (state === 'open' || state === 'isolated') throw refuse('breaker')
      await waitFor<void>({ clock, signal, limitMs, expired: () => refuse('deadline') }, (resolve, reject) => {
        const leave = this.wait(() => resolve())
        if (leave === undefined) reject(refuse('queue'))
        return leave
      })
      // The event loop may have been blocked.
      if (!call.isUseful()) {
        this.leave()
        throw refuse('deadline')
      }
      ended = 'entered'
    } finally {
      if (retryLimit.hasSubscribers) {
        const { out, waiting } = this
        retryLimit.publish({ policy: settings.name, ended, waitedMs: clock.monotonicMs() - sinceMs, out, waiting })
      }
    }
  }

  /** The end of a call that had no turn: as after any attempt that was not made. */
  turnedAway<Result>(call: Call<Result>, error: unknown): Result {
    if (!isRepriseError(error, 'CONCURRENCY_LIMITED')) {
      call.refused('signal')
      throw leaveCall(call, error)
    }
    if (error.details['by'] === 'breaker') return call.breakerOpen()
    call.refused('limit')
    if (call.failures.records.length > 0) return endCall(call, 'limit')
    throw error
  }
}

/** A call whose attempts, made one after the other, each take a slot. */
class LimitedCall<Result> extends Call<Result> {
  readonly #limit: MadeLimit
  #isIn = false

  constructor(limit: MadeLimit, parts: ConstructorParameters<typeof Call<Result>>) {
    super(...parts)
    this.#limit = limit
  }

  override attempt(number: number): Promise<Result> {
    return this.#limit.tryEnter() ? this.#begin(number) : this.#wait(number)
  }

  async #wait(number: number): Promise<Result> {
    try {
      await this.#limit.inTurn(this)
    } catch (error) {
      return this.#limit.turnedAway(this, error)
    }
    return this.#begin(number)
  }

  #begin(number: number): Promise<Result> {
    this.#isIn = true
    // At the end of the call, which is a success, or a result of the user's that throws when it is looked at.
    return super.attempt(number).finally(() => this.#leave())
  }

  #leave(): void {
    if (!this.#isIn) return
    this.#isIn = false
    this.#limit.leave()
  }

  // A breaker may be the user's, and throw.
  override enter(): number {
    let pass = 0
    try {
      pass = super.enter()
    } finally {
      if (pass === 0) this.#leave()
    }
    return pass
  }

  // Before the failure is judged: looking at the world and waiting need no slot.
  override judge(...failed: Parameters<Call<Result>['judge']>): ReturnType<Call<Result>['judge']> {
    this.#leave()
    return super.judge(...failed)
  }
}
