// A route: request facts in, decision, answer out. Framework-free; adapters translate, and decide nothing.

import {
  isFailure,
  type Operation,
  type OperationAnswers,
  type OperationFailedError,
} from '../../../idempotency/index.js'
import { type Key, parseKeyField, replayedHeader } from '../../../identity/index.js'
import { isPromiseLike, isRepriseError, RepriseError } from '../../../kernel/index.js'
import { type HttpAnsweredEvent, httpAnswered } from '../../../telemetry/index.js'
import { AnswerError } from '../answer/answer.js'
import { discard, type FinishedAnswer, finish } from '../answer/finished.js'
import { restore, type StoredAnswer } from '../answer/stored.js'
import { problem } from '../problems.js'
import type { RequestFacts } from '../request/facts.js'
import { HttpRequest } from '../request/http-request.js'
import { Arrival } from './arrival.js'
import { type Caller, callerOf, onBehalfOf, timeForMs } from './caller.js'
import type { RouteOptions } from './options.js'
import { namesOf } from './principal.js'
import type { HasRoom } from './quota.js'
import { isPassing, type Refusal, refusalOf } from './refusals.js'
import { problemOf, UsersError, usersOwn } from './run-handler.js'
import type { RouteSettings } from './settings.js'

/** A route of a service, as adapters use it. */
export interface Route<Native> {
  /**
   * Answers a request. Rejects only with what the handler, `parse`, `principal` or `trusts` threw of their own accord, for the framework to answer; nothing was stored then, and
   * what the handler wrote is rolled back. The client's going away changes nothing: the outcome is recorded.
   */
  handle(facts: RequestFacts, native: Native): Promise<FinishedAnswer>
  /** The route's name. */
  readonly name: string
  /** The five answers of the operation behind it. */
  readonly answers: OperationAnswers
}

/** How a mode carries requests out. */
export interface Mode<Native, Input> {
  /** The operation. */
  readonly operation: Operation<Arrival<Native, Input>, StoredAnswer, 'answer'>
  /** Carries out a request without a key; undefined: there must be one. */
  readonly unkeyed: ((arrival: Arrival<Native, Input>, time: object) => Promise<unknown>) | undefined
  /** Whether an unknown outcome becomes known by itself. */
  readonly settlesItself: boolean
  /** Whether a caller may have one more key; for the quota. */
  readonly hasRoom: HasRoom<Native, Input>
  /** How long a call may take where the route says nothing, in ms. */
  readonly deadlineMs: number
}

/** A route over a mode. */
export class HttpRoute<Native, Input> implements Route<Native> {
  readonly name: string
  readonly answers: OperationAnswers
  readonly #options: RouteOptions<Native, Input>
  readonly #settings: RouteSettings
  readonly #mode: Mode<Native, Input>

  constructor(options: RouteOptions<Native, Input>, settings: RouteSettings, mode: Mode<Native, Input>) {
    this.name = options.name
    this.answers = mode.operation.answers
    this.#options = options
    this.#settings = settings
    this.#mode = mode
  }

  async handle(facts: RequestFacts, native: Native): Promise<FinishedAnswer> {
    const bare = new HttpRequest(facts, nothing)
    const caller = callerOf(bare, this.#settings)
    let arrival: Arrival<Native, Input> | undefined
    try {
      const principal = await usersOwn(() => {
        const named = this.#options.principal(native, bare)
        return isPromiseLike(named) ? named.then(namesOf) : namesOf(named)
      })
      if (principal === undefined) return await this.#refuse({ name: 'unauthenticated' }, bare, caller)
      const { methods } = this.#settings
      if (this.#mode.unkeyed === undefined && !methods.has(bare.method)) {
        return await this.#refuse(
          { name: 'method-not-allowed', headers: { allow: [...methods].join(', ') } },
          bare,
          caller,
        )
      }
      const key = this.#keyOf(bare)
      const bytes = await this.#bodyOf(facts)
      arrival = new Arrival(
        { facts, native, bytes, principal, key, callerAttempt: caller.attempt },
        this.#options.parse,
      )
      if (arrival.isParsed) await usersOwn(() => arrival?.check())
      return await this.#carryOut(arrival, bare, caller)
    } catch (error) {
      return this.#explained(error, arrival, bare, caller)
    }
  }

  // Read before the body is, and before the store is asked anything.
  #keyOf(request: HttpRequest): Key | undefined {
    const { keyField, keyOptions, methods, required } = this.#settings
    if (!methods.has(request.method)) return undefined
    const values = request.fields(keyField)
    return values.length === 0 && !required ? undefined : parseKeyField(values, keyOptions)
  }

  async #bodyOf(facts: RequestFacts): Promise<Uint8Array> {
    try {
      return await facts.readBody(this.#settings.mostBodyBytes)
    } catch (error) {
      // An adapter may have its own; a store is not what it tells of.
      throw isRepriseError(error) ? error : new UsersError(error)
    }
  }

  async #carryOut(arrival: Arrival<Native, Input>, request: HttpRequest, caller: Caller): Promise<FinishedAnswer> {
    const { liveKeys } = this.#settings
    const { operation, unkeyed, hasRoom } = this.#mode
    const trusted = caller.repeats && (await usersOwn(() => this.#options.trusts?.(arrival.native, request))) === true
    const time = { deadline: timeForMs(caller, this.#settings.deadlineMs ?? this.#mode.deadlineMs) }
    if (time.deadline === 0) throw new RepriseError('DEADLINE_EXCEEDED', 'The caller does not wait any more.')
    if (arrival.key === undefined) {
      await onBehalfOf(caller, trusted, () => unkeyed?.(arrival, time))
      return this.#tell('unkeyed', arrival.last as FinishedAnswer, caller)
    }
    if (liveKeys !== undefined && !(await hasRoom(arrival, liveKeys, time.deadline))) {
      return this.#refuse({ name: 'too-many-keys' }, request, caller)
    }
    const end = await onBehalfOf(caller, trusted, () => operation.outcome(arrival, time))
    const { last } = arrival
    if (!end.replayed && last !== undefined) return this.#tell('executed', last, caller)
    // A run of its own that came to nothing, since somebody else was faster.
    if (last !== undefined) await discard(last)
    const kept = end.outcome === 'succeeded' ? end.value : (end.failure.data as StoredAnswer)
    return this.#replay(kept, request, caller)
  }

  async #replay(kept: StoredAnswer, request: HttpRequest, caller: Caller): Promise<FinishedAnswer> {
    if (kept.tombstone) {
      return this.#refuse({ name: 'answer-not-kept', headers: Object.fromEntries(kept.headers) }, request, caller)
    }
    const answer = restore(kept)
    const more = [[replayedHeader.name.toLowerCase(), 'true'] as const, ['cache-control', 'no-store'] as const]
    const headers = [...answer.headers, ...more, ...exposed(request)]
    return this.#tell('replayed', { ...answer, headers }, caller)
  }

  async #explained(
    error: unknown,
    arrival: Arrival<Native, Input> | undefined,
    request: HttpRequest,
    caller: Caller,
  ): Promise<FinishedAnswer> {
    const own = error instanceof UsersError ? error.thrown : error
    if (!arrival?.ran && own instanceof AnswerError) return this.#turnAway(own, caller)
    const answer = arrival === undefined || isPassing(error) ? undefined : ownAnswer(error, arrival)
    if (answer !== undefined) {
      return this.#tell(arrival?.key === undefined ? 'unkeyed' : 'executed', answer, caller)
    }
    if (error instanceof UsersError) throw own
    if (arrival?.last !== undefined) await discard(arrival.last)
    const refusal = refusalOf(error, {
      ran: arrival?.ran ?? false,
      keyed: arrival?.key !== undefined,
      thrown: arrival?.thrown,
      keyField: this.#settings.keyField,
      settlesItself: this.#mode.settlesItself,
    })
    if (refusal === undefined) throw error
    return this.#refuse(refusal, request, caller, error)
  }

  // The answer of parse or principal, before anything was begun.
  async #turnAway(error: AnswerError, caller: Caller): Promise<FinishedAnswer> {
    const answer = await finish(problemOf(error, this.#settings), this.#settings.largestAnswer)
    return this.#tell('refused', answer, caller, error.problem === undefined ? {} : { problem: error.problem.name })
  }

  async #refuse(
    { name, ...options }: Refusal,
    request: HttpRequest,
    caller: Caller,
    error?: unknown,
  ): Promise<FinishedAnswer> {
    const answer = problem(name, { ...options, base: this.#settings.problems })
    const headers = [...answer.headers, ...exposed(request)]
    const finished = await finish({ ...answer, headers }, this.#settings.largestAnswer)
    return this.#tell('refused', finished, caller, { problem: name, error })
  }

  #tell(
    how: HttpAnsweredEvent['how'],
    answer: FinishedAnswer,
    { attempt }: Caller,
    more?: { readonly problem?: string; readonly error?: unknown },
  ): FinishedAnswer {
    if (httpAnswered.hasSubscribers)
      httpAnswered.publish({ route: this.name, how, status: answer.status, attempt, ...more })
    return answer
  }
}

const nothing = new Uint8Array(0)

// The handler's own answer, which is not stored; or a final one of a request without a key.
function ownAnswer(
  error: unknown,
  { rejected, key, last }: Pick<Arrival<unknown, unknown>, 'rejected' | 'key' | 'last'>,
): FinishedAnswer | undefined {
  if (rejected !== undefined && rejected.error === error) return last
  const isFinal = isRepriseError(error, 'OPERATION_FAILED') && isFailure((error as OperationFailedError).failure)
  return isFinal && key === undefined ? last : undefined
}

// Scripts of other origins read only what they are shown (Fetch, 3.3.3).
function exposed(request: HttpRequest): readonly (readonly [string, string])[] {
  if (request.fields('origin').length === 0) return []
  return [['access-control-expose-headers', `${replayedHeader.name}, Retry-After, Location, ETag`]]
}
