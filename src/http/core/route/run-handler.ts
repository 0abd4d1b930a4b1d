// One run of a handler: what it returned or threw, as what is to be stored, or as an error that leaves the key free.

import { fail, OperationFailedError } from '../../../idempotency/index.js'
import type { Key } from '../../../identity/index.js'
import { isPromiseLike, isRepriseError } from '../../../kernel/index.js'
import { type Answer, AnswerError, type Answered, answerOf } from '../answer/answer.js'
import { type FinishedAnswer, finish } from '../answer/finished.js'
import { type StoredAnswer, store } from '../answer/stored.js'
import type { HttpRequest } from '../request/http-request.js'
import type { Arrival } from './arrival.js'
import type { RouteOptions } from './options.js'
import type { RouteSettings } from './settings.js'

/** What a handler gets with every run, beside its transaction or its lease. */
export interface HandlerCall<Native, Input> {
  /** The request, fresh for this run. */
  readonly request: HttpRequest
  /** What `parse` made of it, for this run. */
  readonly input: Input
  /** The framework's own request. It is the same in every run: read it, and leave it as it is. */
  readonly native: Native
  /** On whose behalf the request is made. */
  readonly principal: readonly [string, ...string[]]
  /** The intent's key; undefined where it has none. */
  readonly key: Key | undefined
  /** Which call of the intent this is, as the caller says; undefined: it does not say. */
  readonly callerAttempt: number | undefined
}

/** Marks an error of the user's own code that would otherwise be taken for one of the layer. The route throws what is behind it. */
export class UsersError extends Error {
  /** What was thrown. */
  readonly thrown: unknown

  constructor(thrown: unknown) {
    super('Code of the user threw an error of its own.', { cause: thrown })
    this.thrown = thrown
  }
}

/** Calls code of the user, whose errors are its own. A promise only where that code answers one. */
export function usersOwn<Result>(work: () => Result | PromiseLike<Result>): Result | Promise<Result> {
  try {
    const result = work()
    return isPromiseLike(result) ? Promise.resolve(result).catch(thrownByUser) : result
  } catch (error) {
    return thrownByUser(error)
  }
}

function thrownByUser(error: unknown): never {
  throw new UsersError(error)
}

type HandlerEnd =
  | { readonly answer: FinishedAnswer; readonly kept: boolean; readonly error?: never }
  | { readonly answer: FinishedAnswer; readonly kept: boolean; readonly error: unknown }
  | { readonly answer: undefined; readonly error: unknown }

/** Runs a handler once, and says what is to be stored. Throws an answer that is not stored as an {@link AnswerError}, and a stored one that was thrown as a final failure. */
export async function runHandler<Native, Input>(
  settings: RouteSettings,
  options: Pick<RouteOptions<Native, Input>, 'answerOf'>,
  arrival: Arrival<Native, Input>,
  handler: (call: HandlerCall<Native, Input>) => Answered | PromiseLike<Answered>,
): Promise<StoredAnswer> {
  const { native, principal, key, callerAttempt } = arrival
  const letting = arrival.begin()
  if (letting !== undefined) await letting
  let end: HandlerEnd
  try {
    const reading = arrival.input()
    const input = isPromiseLike(reading) ? await reading : reading
    const answered = await handler({ request: arrival.request(), input, native, principal, key, callerAttempt })
    const finishing = finish(answerOf(answered), settings.largestAnswer)
    const answer = isPromiseLike(finishing) ? await finishing : finishing
    end = { answer, kept: settings.stores(answer.status) }
  } catch (error) {
    end = await thrownEnd(error, settings, options)
  }
  if (end.answer === undefined) {
    arrival.thrown = { error: mark(end.error) }
    throw arrival.thrown.error
  }
  const { answer, kept } = end
  arrival.last = answer
  if (!kept) {
    // The very error, where there is one: a lease knows what was declared to be unsent by the error itself.
    arrival.rejected = { error: 'error' in end ? mark(end.error) : new AnswerError(answer) }
    throw arrival.rejected.error
  }
  const stored = store(answer, settings.replayed, settings.largestAnswer)
  if (!('error' in end)) return stored
  throw new OperationFailedError(fail('answer', stored), { cause: end.error })
}

async function thrownEnd(
  error: unknown,
  settings: RouteSettings,
  { answerOf: translate }: Pick<RouteOptions<never, never>, 'answerOf'>,
): Promise<HandlerEnd> {
  try {
    const given = error instanceof AnswerError ? problemOf(error, settings) : translated(translate?.(error))
    if (given === undefined) return { answer: undefined, error }
    const answer = await finish(given, settings.largestAnswer)
    const kept = (error instanceof AnswerError ? error.kept : undefined) ?? settings.stores(answer.status)
    // Whatever was said of it, what failed in the server is not remembered.
    return { answer, kept: kept && answer.status < 500, error }
  } catch (another) {
    return { answer: undefined, error: another }
  }
}

/** The answer of an error, with the addresses of the route where it is a problem of ours. */
export function problemOf({ problem, answer }: AnswerError, { problems }: Pick<RouteSettings, 'problems'>): Answer {
  return problem === undefined ? answer : problem.of(problems)
}

function translated(answered: Answered | undefined): Answer | undefined {
  return answered === undefined ? undefined : answerOf(answered)
}

// The operation would take it for a final failure of its own.
function mark(error: unknown): unknown {
  return isRepriseError(error, 'OPERATION_FAILED') ? new UsersError(error) : error
}
