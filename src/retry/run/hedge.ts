// Hedging: another attempt is sent while the first is still out, and the first success wins (gRPC A6).
// Only under a guard, since both may have their effect. Hedges are repeats: they ask the same budget.

import { type CancelTimer, durationMs, isRepriseError, whenAborted } from '../../kernel/index.js'
import { type RetryHedgeEvent, retryHedge } from '../../telemetry/index.js'
import type { MadeLimit } from '../concurrency/concurrency.js'
import type { RepeatFacts, StopReason } from '../decide-repeat.js'
import { demandOnly } from '../demand.js'
import type { HedgeOptions, Hedging } from '../options.js'
import { Call, RunningAttempt } from './call.js'
import { endCall, leaveCall } from './end-of-call.js'
import { noteRepeat, repeatsLeft } from './layers.js'
import { inTime } from './limits.js'
import { type AttemptFailure, failureIn, letGoOf } from './returned.js'

/**
 * Lets a policy hedge: it sends another attempt while the first is still out, and the first success wins. The losers'
 * signals are aborted. Refuses what is no time of at least 1 ms with POLICY_INVALID or DURATION_INVALID.
 *
 * @example
 * ```ts
 * import { hedging, readOnly, retryPolicy } from 'reprise/retry'
 *
 * const search = retryPolicy({ name: 'search', attempts: 2, hedge: hedging({ after: '200ms' }) })
 * const found = await search.run(readOnly(), ({ signal }) => fetch('https://api.example.com/search', { signal }))
 * ```
 */
export function hedging(options: HedgeOptions): Hedging {
  demandOnly(options, 'hedge', 'after')
  return Object.freeze(new MadeHedging(durationMs(options.after, { minMs: 1, option: 'after' })))
}

/** What {@link hedging} made, as a policy uses it. */
export class MadeHedging implements Hedging {
  readonly afterMs: number

  constructor(afterMs: number) {
    this.afterMs = afterMs
  }

  /** A call that hedges. */
  callOf<Result>(...parts: ConstructorParameters<typeof Call<Result>>): Call<Result> {
    return new HedgedCall(...parts)
  }
}

/** A call of which several attempts may be out at a time; the next one is sent without a backoff delay. */
class HedgedCall<Result> extends Call<Result> {
  /** Whether the budget has said yes to a repeat that is not sent yet. Failures until then share it. */
  isPaid = false

  override attempt(): Promise<Result> {
    return new Promise((resolve, reject) => {
      new Hedges(this, resolve, reject).start()
    })
  }

  // Hedges are out together: nobody can tell whose key it is.
  override sends(target: string | undefined, key: string): void {
    this.around?.sends?.(target, key)
  }

  // At its deadline a hedged call fails once: all attempts that are out then are ended by one and the same error.
  protected override isTold(failure: AttemptFailure<Result>): boolean {
    const { latest } = this.failures
    if (failure.returned || latest?.returned !== false) return false
    return failure.error === latest.error && isRepriseError(failure.error, 'DEADLINE_EXCEEDED')
  }

  // The attempt that is at work will most likely answer before another is sent, so that one is paid for when it is.
  protected override moreFacts(): Partial<RepeatFacts> {
    return { withoutBackoff: true, isPaid: this.isPaid || this.failures.verdict.inFlight === true }
  }

  // A hedge is counted when it is sent.
  protected override repeats(): void {
    if (!this.failures.verdict.inFlight) this.isPaid = true
  }
}

class Hedges<Result> {
  readonly #call: HedgedCall<Result>
  readonly #resolve: (value: Result) => void
  readonly #reject: (reason: unknown) => void
  readonly #running = new Set<RunningAttempt>()
  #sent = 0
  #done = false
  #mayHedge = true
  #notBeforeMs = 0
  #cancelNext: CancelTimer | undefined
  #leaveSignal: (() => void) | undefined

  constructor(call: HedgedCall<Result>, resolve: (value: Result) => void, reject: (reason: unknown) => void) {
    this.#call = call
    this.#resolve = resolve
    this.#reject = reject
  }

  start(): void {
    const { signal } = this.#call
    // While attempts are out, each of them hears of the abort by itself. A wait for the next one ends before the
    // deadline.
    if (signal !== undefined) {
      this.#leaveSignal = whenAborted(signal, () => {
        if (this.#running.size === 0) this.#finish(() => this.#reject(leaveCall(this.#call, signal.reason)))
      })
    }
    this.#send()
  }

  // Breaker and budget may be the user's. One that throws ends the call, and is not left to the process.
  #send(): void {
    this.#attempt().catch((error: unknown) => this.#finish(() => this.#reject(error)))
  }

  async #attempt(): Promise<void> {
    const call = this.#call
    const { settings } = call
    const turn = this.#hasTurn()
    if (turn !== true && !(await turn)) return
    const pass = this.#enter()
    if (pass === 0) {
      this.#mayHedge = false
      if (this.#sent === 0) this.#end(() => call.breakerOpen())
      else this.#refuse('breaker')
      return
    }
    if (this.#sent > 0) {
      this.#tell()
      call.allowance.spent += 1
      noteRepeat()
    }
    this.#sent += 1
    const number = this.#sent
    const attempt = new RunningAttempt(number, call.guard?.key, call.deadline)
    this.#running.add(attempt)
    this.#plan(settings.hedge?.afterMs ?? 0)
    const ended = await inTime(call, attempt).then(
      (result) => failureIn<Result>(Object(result), settings.classify) ?? { result: result as Result },
      (error: unknown): AttemptFailure<Result> => ({ returned: false, error }),
    )
    if (this.#running.delete(attempt)) this.#limit?.leave()
    // A loser that succeeds after all was cancelled: it counts for nothing, as with gRPC.
    if (this.#done) {
      settings.breaker?.ignored(pass)
      if (!('returned' in ended)) letGoOf(ended.result)
      else if (ended.returned) letGoOf(ended.value)
    } else if ('returned' in ended) await this.#failed(number, ended, pass)
    else this.#succeeded(ended.result, pass)
  }

  get #limit(): MadeLimit | undefined {
    return this.#call.settings.limit as MadeLimit | undefined
  }

  // Takes a slot, where the policy has a limit. A hedge is an extra: it takes a free one, and never waits before first
  // attempts of others. What is sent while nothing is out waits in its turn.
  #hasTurn(): boolean | Promise<boolean> {
    const limit = this.#limit
    if (limit === undefined || limit.tryEnter()) return true
    if (this.#running.size === 0) return this.#waits(limit)
    this.#refuse('limit')
    return false
  }

  async #waits(limit: MadeLimit): Promise<boolean> {
    try {
      await limit.inTurn(this.#call)
    } catch (error) {
      this.#end(() => limit.turnedAway(this.#call, error))
      return false
    }
    if (this.#done) limit.leave()
    return !this.#done
  }

  // A breaker may be the user's, and throw.
  #enter(): number {
    let pass = 0
    try {
      pass = this.#call.enter()
    } finally {
      if (pass === 0) this.#limit?.leave()
    }
    return pass
  }

  #succeeded(result: Result, pass: number): void {
    this.#call.succeeded(pass)
    this.#finish(() => this.#resolve(result))
  }

  async #failed(number: number, failure: AttemptFailure<Result>, pass: number): Promise<void> {
    const { clock, rules } = this.#call.settings
    // Where no more are sent, none is to be paid for either.
    const made = this.#mayHedge ? this.#sent : rules.attempts
    const decision = await this.#call.judge(number, failure, pass, made)
    if (this.#done) return
    if (!('again' in decision)) {
      this.#finish(() => this.#resolve(decision.value))
    } else if (!decision.again) {
      // What is still out may yet succeed, or have succeeded: a refusal of its double says nothing about it.
      this.#mayHedge = false
      this.#callOffNext()
      this.#endIfNothingIsOut(decision.reason)
    } else if (this.#mayHedge && this.#sent < rules.attempts) {
      // A failure is the sign that was waited for: the next one goes at once, or when the server asks it to.
      const askedMs = this.#call.failures.verdict.retryAfterMs ?? 0
      this.#notBeforeMs = Math.max(this.#notBeforeMs, clock.monotonicMs() + askedMs)
      this.#plan(0)
    } else {
      this.#endIfNothingIsOut('attempts')
    }
  }

  #plan(delayMs: number): void {
    const { rules, clock } = this.#call.settings
    this.#callOffNext()
    if (!this.#mayHedge) return
    if (this.#sent >= rules.attempts) {
      this.#tell('attempts')
      return
    }
    // A wait that a server asked for is never shortened, whatever happens to other attempts meanwhile.
    const waitMs = Math.max(delayMs, this.#notBeforeMs - clock.monotonicMs())
    this.#cancelNext = clock.setTimer(waitMs, () => {
      this.#cancelNext = undefined
      try {
        this.#due()
      } catch (error) {
        this.#finish(() => this.#reject(error))
      }
    })
  }

  #callOffNext(): void {
    this.#cancelNext?.()
    this.#cancelNext = undefined
  }

  #due(): void {
    if (this.#done) return
    const call = this.#call
    const { rules, clock } = call.settings
    if (!call.isUseful()) {
      this.#refuse('deadline')
      return
    }
    if (repeatsLeft(call.allowance) <= 0) {
      this.#refuse('allowance')
      return
    }
    // The decision about a failure has asked the budget already.
    const { isPaid } = call
    call.isPaid = false
    if (isPaid || rules.budget === undefined || rules.budget.tryRepeat(clock.monotonicMs())) this.#send()
    else this.#refuse('budget')
  }

  #refuse(by: 'allowance' | 'breaker' | 'budget' | 'deadline' | 'limit'): void {
    this.#tell(by)
    this.#endIfNothingIsOut(by)
  }

  #tell(refused?: RetryHedgeEvent['refused']): void {
    if (!retryHedge.hasSubscribers) return
    const policy = this.#call.settings.name
    const out = this.#running.size
    retryHedge.publish({ policy, attempt: this.#sent + 1, out, ...(refused && { refused }) })
  }

  #endIfNothingIsOut(reason: StopReason): void {
    if (this.#running.size === 0 && this.#cancelNext === undefined) this.#end(() => endCall(this.#call, reason))
  }

  #end(value: () => Result): void {
    try {
      const result = value()
      this.#finish(() => this.#resolve(result))
    } catch (error) {
      this.#finish(() => this.#reject(error))
    }
  }

  #finish(settle: () => void): void {
    if (this.#done) return
    this.#done = true
    this.#callOffNext()
    this.#leaveSignal?.()
    settle()
    for (const attempt of this.#running) {
      attempt.abort(new DOMException('A hedge won.', 'AbortError'))
      this.#limit?.leave()
    }
    this.#running.clear()
  }
}
