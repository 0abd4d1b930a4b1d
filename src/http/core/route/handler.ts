// One request on its way through a route, and one run of the route's handler for it.

import { fail, isFailure, OperationFailedError } from '../../../idempotency/index.js'
import { type Key, type Scope, scope } from '../../../identity/index.js'
import { isPromiseLike, isRepriseError } from '../../../kernel/index.js'
import { type Answer, AnswerError, type Answered, answerOf, finish, rolledBack } from '../answer/answer.js'
import { requestContent } from '../request/content.js'
import { HttpRequest, type RequestFacts } from '../request/http-request.js'
import type { Principal, PrincipalNames } from './principal.js'

/** What is fixed about a request when it arrives. */
export interface ArrivalParts<Native, Input> {
  readonly facts: RequestFacts
  /** The request without its body. */
  readonly head: HttpRequest
  readonly bytes: Uint8Array
  /** The framework's own request. */
  readonly native: Native
  /** On whose behalf it is made. */
  readonly principal: readonly [string, ...string[]]
  /** Its key; undefined: it has none. */
  readonly key: Key | undefined
  /** Which call of the intent it is, as the caller says. */
  readonly callerAttempt: number | undefined
  /** What `parse` made of it before anything was claimed. */
  readonly input: Input
}

/** One request on its way through a route. Not a plain object, since an operation would copy that for each run. */
export class Arrival<Native, Input> {
  readonly native: Native
  readonly principal: readonly [string, ...string[]]
  readonly key: Key | undefined
  readonly method: string
  readonly callerAttempt: number | undefined
  readonly parts: ArrivalParts<Native, Input>

  constructor(parts: ArrivalParts<Native, Input>) {
    this.native = parts.native
    this.principal = parts.principal
    this.key = parts.key
    this.method = parts.head.method
    this.callerAttempt = parts.callerAttempt
    this.parts = parts
  }

  /** The request, fresh each time. */
  request(): HttpRequest {
    return new HttpRequest(this.parts.facts, this.parts.bytes)
  }
}

/** What makes requests of a route the same intent, for its operation. */
export interface ArrivalIdentity<Native, Input> {
  readonly scope: (arrival: Arrival<Native, Input>) => Scope
  readonly key: (arrival: Arrival<Native, Input>) => Key
  readonly content: (arrival: Arrival<Native, Input>) => ReturnType<typeof requestContent>
}

/** The identity of the requests of a route. An operation is asked only where there is a key. */
export function arrivalIdentity<Native, Input>(name: string): ArrivalIdentity<Native, Input> {
  return {
    scope: ({ principal, method }) => scope(...principal, method, name),
    key: ({ key }) => key as Key,
    content: ({ parts }) => requestContent(parts.head, parts.bytes),
  }
}

/** What a handler gets with every run, beside its transaction or its lease. */
export interface HandlerCall<Native, Input, Who extends Principal = Principal> {
  /** The request, fresh for this run. */
  readonly request: HttpRequest
  /** What `parse` made of it, for this run. */
  readonly input: Input
  /** The framework's own request. It is the same in every run: read it, and leave it as it is. */
  readonly native: Native
  /** On whose behalf the request is made: the names that the option `principal` gave. */
  readonly principal: PrincipalNames<Who>
  /** The intent's key; undefined where it has none. */
  readonly key: Key | undefined
  /** Which call of the intent this is, as the caller says; undefined: it does not say. */
  readonly callerAttempt: number | undefined
}

/** Route settings that a handler run needs. */
export interface HandlerSettings<Native, Input> {
  readonly parse?: (request: HttpRequest, native: Native) => Input | Promise<Input>
  readonly answerOf?: (error: unknown) => Answered | undefined
  /** The statuses from 400 to 499 that are stored. Those below always are, those above never. */
  readonly storedRefusals: ReadonlySet<number>
  /** The most bytes of an answer's body that are kept. */
  readonly largestAnswer: number
}

/**
 * The body of a route's operation: runs the handler once, and returns the answer that is to be stored. Throws an answer
 * that is not stored as an {@link AnswerError}, and one that was thrown and is stored as a final failure.
 *
 * @param held What the handler is given beside the request: its transaction or its lease.
 */
export function handlerRun<Native, Input, Held>(
  settings: HandlerSettings<Native, Input>,
  handler: (call: never) => Answered | Promise<Answered>,
  held: 'tx' | 'lease',
): (given: Held, arrival: Arrival<Native, Input>) => Promise<Answer> {
  const { parse, largestAnswer, storedRefusals } = settings
  return async (given, { parts }) => {
    const { facts, bytes, native, principal, key, callerAttempt } = parts
    let answer: Answer
    try {
      // What was parsed before the claim is for the first run, and each further one gets it fresh.
      const isFirst = parse === undefined || (given as { readonly attempt?: number }).attempt === 1
      const input = isFirst ? parts.input : await parse(new HttpRequest(facts, bytes), native)
      const request = new HttpRequest(facts, bytes)
      const call = { request, input, native, principal, key, callerAttempt, [held]: given }
      const finishing = finish(answerOf(await handler(call as never)), largestAnswer)
      answer = isPromiseLike(finishing) ? await finishing : finishing
    } catch (error) {
      throw await errorToThrow(error, settings, held === 'tx')
    }
    // A success that left while its effect is rolled back would be a lie.
    if (answer.status < 400 || storedRefusals.has(answer.status)) return answer
    throw thrownBy('handler', new AnswerError(answer))
  }
}

// An error that is no answer to be stored stays the very same: a lease knows by the error itself what was declared to
// be unsent, and a store its own errors.
async function errorToThrow<Native, Input>(
  error: unknown,
  settings: HandlerSettings<Native, Input>,
  rollsBack: boolean,
): Promise<unknown> {
  try {
    const answer = answerIn(error, settings)
    // Whatever was said of it, what failed in the server is not remembered.
    if (answer === undefined || answer.status >= 500) return thrownBy('handler', error)
    const kept = error instanceof AnswerError ? error.kept : undefined
    if (!(kept ?? (answer.status < 400 || settings.storedRefusals.has(answer.status))))
      return thrownBy('handler', error)
    const finished = await finish(answer, settings.largestAnswer)
    const failure = fail('answer', rollsBack ? rolledBack(finished) : finished)
    return new OperationFailedError(failure, { cause: error })
  } catch (mistake) {
    return thrownBy('handler', mistake)
  }
}

/** The answer that an error of the user's code stands for; undefined: it is none. */
export function answerIn<Native, Input>(
  error: unknown,
  { answerOf: translate }: Pick<HandlerSettings<Native, Input>, 'answerOf'>,
): Answer | undefined {
  if (error instanceof AnswerError) return error.answer
  const translated = translate?.(error)
  return translated === undefined ? undefined : answerOf(translated)
}

/** What a handler threw that its operation would take for something else: its own final failure, or no error at all. */
export class HandlerError extends Error {
  readonly thrown: unknown

  constructor(thrown: unknown) {
    super('The handler of a route threw an error of its own.', { cause: thrown })
    this.thrown = thrown
  }
}

const throwers = new WeakMap<object, 'handler' | 'codec'>()

/** Which code of the user's threw an error; undefined: it is one of the layer or of its store. */
export function thrower(error: unknown): 'handler' | 'codec' | undefined {
  return typeof error === 'object' && error !== null ? throwers.get(error) : undefined
}

/** Notes which code of the user's threw an error, so that whoever gets the error knows; the error to throw. */
export function thrownBy(who: 'handler' | 'codec', error: unknown): unknown {
  const isObject = typeof error === 'object' && error !== null
  const isOther = !isObject || isFailure(error) || isRepriseError(error, 'OPERATION_FAILED')
  const noted = isOther ? new HandlerError(error) : error
  throwers.set(noted, who)
  return noted
}
