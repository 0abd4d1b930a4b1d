// One call of a policy: makes attempts until one succeeds or no other may follow, and says what the caller gets.
//
// Nearly every call succeeds at once. On that way no clock is read, no signal is made, and nothing is awaited: an async
// function keeps a place for each of its variables over every await, which costs more than all that is done here.

import type { Key } from '../../identity/index.js'
import { type Deadline, RepriseError, waitFor } from '../../kernel/index.js'
import { type RetryRefusedEvent, retryAttempt, retryRefused } from '../../telemetry/index.js'
import { decideRepeat, type RepeatDecision, type RepeatFacts } from '../decide-repeat.js'
import type { Guard } from '../guard.js'
import type { AttemptRecord } from '../history.js'
import type { Body, Resolution, RunOptions } from '../options.js'
import { SentWatch } from '../sent.js'
import { type ReturnedVerdict, soundVerdict, transient, unclassified } from '../verdict.js'
import type { CallState, ConflictGuard, EndValue, Failures, LimitedAttempt, PolicySettings } from './call-state.js'
import { endCall, leaveCall } from './end-of-call.js'
import {
  type Allowance,
  callAtOnce,
  callInContext,
  entersContext,
  isOwnedBy,
  noteRepeat,
  type OpenLayer,
  repeatsLeft,
} from './layers.js'
import { inTime } from './limits.js'
import { lookFor } from './look.js'
import { type AttemptFailure, failureIn, letGoOf } from './returned.js'
import { SentKeys } from './sent-keys.js'
import { joinSpent, spentSoFar } from './spent.js'
import { deadlineExceeded, type Wait } from './timeouts.js'

/** An attempt in the hands of its call. */
export class RunningAttempt implements LimitedAttempt {
  readonly number: number
  readonly key: Key | undefined
  readonly deadline: Deadline | undefined
  // Not #private, as in Call. Made when somebody asks for the signal, limits the attempt or ends it.
  private ending: AttemptEnding | undefined

  constructor(number: number, key: Key | undefined, deadline: Deadline | undefined) {
    this.number = number
    this.key = key
    this.deadline = deadline
    this.ending = undefined
  }

  get signal(): AbortSignal {
    const ending = this.end()
    ending.controller ??= new AbortController()
    if (ending.over !== undefined) ending.controller.abort(ending.over.reason)
    return ending.controller.signal
  }

  /** Says by what the wait for it is limited. */
  limit(wait: Wait): void {
    this.end().wait = wait
  }

  /** Tells the body that its attempt is over, and lets go of the limits. */
  abort(reason: unknown): void {
    const ending = this.end()
    if (ending.over !== undefined) return
    ending.over = { reason }
    ending.wait?.release()
    ending.controller?.abort(reason)
  }

  private end(): AttemptEnding {
    this.ending ??= {}
    return this.ending
  }
}

interface AttemptEnding {
  wait?: Wait
  // Making a controller costs several microseconds, more than everything else on the way of a call that succeeds.
  controller?: AbortController
  over?: { readonly reason: unknown }
}

// Calls so far, over the process.
let calls = 0

/** One call of a policy, from its first attempt to its end; a layer to what it calls. */
export class Call<Result> implements CallState<Result> {
  readonly settings: PolicySettings
  readonly guard: Guard | undefined
  readonly body: Body<Result>
  readonly deadline: Deadline | undefined
  readonly number: number
  // Not #private: on Node 20 such members would make a call a quarter dearer. For the same reason tsconfig.json says
  // `useDefineForClassFields: false`: declared fields would be written twice.
  private readonly options: RunOptions<Result> | undefined
  protected readonly around: OpenLayer | undefined
  // What left during the latest attempt, where nothing makes a repeat harmless: such attempts are made one at a time.
  private sent: SentWatch | undefined
  // Made by the first failure, here or inside: most calls have none.
  private failuresSoFar: Failures<Result> | undefined

  /** @param around The layer around this one; undefined: none. */
  constructor(
    settings: PolicySettings,
    guard: Guard | undefined,
    body: Body<Result>,
    options: RunOptions<Result> | undefined,
    deadline: Deadline | undefined,
    around: OpenLayer | undefined,
  ) {
    this.settings = settings
    this.guard = guard
    this.body = guard === undefined ? this.watching(body) : body
    this.deadline = deadline
    this.options = options
    this.around = around
    calls += 1
    this.number = calls
    this.sent = undefined
    this.failuresSoFar = undefined
  }

  get signal(): AbortSignal | undefined {
    return this.options?.signal
  }

  get depth(): number {
    return (this.around?.depth ?? 0) + this.settings.own.depth
  }

  get declared(): number {
    return (this.around?.declared ?? 1) * this.settings.own.declared
  }

  get owns(): boolean {
    return this.guard !== undefined || this.around?.owns === true
  }

  get allowance(): Allowance {
    if (this.around !== undefined && this.settings.layer === 'inherit') return this.around.allowance
    const { failures } = this
    failures.allowance ??= { attempts: this.settings.attempts, spent: 0 }
    return failures.allowance
  }

  // Apart, since a constructor with a closure in it makes place for the closure on every call.
  private watching(body: Body<Result>): Body<Result> {
    return (attempt) => {
      this.sent = new SentWatch()
      return this.sent.call(body, attempt)
    }
  }

  sends(target: string | undefined, key: string): void {
    this.around?.sends?.(target, key)
    // What is not guarded repeats only what was not sent.
    if (this.guard === undefined) return
    const { failures } = this
    failures.keys ??= new SentKeys()
    failures.keys.demandSame(target, key, failures.records.length + 1)
  }

  /** What went wrong so far. */
  get failures(): Failures<Result> {
    this.failuresSoFar ??= {
      records: [],
      verdict: unclassified,
      suppressed: [],
      isCounted: false,
      delayMs: 0,
      before: 0,
    }
    return this.failuresSoFar
  }

  /** Makes attempts, from the one of that number on, until one succeeds or no other may follow. */
  attempt(number: number): Promise<Result> {
    const { settings, deadline } = this
    const pass = this.enter()
    if (pass === 0) return Promise.resolve(this.breakerOpen())
    const attempt = new RunningAttempt(number, this.guard?.key, deadline)
    const isLimited = settings.attemptTimeoutMs !== undefined || deadline !== undefined || this.signal !== undefined
    const result = isLimited ? inTime(this, attempt) : this.callBody(attempt)
    return result.then(
      (value) => this.answered(number, value, pass),
      (error: unknown) => this.next(number, { returned: false, error }, pass),
    )
  }

  callBody(attempt: RunningAttempt): Promise<Result | ReturnedVerdict<Result>> {
    const { attempts, innermost } = this.settings
    // What makes one attempt multiplies nothing, and is no layer to what it calls.
    if (attempts === 1) return callAtOnce(undefined, this.body, attempt)
    return entersContext(innermost, attempt.number)
      ? callInContext(this, this.body, attempt)
      : callAtOnce(this, this.body, attempt)
  }

  private answered(number: number, result: Result | ReturnedVerdict<Result>, pass: number): Result | Promise<Result> {
    const isObject = typeof result === 'object' && result !== null
    const failure = isObject ? failureIn<Result>(result, this.settings.classify) : undefined
    if (failure !== undefined) return this.next(number, failure, pass)
    // Not caught: a breaker or budget that throws on hearing of a success does not make it a failure to be repeated.
    this.succeeded(pass)
    return result as Result
  }

  /** Asks the breaker to call the target: the pass to report with, or 0 if it must not be called. */
  enter(): number {
    const { breaker, clock } = this.settings
    return breaker === undefined ? -1 : breaker.tryEnter(clock.monotonicMs())
  }

  /** Tells budget and breaker of a success. The clock is read only for those that mind the time. */
  succeeded(pass: number): void {
    const { rules, breaker, clock } = this.settings
    if (this.failuresSoFar !== undefined) this.letGo(undefined)
    if (breaker !== undefined) breaker.succeeded(pass, breaker.data.kind === 'window' ? clock.monotonicMs() : 0)
    const { budget } = rules
    if (budget !== undefined)
      budget.succeeded(budget.data.kind === 'token' ? 0 : clock.monotonicMs(), this.failuresSoFar?.isCounted)
  }

  /** Whether enough is left of the deadline for an attempt to be worth making. */
  isUseful(): boolean {
    const { deadline, settings } = this
    return (
      deadline === undefined || deadline.expiresAtMs - settings.clock.monotonicMs() >= settings.rules.minimumRemainderMs
    )
  }

  /** Says to whoever listens that an attempt was refused. */
  refused(by: RetryRefusedEvent['by']): void {
    if (retryRefused.hasSubscribers) retryRefused.publish({ policy: this.settings.name, by })
  }

  /** The end of a call whose target is left alone. */
  breakerOpen(): Result {
    this.refused('breaker')
    if (this.failures.records.length > 0) return endCall(this, 'breaker')
    throw new RepriseError('BREAKER_OPEN', 'The breaker is open; the target was not called.')
  }

  deadlineError(): unknown {
    this.failures.deadlineError ??= deadlineExceeded()
    return this.failures.deadlineError
  }

  /** Judges a failed attempt; waits and goes on, or ends the call. */
  private async next(number: number, failure: AttemptFailure<Result>, pass: number): Promise<Result> {
    const { settings, signal, failures } = this
    const { clock } = settings
    const decision = await this.judge(number, failure, pass, number)
    if (!('again' in decision)) return decision.value
    if (!decision.again) return endCall(this, decision.reason)
    // An exact wait is no step of the backoff.
    failures.delayMs = failures.verdict.exactly ? 0 : decision.delayMs
    if (failures.verdict.exactly) failures.before = number
    try {
      await waitFor<void>({ signal }, (resolve) => clock.setTimer(decision.delayMs, () => resolve()))
    } catch (reason) {
      this.refused('signal')
      throw leaveCall(this, reason)
    }
    // Only now it is true that there was such a wait. Set in this way, since the record may be frozen by whoever has
    // it.
    Reflect.set(failures.records.at(-1) as AttemptRecord, 'delayMs', decision.delayMs)
    // The wait may have taken longer than it should, where the event loop was blocked.
    if (!this.isUseful()) {
      this.refused('deadline')
      return endCall(this, 'deadline')
    }
    return this.attempt(number + 1)
  }

  /**
   * Judges a failed attempt without waiting: what to do next, or how the call ends.
   *
   * @param made How many calls have been made, those still out included.
   */
  async judge(
    number: number,
    failure: AttemptFailure<Result>,
    pass: number,
    made: number,
  ): Promise<RepeatDecision | EndValue<Result>> {
    const { settings, guard, signal, failures } = this
    const { breaker, clock } = settings
    const nowMs = clock.monotonicMs()
    if (signal?.aborted) {
      breaker?.ignored(pass)
      failures.verdict = transient('aborted', 'maybe')
      return this.abandoned(number, failure, nowMs)
    }
    const error = failure.returned ? undefined : failure.error
    // A first attempt may have been out of sight of what it called.
    if (number === 1 && settings.attempts > 1 && spentSoFar.any)
      joinSpent(failure.returned ? failure.value : error, this, this.number)
    const verdict = failure.verdict ?? soundVerdict(settings.classify(error))
    failures.verdict = this.sent?.judge(verdict, error) ?? verdict
    const isSame = this.isTold(failure)
    const { help, inFlight } = failures.verdict
    if (help === 'transient' && !inFlight && !isSame) breaker?.failed(pass, nowMs)
    else breaker?.ignored(pass)
    if (failures.latest?.returned && failures.latest !== failures.latestMaybe) letGoOf(failures.latest.value)
    failures.latest = failure
    const mayBeOurs = failures.verdict.conflict && failures.latestMaybe !== undefined
    const afterConflict = mayBeOurs ? (guard as ConflictGuard<Result> | undefined)?.afterConflict : undefined
    if (afterConflict !== undefined) {
      const end = await afterConflict(this)
      if (signal?.aborted) return this.abandoned(number, failure, nowMs)
      this.record(number, failure, nowMs, { again: false, reason: 'conflict' })
      return end()
    }
    const resolve = this.options?.resolve
    if (resolve !== undefined && failures.verdict.happened === 'maybe' && guard === undefined && !failure.returned) {
      const resolution = await lookFor<Resolution<Result>>(this, (looking) => resolve(failure.error, looking))
      if (signal?.aborted) return this.abandoned(number, failure, nowMs)
      if (resolution?.happened === true) {
        this.record(number, failure, nowMs, { again: false, reason: 'resolved' })
        return { value: resolution.value }
      }
      if (resolution?.happened === false) failures.verdict = { ...failures.verdict, happened: 'no' }
    }
    if (failures.verdict.happened === 'maybe') {
      if (failures.latestMaybe?.returned) letGoOf(failures.latestMaybe.value)
      failures.latestMaybe = failure
    }
    // Looking at the world takes time.
    const decision = this.decide(made, clock.monotonicMs(), isSame)
    this.record(number, failure, nowMs, decision)
    return !decision.again && decision.reason === 'discard' ? this.discard(failure) : decision
  }

  private decide(made: number, nowMs: number, isTold: boolean): RepeatDecision {
    const { settings, guard, deadline, failures } = this
    const { verdict } = failures
    const { rules, random } = settings
    if (!isTold && !verdict.inFlight && (verdict.help === 'transient' || verdict.doNotRepeat)) {
      rules.budget?.failed(nowMs, failures.isCounted)
      failures.isCounted = true
    }
    // One layer repeats what may have happened.
    const isOwners = guard !== undefined && verdict.help === 'transient' && verdict.happened === 'maybe'
    if (isOwners && isOwnedBy(this.around, settings)) return { again: false, reason: 'layer' }
    const facts = {
      failures: made,
      repeatsLeft: repeatsLeft(this.allowance),
      failuresBefore: failures.before,
      verdict,
      guarded: guard !== undefined,
      anyMaybe: failures.latestMaybe !== undefined,
      previousDelayMs: failures.delayMs,
      remainingMs: deadline === undefined ? Number.POSITIVE_INFINITY : deadline.expiresAtMs - nowMs,
      nowMs,
      ...this.moreFacts(),
    }
    const decision = decideRepeat(rules, facts, random)
    if (!decision.again) return decision
    noteRepeat()
    this.repeats()
    return decision
  }

  // What a call with several attempts out at a time does otherwise: see hedge.ts.

  /** Whether breaker and budget have heard of this failure already. */
  protected isTold(_failure: AttemptFailure<Result>): boolean {
    return false
  }

  protected moreFacts(): Partial<RepeatFacts> | undefined {
    return undefined
  }

  /** A repeat was decided on. */
  protected repeats(): void {
    this.allowance.spent += 1
  }

  private record(number: number, failure: AttemptFailure<Result>, nowMs: number, decision: RepeatDecision): void {
    const { settings, failures } = this
    const { name, rules } = settings
    const error = failure.returned ? undefined : failure.error
    const record: AttemptRecord = { number, verdict: failures.verdict, error, failedAtMs: nowMs }
    failures.records.push(record)
    this.options?.history?.push(record)
    if (!retryAttempt.hasSubscribers) return
    const { help, happened, why } = failures.verdict
    const { budget } = rules
    retryAttempt.publish({
      policy: name,
      attempt: number,
      help,
      happened,
      why,
      ...(decision.again ? { delayMs: decision.delayMs } : { stop: decision.reason }),
      ...(budget && { budgetLevel: budget.level(nowMs) }),
    })
  }

  // The caller left. The attempt was made all the same.
  private abandoned(number: number, failure: AttemptFailure<Result>, nowMs: number): never {
    this.record(number, failure, nowMs, { again: false, reason: 'aborted' })
    throw leaveCall(this, this.signal?.reason)
  }

  private discard(failure: AttemptFailure<Result>): RepeatDecision | EndValue<Result> {
    this.settings.discards += 1
    if (failure.returned) return { value: failure.value }
    const onDiscard = this.options?.onDiscard
    if (onDiscard !== undefined) return { value: onDiscard(this.failures.verdict, failure.error) }
    return { again: false, reason: 'discard' }
  }

  letGo(kept: AttemptFailure<Result> | undefined): void {
    const { latest, latestMaybe } = this.failures
    if (latest?.returned && latest !== kept) letGoOf(latest.value)
    if (latestMaybe?.returned && latestMaybe !== kept && latestMaybe !== latest) letGoOf(latestMaybe.value)
  }
}
