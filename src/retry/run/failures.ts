// The failures of one call: what each meant, what was decided, and which error the caller gets in the end.

import { isRepriseError, RepriseError, sleep } from '../../kernel/index.js'
import { retryAttempt, retryRefused } from '../../telemetry/index.js'
import { constantDelay } from '../backoff.js'
import { unclassified } from '../classify/classifier.js'
import { type Decision, decide, type StopReason } from '../decide.js'
import { comparisonOf } from '../guard.js'
import { type AttemptRecord, remember } from '../history.js'
import type { Resolution } from '../options.js'
import { UnknownOutcomeError } from '../unknown-outcome.js'
import { isVerdict, permanent, type ReturnedVerdict, transient, type Verdict } from '../verdict.js'
import type { Call } from './call.js'
import { CallLimits } from './limits.js'

/** How an attempt failed: it threw, or it returned its verdict as a value. */
export type Failure<Result> =
  | { readonly returned: true; readonly verdict: Verdict; readonly value: Result }
  | { readonly returned: false; readonly error: unknown; readonly verdict?: Verdict }

/** A verdict that a body returned. Without a value there is nothing to hand to the caller, so it is as if it had been thrown. */
export function returnedFailure<Result>({ verdict: said, value }: ReturnedVerdict<unknown>): Failure<Result> {
  const verdict = sound(said)
  if (value !== undefined || verdict.help === 'discard') return { returned: true, verdict, value: value as Result }
  const message = 'The attempt failed, as its body said; the verdict is in the history.'
  return { returned: false, verdict, error: new RepriseError('ATTEMPT_FAILED', message) }
}

/** A call that ends with a value although an attempt failed. */
export interface Ending<Result> {
  /** What the caller gets. */
  readonly value: Result
}

// A classifier is the user's, and a returned verdict may come from another copy: what is no verdict counts as none, and
// only `no` is no.
function sound(verdict: Verdict | undefined): Verdict {
  if (verdict === undefined || isVerdict(verdict)) return verdict ?? unclassified
  const guess: unknown = { ...(verdict as object), happened: 'maybe' }
  return isVerdict(guess) ? guess : unclassified
}

// All attempts that are out at the deadline are ended by one and the same error.
function isSameDeadline(failure: Failure<unknown>, latest: Failure<unknown> | undefined): boolean {
  if (failure.returned || latest?.returned !== false) return false
  return failure.error === latest.error && isRepriseError(failure.error, 'DEADLINE_EXCEEDED')
}

/** Everything that went wrong in one call so far. */
export class Failures<Result> {
  /** What the latest failure meant. */
  verdict: Verdict = unclassified
  /** Whether the budget has been told of an attempt; a call counts once, however many of its attempts report. */
  counted = false
  /** In a hedged call: whether the budget has been asked for a repeat that is not sent yet. Failures until then share it. */
  repeatPaid = false
  readonly #call: Call<Result>
  readonly #hedged: boolean
  readonly #records: AttemptRecord[] = []
  #latest: Failure<Result> | undefined
  #latestMaybe: Failure<Result> | undefined
  #suppressed: unknown[] = []
  #delayMs = 0
  // The failures before the latest pushback, after which the backoff starts anew.
  #failuresBefore = 0

  /** @param hedged Whether the next attempt goes without a wait of our own. */
  constructor(call: Call<Result>, hedged = false) {
    this.#call = call
    this.#hedged = hedged
  }

  /** Judges a failed attempt and waits for the next one; answers an ending, or throws, when there is none. */
  async add(number: number, failure: Failure<Result>, pass: number): Promise<Ending<Result> | undefined> {
    const { machinery, options } = this.#call
    const decision = await this.judge(number, failure, pass, number)
    if (!('again' in decision)) return decision
    if (!decision.again) return { value: this.end(decision.reason) }
    // An exact wait is no step of the backoff.
    this.#delayMs = this.verdict.exactly ? 0 : decision.delayMs
    if (this.verdict.exactly) this.#failuresBefore = number
    const signal = options?.signal
    try {
      await sleep(decision.delayMs, { clock: machinery.clock, ...(signal && { signal }) })
    } catch (reason) {
      if (retryRefused.hasSubscribers) retryRefused.publish({ policy: machinery.name, by: 'signal' })
      throw this.left(reason)
    }
    // Only now it is true that there was such a wait. Set in this way, since the record may be frozen by whoever has it.
    Reflect.set(this.#records.at(-1) as AttemptRecord, 'delayMs', decision.delayMs)
    return undefined
  }

  /** The reason for which a call is left before its end, with what is known of it. */
  left(reason: unknown): unknown {
    remember(reason, this.#records, 'aborted')
    return reason
  }

  /**
   * Judges a failed attempt without waiting: what to do next, or how the call ends.
   *
   * @param made How many calls have been made, those still out included.
   */
  async judge(
    number: number,
    failure: Failure<Result>,
    pass: number,
    made: number,
  ): Promise<Decision | Ending<Result>> {
    const { machinery, guard, options } = this.#call
    const { breaker, clock } = machinery
    const nowMs = clock.monotonicMs()
    const signal = options?.signal
    if (signal?.aborted) {
      breaker?.ignored(pass)
      this.#record(number, failure, transient('aborted', 'maybe'), nowMs, { again: false, reason: 'aborted' })
      throw this.left(signal.reason)
    }
    this.verdict = this.#verdictOn(failure)
    // At its deadline a hedged call fails once, however many attempts it ends.
    const isCounted = this.#hedged && isSameDeadline(failure, this.#latest)
    if (this.verdict.help === 'transient' && !isCounted) breaker?.failed(pass, nowMs)
    else breaker?.ignored(pass)
    this.#latest = failure
    const mayBeOurs = this.verdict.conflict && this.#latestMaybe !== undefined && guard?.rung === 'conditional'
    if (mayBeOurs) return this.#compare(number, failure, nowMs)
    const resolve = options?.resolve
    if (resolve !== undefined && this.verdict.happened === 'maybe' && guard === undefined && !failure.returned) {
      const resolution = await this.#ask<Resolution<Result>>((signal) => resolve(failure.error, signal))
      this.#leaveIfAborted(number, failure, nowMs)
      if (resolution?.happened === true) {
        this.#record(number, failure, this.verdict, nowMs, { again: false, reason: 'resolved' })
        return { value: resolution.value }
      }
      if (resolution?.happened === false) this.verdict = { ...this.verdict, happened: 'no' }
    }
    if (this.verdict.happened === 'maybe') this.#latestMaybe = failure
    // Looking at the world takes time.
    const decision = this.#decide(made, clock.monotonicMs(), isCounted)
    this.#record(number, failure, this.verdict, nowMs, decision)
    return !decision.again && decision.reason === 'discard' ? this.#discard(failure) : decision
  }

  /** The end of the call: a value that an attempt returned, or the error that the caller has to know of. */
  end(stop: StopReason): Result {
    const latest = this.#latest as Failure<Result>
    const maybe = this.#latestMaybe
    // A definite answer is the answer; else a later harmless failure must not hide one that may have had an effect.
    const isAnswer = latest.returned && latest.verdict.help === 'permanent'
    const chosen = isAnswer ? latest : (maybe ?? latest)
    if (chosen.returned) return chosen.value
    if (this.#call.guard === undefined && maybe !== undefined) return this.#unknown(chosen.error, stop)
    return this.#throw(chosen.error, stop)
  }

  #verdictOn(failure: Failure<Result>): Verdict {
    if (failure.verdict !== undefined) return failure.verdict
    const { error } = failure as { error: unknown }
    if (isRepriseError(error)) {
      if (error.code === 'ATTEMPT_TIMEOUT' || error.code === 'DEADLINE_EXCEEDED') return transient(error.code, 'maybe')
      if (error.code === 'BREAKER_OPEN') return transient(error.code, 'no')
      // The effect guard stopped it, or noticed it too late.
      if (error.code === 'EFFECT_IN_TRANSACTION')
        return permanent(error.code, error.details['left'] === false ? 'no' : 'maybe')
      // Whatever caused it, nobody knows whether it happened.
      if (error.code === 'UNKNOWN_OUTCOME') return permanent(error.code, 'maybe')
    }
    return sound(this.#call.machinery.classify(error))
  }

  #decide(made: number, nowMs: number, isCounted: boolean): Decision {
    const { machinery, guard, deadline, owned } = this.#call
    const { rules, random } = machinery
    const { verdict } = this
    if (!isCounted && (verdict.help === 'transient' || verdict.doNotRepeat)) {
      rules.budget?.failed(nowMs, this.counted)
      this.counted = true
    }
    // One layer repeats; what provably did not happen multiplies nothing.
    const isOwned = owned && verdict.help === 'transient' && verdict.happened === 'maybe' && guard !== undefined
    if (isOwned) return { again: false, reason: 'layer' }
    const facts = {
      failures: made,
      failuresBefore: this.#failuresBefore,
      verdict,
      guarded: guard !== undefined,
      anyMaybe: this.#latestMaybe !== undefined,
      previousDelayMs: this.#delayMs,
      remainingMs: deadline === undefined ? Number.POSITIVE_INFINITY : deadline.expiresAtMs - nowMs,
      nowMs,
    }
    // The next hedge goes at once, or when the server asks it to.
    if (!this.#hedged) return decide(rules, facts, random)
    const { budget } = rules
    const limit = budget && { tryRepeat: (atMs: number) => this.repeatPaid || budget.tryRepeat(atMs) }
    const decision = decide({ ...rules, backoff: constantDelay(0), budget: limit }, facts, random)
    if (decision.again) this.repeatPaid = true
    return decision
  }

  #record(number: number, failure: Failure<Result>, verdict: Verdict, nowMs: number, decision: Decision): void {
    const { machinery, options } = this.#call
    const error = failure.returned ? undefined : failure.error
    const record: AttemptRecord = { number, verdict, error, failedAtMs: nowMs }
    this.#records.push(record)
    options?.history?.push(record)
    if (!retryAttempt.hasSubscribers) return
    const { help, happened, why } = verdict
    const { budget } = machinery.rules
    retryAttempt.publish({
      policy: machinery.name,
      attempt: number,
      help,
      happened,
      why,
      ...(decision.again ? { delayMs: decision.delayMs } : { stop: decision.reason }),
      ...(budget && { budgetLevel: budget.level(nowMs) }),
    })
  }

  // The precondition failed, but an earlier attempt may have been the one that changed it.
  async #compare(number: number, failure: Failure<Result>, nowMs: number): Promise<Decision | Ending<Result>> {
    const { guard } = this.#call
    const compare = guard === undefined ? undefined : comparisonOf(guard)
    const comparison = compare && (await this.#ask(compare))
    this.#leaveIfAborted(number, failure, nowMs)
    this.#record(number, failure, this.verdict, nowMs, { again: false, reason: 'conflict' })
    if (comparison?.ours === true) return { value: comparison.value as Result }
    if (comparison?.ours === false) {
      this.#latestMaybe = undefined
      return { again: false, reason: 'permanent' }
    }
    return this.#unknown(this.#latestMaybe?.returned === false ? this.#latestMaybe.error : undefined, 'conflict')
  }

  // The caller may leave while somebody looks at the world. The attempt was made all the same.
  #leaveIfAborted(number: number, failure: Failure<Result>, nowMs: number): void {
    const signal = this.#call.options?.signal
    if (!signal?.aborted) return
    this.#record(number, failure, this.verdict, nowMs, { again: false, reason: 'aborted' })
    throw this.left(signal.reason)
  }

  // Looking at the world can fail as well. Then it cannot tell, and its error is kept beside the one that matters.
  async #ask<Answer>(look: (signal: AbortSignal) => PromiseLike<Answer> | Answer): Promise<Answer | undefined> {
    const { limits, machinery, deadline } = this.#call
    try {
      return await (limits ?? new CallLimits(machinery.clock, undefined, undefined)).look(look, deadline)
    } catch (error) {
      this.#suppressed = [...this.#suppressed, error]
      return undefined
    }
  }

  #discard(failure: Failure<Result>): Decision | Ending<Result> {
    const { machinery, options } = this.#call
    machinery.discards += 1
    if (failure.returned) return { value: failure.value }
    if (options?.onDiscard !== undefined) return { value: options.onDiscard(this.verdict, failure.error) }
    return { again: false, reason: 'discard' }
  }

  #unknown(cause: unknown, stop: StopReason): never {
    // Whoever takes the cause out, as the HTTP client does after a success, finds the history there as well.
    remember(cause, this.#records, stop)
    return this.#throw(new UnknownOutcomeError(cause, this.#records, this.#suppressed), stop)
  }

  #throw(error: unknown, stop: StopReason): never {
    remember(error, this.#records, stop)
    throw error
  }
}
