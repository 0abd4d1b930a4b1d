// A route: request facts in, decision, answer out. Framework-free; adapters translate, and decide nothing.

import type {
  DomainTime,
  DrillStyle,
  Operation,
  OperationAnswers,
  OperationFailedError,
  Outcome,
} from '../../../idempotency/index.js'
import {
  attemptHeader,
  deadlineHeader,
  type Key,
  parseKeyField,
  replayedHeader,
  retryOwnerHeader,
} from '../../../identity/index.js'
import { defined, inTime, isPromiseLike, isRepriseError, RepriseError } from '../../../kernel/index.js'
import { ownedByCaller } from '../../../retry/index.js'
import { type HttpAnsweredEvent, httpAnswered, httpRekeyed } from '../../../telemetry/index.js'
import { type Answer, AnswerError, discardBody, finish, rolledBack } from '../answer/answer.js'
import { toJson } from '../answer/stored.js'
import type { ProblemName } from '../problems.js'
import { HttpRequest, type RequestFacts } from '../request/http-request.js'
import { tellCause } from './causes.js'
import { errorProblem, isTransientAbort, type NamedProblem } from './error-problem.js'
import { Arrival, answerIn, HandlerError, thrower } from './handler.js'
import type { Principal } from './principal.js'
import type { HasRoom } from './quota.js'
import { RecentContents } from './recent-contents.js'
import { refusalAnswer } from './refusal.js'
import type { RouteSettings } from './settings.js'

/** A route of a service, as adapters use it. */
export interface Route<Native> {
  /**
   * Answers a request. Rejects only with what the handler, `parse`, `principal` or `trusts` threw of their own accord,
   * for the framework to answer, and with an Error in its place where that is null or nothing; nothing was stored
   * then, and what the handler wrote is rolled back. The client's going away changes nothing: the outcome is recorded.
   */
  handle(facts: RequestFacts, native: Native): Promise<Answer>
  readonly name: string
  /** The five answers of the operation behind it. */
  readonly answers: OperationAnswers
}

/** How a mode carries requests out. */
export interface Mode<Native, Input> {
  readonly operation: Operation<Arrival<Native, Input>, Answer, 'answer'>
  /** Carries out a request without a key, within a time in ms; undefined: there must be a key. */
  readonly unkeyed: ((arrival: Arrival<Native, Input>, deadline: number) => Promise<Answer>) | undefined
  /** Whether what the handler wrote is gone when it has thrown. */
  readonly rollsBack: boolean
  /** Whether an unknown outcome becomes known by itself. */
  readonly settlesItself: boolean
  /** Whether a caller may have one more key; undefined: any number. */
  readonly hasRoom: HasRoom<Native, Input> | undefined
  /** Begins what goes on behind its 202; undefined: a request is answered when its work has ended. */
  readonly begin?: (arrival: Arrival<Native, Input>, deadline: number) => Promise<Answer | Outcome<Answer, 'answer'>>
  /** The clock of the domain, and how long a call may take where the route says nothing. */
  readonly time: Pick<DomainTime, 'clock' | 'deadlineMs'>
}

/** What a request says about its caller. */
interface Caller {
  /**
   * When the time is up that the caller, or the route, gives a request from its arrival on, by the monotonic clock;
   * `Infinity`: neither says.
   */
  readonly endsAtMs: number
  /** Which call of the intent this is; undefined: it does not say. */
  readonly attempt: number | undefined
  /** Whether it says that it repeats by itself. To be believed from trusted callers only. */
  readonly repeats: boolean
}

/** A route over a mode. */
export class HttpRoute<Native, Input> implements Route<Native> {
  readonly name: string
  readonly answers: OperationAnswers
  readonly #settings: RouteSettings<Native, Input>
  readonly #mode: Mode<Native, Input>
  #recent: RecentContents<Native, Input> | undefined

  constructor(settings: RouteSettings<Native, Input>, mode: Mode<Native, Input>) {
    this.name = settings.name
    this.answers = mode.operation.answers
    this.#settings = settings
    this.#mode = mode
  }

  async handle(facts: RequestFacts, native: Native): Promise<Answer> {
    const { methods, mostBodyBytes, parse, principal: principalOf, trusts } = this.#settings
    const { clock } = this.#mode.time
    const request = new HttpRequest(facts, nothing)
    const caller = callerOf(request, this.#settings, clock.monotonicMs())
    let arrival: Arrival<Native, Input> | undefined
    // While code of the user's own runs, what is thrown is theirs, whatever it looks like.
    let isUsers = true
    try {
      const named = principalOf(native, request)
      const principal = principalNames(isPromiseLike(named) ? await named : named)
      isUsers = false
      if (principal === undefined) return this.#refuse({ name: 'unauthenticated' }, request, caller)
      if (this.#mode.unkeyed === undefined && !methods.has(request.method)) {
        const allow = [...methods].join(', ')
        return this.#refuse({ name: 'method-not-allowed', headers: { allow } }, request, caller)
      }
      // Read before the body is, and before the store is asked anything.
      const key = keyIn(request, this.#settings)
      const reading = facts.readBody(mostBodyBytes)
      const bytes = await (isPromiseLike(reading) && caller.endsAtMs !== Number.POSITIVE_INFINITY
        ? inTime({ clock, limitMs: caller.endsAtMs - clock.monotonicMs(), expired: tooLate }, reading)
        : reading)
      isUsers = true
      const input = parse === undefined ? undefined : await parse(new HttpRequest(facts, bytes), native)
      const isTrusted = caller.repeats && (await trusts?.(native, request)) === true
      isUsers = false
      const callerAttempt = caller.attempt
      const parts = { facts, head: request, bytes, native, principal, key, callerAttempt, input: input as Input }
      arrival = new Arrival(parts)
      return await this.#carryOut(arrival, caller, isTrusted)
    } catch (error) {
      // An adapter refuses a body that it cannot read in the same way.
      if (isUsers || (arrival === undefined && error instanceof AnswerError)) return this.#turnAway(error, caller)
      // An adapter's own error: nothing was asked of a store yet.
      if (arrival === undefined && !isRepriseError(error)) throw error
      return this.#failed(error, arrival, request, caller)
    }
  }

  async #carryOut(arrival: Arrival<Native, Input>, caller: Caller, isTrusted: boolean): Promise<Answer> {
    const { operation, unkeyed, hasRoom, time, begin } = this.#mode
    const { head } = arrival.parts
    const nowMs = time.clock.monotonicMs()
    const restMs = Math.floor(caller.endsAtMs - nowMs)
    const deadline = this.#settings.deadlineMs === undefined ? Math.min(restMs, time.deadlineMs) : restMs
    if (deadline <= 0) throw tooLate()
    if (arrival.key === undefined) {
      const work = unkeyed as NonNullable<typeof unkeyed>
      const given = isTrusted ? ownedByCaller(() => work(arrival, deadline)) : work(arrival, deadline)
      return this.#tell('unkeyed', await given, caller)
    }
    if (httpRekeyed.hasSubscribers) this.#lookForOtherKeys(arrival, nowMs)
    if (hasRoom !== undefined && !(await hasRoom(arrival, deadline))) {
      return this.#refuse({ name: 'too-many-keys' }, head, caller)
    }
    // Calls below are made once where a caller that is trusted repeats by itself. Nobody repeats what was accepted.
    const end: Answer | Outcome<Answer, 'answer'> =
      begin !== undefined
        ? await begin(arrival, deadline)
        : isTrusted
          ? await ownedByCaller(() => operation.outcome(arrival, { deadline }))
          : await operation.outcome(arrival, { deadline })
    if (!('outcome' in end))
      return this.#tell('accepted', { ...end, headers: [...end.headers, ...exposed(head)] }, caller)
    const answer = end.outcome === 'succeeded' ? end.value : (end.failure.data as Answer)
    if (answer.tombstone) {
      return this.#refuse({ name: 'answer-not-kept', headers: Object.fromEntries(answer.headers) }, head, caller)
    }
    return end.replayed
      ? this.#tell('replayed', asReplayed(answer, head), caller)
      : this.#tell('executed', answer, caller)
  }

  // What `principal`, `parse` or `trusts` threw, before anything was begun.
  async #turnAway(error: unknown, caller: Caller): Promise<Answer> {
    if (!(error instanceof AnswerError)) throw reasonOf(error)
    const answer = await this.#answerIn(error)
    return this.#tell('refused', answer as Answer, caller, defined({ problem: error.problem?.name }))
  }

  // The answer that an error of the user's code stands for, in the shape of the route; undefined: it is none.
  async #answerIn(error: unknown): Promise<Answer | undefined> {
    const refused = error instanceof AnswerError ? error.problem : undefined
    if (refused !== undefined) return this.#shaped(refused)
    const given = answerIn(error, this.#settings)
    return given === undefined ? undefined : finish(given, this.#settings.largestAnswer)
  }

  #shaped(refused: NamedProblem): Promise<Answer> {
    return refusalAnswer(this.#settings, refused, (error) => this.#tellCause(refused.name, 500, error))
  }

  #tellCause(problem: ProblemName, status: number, error: unknown): void {
    const { name: domain } = this.answers.domain
    const nowMs = this.#mode.time.clock.monotonicMs()
    tellCause({ route: this.name, domain, problem, status, error }, nowMs, this.#settings.log)
  }

  #lookForOtherKeys(arrival: Arrival<Native, Input>, nowMs: number): void {
    this.#recent ??= new RecentContents(this.#settings.fieldRule)
    const agoMs = this.#recent.note(arrival, nowMs)
    if (agoMs === undefined) return
    httpRekeyed.publish({ route: this.name, method: arrival.method, agoMs, attempt: arrival.callerAttempt })
  }

  async #failed(
    error: unknown,
    arrival: Arrival<Native, Input> | undefined,
    request: HttpRequest,
    caller: Caller,
  ): Promise<Answer> {
    const { keyField, largestAnswer } = this.#settings
    const keyed = arrival?.key !== undefined
    const thrown = error instanceof HandlerError ? error.thrown : error
    const final = finalAnswer(error)
    if (!isTransientAbort(error)) {
      const own = thrower(error) === 'handler' ? await this.#answerIn(thrown) : undefined
      const given = final === undefined ? own : await finish(final, largestAnswer)
      if (given !== undefined) {
        const answer = this.#mode.rollsBack ? rolledBack(given) : given
        return this.#tell(keyed ? 'executed' : 'unkeyed', answer, caller)
      }
    }
    // The handler came to an answer, and nobody is going to get it.
    for (const unsent of [final, answerCarried(error), answerCarried((Object(error) as Error).cause)]) {
      if (unsent !== undefined) await discardBody(unsent)
    }
    const refusal = errorProblem(error, { keyed, keyField, settlesItself: this.#mode.settlesItself })
    if (refusal === undefined) throw reasonOf(thrown)
    return this.#refuse(refusal, request, caller, error)
  }

  async #refuse(refused: NamedProblem, request: HttpRequest, caller: Caller, error?: unknown): Promise<Answer> {
    const answer = await this.#shaped(refused)
    if (answer.status >= 500 && error !== undefined) this.#tellCause(refused.name, answer.status, error)
    const headers = [...answer.headers, ...exposed(request)]
    return this.#tell('refused', { ...answer, headers }, caller, { problem: refused.name, error })
  }

  #tell(
    how: HttpAnsweredEvent['how'],
    answer: Answer,
    { attempt }: Caller,
    more?: { readonly problem?: string; readonly error?: unknown },
  ): Answer {
    if (httpAnswered.hasSubscribers)
      httpAnswered.publish({ route: this.name, how, status: answer.status, attempt, ...more })
    return answer
  }
}

// Frameworks take what is no reason for no error: Express goes on to the next route, Koa never answers.
function reasonOf(thrown: unknown): unknown {
  return thrown || new Error('A function of the route was rejected without a reason.', { cause: thrown })
}

const nothing = new Uint8Array(0)

function tooLate(): RepriseError {
  return new RepriseError('DEADLINE_EXCEEDED', 'The time of the request was up before anything was begun.')
}

// Malformed values are ignored.
function callerOf<Native, Input>(
  request: HttpRequest,
  { wayBackMs, deadlineMs = Number.POSITIVE_INFINITY }: RouteSettings<Native, Input>,
  arrivedAtMs: number,
): Caller {
  const waitsMs = deadlineHeader.read(request.header(deadlineHeader.name)) ?? Number.POSITIVE_INFINITY
  return {
    endsAtMs: arrivedAtMs + Math.min(deadlineMs, waitsMs - wayBackMs),
    attempt: attemptHeader.read(request.header(attemptHeader.name)),
    repeats: retryOwnerHeader.read(request.header(retryOwnerHeader.name)) === 'caller',
  }
}

/**
 * The names of a principal. Undefined: nobody, also where a name is missing or empty, since all callers without a name
 * would share their keys. Refuses what is no text with SCOPE_INVALID.
 */
export function principalNames(principal: Principal): readonly [string, ...string[]] | undefined {
  const names: readonly unknown[] = Array.isArray(principal) ? [...principal] : [principal]
  if (names.length === 0) return undefined
  for (const name of names) if (name === '' || name === undefined || name === null) return undefined
  for (const name of names) {
    if (typeof name === 'string') continue
    throw new RepriseError(
      'SCOPE_INVALID',
      'The principal of a request is text, or a list of texts. Give what names the caller, such as String(req.user.id).',
    )
  }
  return Object.freeze(names) as readonly [string, ...string[]]
}

function keyIn<Native, Input>(
  request: HttpRequest,
  { keyField, keyOptions, methods, required }: RouteSettings<Native, Input>,
): Key | undefined {
  if (!methods.has(request.method)) return undefined
  const values = request.fields(keyField)
  return values.length === 0 && !required ? undefined : parseKeyField(values, keyOptions)
}

/**
 * How a drill repeats the requests of a route: whose they are and what they ask for is asked again, as for a request
 * that arrives.
 */
export function routeDrill<Native, Input>(settings: RouteSettings<Native, Input>): DrillStyle<Arrival<Native, Input>> {
  const { parse, principal: principalOf } = settings
  return {
    kind: 'route',
    again: async ({ parts }) => {
      const { facts, bytes, native } = parts
      const head = new HttpRequest(facts, nothing)
      try {
        const principal = principalNames(await principalOf(native, head))
        if (principal === undefined) return { refused: '401' }
        const input = (await parse?.(new HttpRequest(facts, bytes), native)) as Input
        return { input: new Arrival({ ...parts, head, principal, key: keyIn(head, settings), input }) }
      } catch (error) {
        if (error instanceof AnswerError) return { refused: String(error.answer.status) }
        throw error
      }
    },
    told: (value) => {
      const answer = toJson(value as Answer, settings)
      return answer.tombstone ? undefined : answer
    },
    shown: (arrival) => {
      const { native, principal, key, callerAttempt, input } = arrival.parts
      return { request: arrival.request(), input, native, principal, key, callerAttempt }
    },
  }
}

// An answer that was thrown and is stored where there is a key. Without one, it is all that comes of the request.
function finalAnswer(error: unknown): Answer | undefined {
  return isRepriseError(error, 'OPERATION_FAILED')
    ? ((error as OperationFailedError).failure.data as Answer)
    : undefined
}

function answerCarried(error: unknown): Answer | undefined {
  return error instanceof AnswerError ? error.answer : undefined
}

/** A stored answer, given again. */
export function asReplayed(answer: Answer, request: HttpRequest): Answer {
  const more = [[replayedHeader.name.toLowerCase(), 'true'] as const, ['cache-control', 'no-store'] as const]
  return { ...answer, headers: [...answer.headers, ...more, ...exposed(request)] }
}

/** The field by which scripts of other origins see our own: they read only what they are shown (Fetch, 3.3.3). */
export function exposed(request: HttpRequest): readonly (readonly [string, string])[] {
  if (request.fields('origin').length === 0) return []
  return [['access-control-expose-headers', `${replayedHeader.name}, Retry-After, Location, ETag`]]
}
