// Hedging: another attempt is sent while the first is still out, and the first success wins (gRPC A6).
// Only under a guard, since both may have their effect. Hedges are repeats: they ask the same budget.

import type { CancelTimer } from '../../kernel/index.js'
import { type RetryHedgeEvent, retryHedge } from '../../telemetry/index.js'
import { isReturnedVerdict, type ReturnedVerdict } from '../verdict.js'
import { RunningAttempt } from './attempt.js'
import { breakerOpen, type Call, isUseful, succeeded } from './call.js'
import { type Failure, Failures, returnedFailure } from './failures.js'
import type { CallLimits } from './limits.js'

/** Makes a call with hedges. The losers' signals are aborted. */
export function hedged<Result>(call: Call<Result>, limits: CallLimits): Promise<Result> {
  return new Promise((resolve, reject) => {
    new Hedges(call, limits, resolve, reject).start()
  })
}

class Hedges<Result> {
  readonly #call: Call<Result>
  readonly #limits: CallLimits
  readonly #resolve: (value: Result) => void
  readonly #reject: (reason: unknown) => void
  readonly #failures: Failures<Result>
  readonly #running = new Set<RunningAttempt>()
  #sent = 0
  #done = false
  #mayHedge = true
  #notBeforeMs = 0
  #cancelNext: CancelTimer | undefined

  constructor(
    call: Call<Result>,
    limits: CallLimits,
    resolve: (value: Result) => void,
    reject: (reason: unknown) => void,
  ) {
    this.#call = call
    this.#limits = limits
    this.#resolve = resolve
    this.#reject = reject
    this.#failures = new Failures(call, true)
  }

  start(): void {
    // While attempts are out, each of them hears of a limit by itself.
    this.#limits.watch((reason) => {
      if (this.#running.size > 0) return
      this.#cancelNext?.()
      this.#cancelNext = undefined
      if (this.#call.options?.signal?.aborted) this.#finish(undefined, () => this.#reject(this.#failures.left(reason)))
      else this.#refuse('deadline')
    })
    this.#go()
  }

  // Breaker and budget may be the user's. One that throws ends the call, and is not left to the process.
  #go(): void {
    this.#send().catch((error: unknown) => this.#finish(undefined, () => this.#reject(error)))
  }

  async #send(): Promise<void> {
    const { machinery, guard, body, deadline } = this.#call
    const { breaker, clock } = machinery
    const pass = breaker?.tryEnter(clock.monotonicMs()) ?? 0
    if (breaker !== undefined && pass === 0) {
      this.#mayHedge = false
      if (this.#sent === 0) this.#finish(undefined, () => this.#reject(breakerOpen(machinery.name)))
      else this.#refuse('breaker')
      return
    }
    if (this.#sent > 0) this.#tell()
    this.#sent += 1
    const number = this.#sent
    const attempt = new RunningAttempt(number, guard?.key, deadline)
    this.#running.add(attempt)
    this.#plan(machinery.hedgeAfterMs ?? 0)
    let failure: Failure<Result> | undefined
    let result: Result | ReturnedVerdict<Result> | undefined
    try {
      result = await this.#limits.race(body, attempt, machinery.attemptTimeoutMs)
    } catch (error) {
      failure = { returned: false, error }
    }
    if (failure === undefined && !isReturnedVerdict(result)) {
      // A loser that succeeds after all was cancelled: it counts for nothing, as with gRPC.
      if (this.#done) breaker?.ignored(pass)
      else succeeded(machinery, pass, this.#failures.counted)
      this.#finish(attempt, () => this.#resolve(result as Result))
      return
    }
    failure ??= returnedFailure(result as ReturnedVerdict<Result>)
    this.#running.delete(attempt)
    if (this.#done) {
      breaker?.ignored(pass)
      return
    }
    await this.#failed(number, failure, pass, attempt)
  }

  async #failed(number: number, failure: Failure<Result>, pass: number, attempt: RunningAttempt): Promise<void> {
    try {
      const { attempts } = this.#call.machinery.rules
      // Where no more are sent, none is to be paid for either.
      const decision = await this.#failures.judge(number, failure, pass, this.#mayHedge ? this.#sent : attempts)
      if (this.#done) return
      if (!('again' in decision)) {
        this.#finish(attempt, () => this.#resolve(decision.value))
      } else if (!decision.again) {
        // What is still out may yet succeed, or have succeeded: a refusal of its double says nothing about it.
        this.#mayHedge = false
        this.#cancelNext?.()
        this.#cancelNext = undefined
        this.#endIfNothingIsOut(decision.reason)
      } else if (this.#mayHedge && this.#sent < attempts) {
        // A failure is the sign that was waited for: the next one goes at once, or when the server asks it to.
        const askedMs = this.#failures.verdict.retryAfterMs ?? 0
        this.#notBeforeMs = Math.max(this.#notBeforeMs, this.#call.machinery.clock.monotonicMs() + askedMs)
        this.#plan(0)
      } else {
        this.#endIfNothingIsOut('attempts')
      }
    } catch (error) {
      this.#finish(attempt, () => this.#reject(error))
    }
  }

  #plan(delayMs: number): void {
    const { rules, clock } = this.#call.machinery
    this.#cancelNext?.()
    this.#cancelNext = undefined
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
        this.#finish(undefined, () => this.#reject(error))
      }
    })
  }

  #due(): void {
    if (this.#done) return
    const { machinery, deadline } = this.#call
    const { rules, clock } = machinery
    if (!isUseful(machinery, deadline)) {
      this.#refuse('deadline')
      return
    }
    // The decision about a failure has asked the budget already.
    const isPaid = this.#failures.repeatPaid
    this.#failures.repeatPaid = false
    if (isPaid || rules.budget === undefined || rules.budget.tryRepeat(clock.monotonicMs())) this.#go()
    else this.#refuse('budget')
  }

  #refuse(by: 'breaker' | 'budget' | 'deadline'): void {
    this.#tell(by)
    this.#endIfNothingIsOut(by)
  }

  #tell(refused?: RetryHedgeEvent['refused']): void {
    if (!retryHedge.hasSubscribers) return
    const policy = this.#call.machinery.name
    const out = this.#running.size
    retryHedge.publish({ policy, attempt: this.#sent + 1, out, ...(refused && { refused }) })
  }

  #endIfNothingIsOut(reason: Parameters<Failures<Result>['end']>[0]): void {
    if (this.#running.size > 0 || this.#cancelNext !== undefined) return
    this.#end(undefined, reason)
  }

  #end(attempt: RunningAttempt | undefined, reason: Parameters<Failures<Result>['end']>[0]): void {
    try {
      const value = this.#failures.end(reason)
      this.#finish(attempt, () => this.#resolve(value))
    } catch (error) {
      this.#finish(attempt, () => this.#reject(error))
    }
  }

  #finish(winner: RunningAttempt | undefined, settle: () => void): void {
    if (this.#done) return
    this.#done = true
    this.#cancelNext?.()
    settle()
    for (const attempt of this.#running)
      if (attempt !== winner) attempt.abort(new DOMException('A hedge won.', 'AbortError'))
    this.#running.clear()
  }
}
