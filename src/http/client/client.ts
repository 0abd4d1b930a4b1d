// fetch, with repeats where they are safe. What makes a repeat safe is found in the request itself: a method that reads or
// is idempotent, a precondition, or a key that the origin honours. Without any of them only what provably did not happen is
// repeated.

import { type Clock, isRepriseError, RepriseError, systemClock } from '../../kernel/index.js'
import {
  type Attempt,
  type Breaker,
  type Budget,
  type Classifier,
  defaultClassifier,
  failedBecause,
  firstOf,
  type Guard,
  httpVerdict,
  permanent,
  perTarget,
  type RetryPolicy,
  type RetryPolicyOptions,
  type ReturnedVerdict,
  retryPolicy,
  sameLayer,
  tokenBudget,
  unclassified,
  type Verdict,
} from '../../retry/index.js'
import { type Answer, problemIn, type Reader, readBody } from './answer.js'
import { letGo } from './body.js'
import { type ConditionalUpdate, type ConditionalUpdateOptions, conditionalUpdate } from './conditional-update.js'
import { exchange, newTrail, type Trail } from './exchange.js'
import { among, type Origins } from './origins.js'
import { type CallInit, type FixedRequest, fixRequest, guardOf, hasPrecondition, isSafe } from './request.js'
import { CallSoFar } from './so-far.js'

/** Everything a client can be told. All of it has a default. */
export interface HttpClientOptions {
  /** The fetch that sends. Default: the global one. */
  readonly fetch?: typeof fetch
  /** How often, how long, and when to stop; budget and breaker are made per origin. Default: those of `retryPolicy`. */
  readonly policy?: Omit<RetryPolicyOptions, 'budget' | 'breaker'>
  /** Makes the budget of an origin. Default `tokenBudget()`; false: none, and 429 and 503 are not repeated. */
  readonly budget?: ((origin: string) => Budget) | false
  /** Makes the breaker of an origin. Default: none. */
  readonly breaker?: (origin: string) => Breaker
  /** How many origins have a budget and a breaker of their own; the least recently used leaves first. Default 100. */
  readonly maxOrigins?: number
  /** Origins that carry out an intent once for all requests with its key. Default: none; a key alone is no guard. */
  readonly honoursKeys?: Origins
  /**
   * Reprise servers that may know attempt, deadline and ownership, and whose problems are believed: 409 and 503 that say
   * `retryable` were refused before the handler ran. Default: none.
   */
  readonly trusts?: Origins
  /** Origins that answer 408 and 503 only to what they have not begun to process. Default: none. */
  readonly refusesBeforeProcessing?: Origins
  /** The largest form that is kept for a repeat, in bytes; a larger one is sent once. Default 16 MiB. */
  readonly maxBodyBytes?: number
  /** The largest answer that `read` takes, in bytes. Default 16 MiB. */
  readonly maxReadBytes?: number
}

/** fetch, with repeats where they are safe. */
export interface HttpClient {
  /**
   * As fetch: resolves to the answer, whatever its status, and rejects with what fetch threw or with the signal's reason. The
   * body is the caller's to read; a failure to read it is outside of the attempt, so use `read` for what matters.
   *
   * Rejects with UNKNOWN_OUTCOME where nothing guards the request and no answer came, so that it may have happened. An answer
   * such as 500 may also follow an effect; it is handed over as it is, and `history` says what was made of it.
   */
  fetch(input: string | URL | Request, init?: CallInit): Promise<Response>
  /**
   * As `fetch`, and reads the body of a success within the attempt: a body that breaks off is a failed attempt. Read as
   * JSON, the value of 204 and 205 is undefined, since they have no body.
   */
  read(input: string | URL | Request, how: 'json', init?: CallInit): Promise<Answer<unknown>>
  /** The same, for text. */
  read(input: string | URL | Request, how: 'text', init?: CallInit): Promise<Answer<string>>
  /** The same, for bytes. */
  read(input: string | URL | Request, how: 'bytes', init?: CallInit): Promise<Answer<Uint8Array>>
  /** The same, with a function that reads. */
  read<Value>(
    input: string | URL | Request,
    how: (response: Response) => Value | PromiseLike<Value>,
    init?: CallInit,
  ): Promise<Answer<Value>>
  /** Reads a JSON resource, changes it, and writes it back under its ETag: see {@link ConditionalUpdateOptions}. */
  conditionalUpdate<Value>(
    url: string | URL,
    options: ConditionalUpdateOptions<Value>,
  ): Promise<ConditionalUpdate<Value>>
}

/** What belongs to one origin. All policies share budget and breaker. */
interface Target {
  readonly repeating: RetryPolicy
  /** For what is repeated one after the other, even if the policy hedges. */
  readonly unhedged: RetryPolicy
  /** For what can be sent only once. */
  readonly single: RetryPolicy
}

const defaultMaxBytes = 16 << 20

/** Makes a client. Keep it: budgets and breakers live in it. */
export function httpClient(options: HttpClientOptions = {}): HttpClient {
  const client = new Client(options)
  return {
    fetch: async (input, init = {}) => (await client.call(input, undefined, init)).response,
    read: (input: string | URL | Request, how: Reader<never>, init: CallInit = {}) =>
      client.call(input, how, init) as never,
    conditionalUpdate: (url, update) =>
      conditionalUpdate((...args) => client.call(...args, false), options.policy?.clock ?? systemClock, url, update),
  }
}

class Client {
  readonly #options: HttpClientOptions
  readonly #clock: Clock
  readonly #classify: Classifier
  readonly #attempts: number
  readonly #targetOf: (origin: string) => Target
  readonly #honoursKeys: (origin: string) => boolean
  readonly #trusts: (origin: string) => boolean
  readonly #refusesEarly: (origin: string) => boolean
  // What this client knows about an error that the error itself does not say.
  readonly #judged = new WeakMap<object, Verdict>()
  // Errors of repeats that were not sent, whose verdict stands. Any other may be thrown again, where it means something else.
  readonly #strays = new WeakSet<object>()

  constructor(options: HttpClientOptions) {
    const { policy = {}, budget, breaker, maxOrigins } = options
    this.#options = options
    this.#clock = policy.clock ?? systemClock
    this.#classify = firstOf(...(policy.classify === undefined ? [] : [policy.classify]), defaultClassifier)
    this.#honoursKeys = among(options.honoursKeys)
    this.#trusts = among(options.trusts)
    this.#refusesEarly = among(options.refusesBeforeProcessing)
    const classify: Classifier = (error) => this.#judged.get(error as object) ?? policy.classify?.(error)
    const make = (origin: string): Target => {
      const shared = {
        name: 'http',
        ...policy,
        classify,
        budget: budget === false ? (false as const) : (budget?.(origin) ?? tokenBudget()),
        ...(breaker && { breaker: breaker(origin) }),
      }
      // The client is one layer, which the policy below made known; its origins are not more.
      const { hedge, ...calm } = shared
      return sameLayer(() => {
        const unhedged = retryPolicy(calm)
        const repeating = hedge === undefined ? unhedged : retryPolicy(shared)
        return { repeating, unhedged, single: retryPolicy({ ...calm, attempts: 1 }) }
      })
    }
    // Refuses a policy that cannot be, here and not at the first call.
    this.#attempts = retryPolicy({ ...policy, budget: false }).toJSON().attempts
    this.#targetOf = perTarget(make, maxOrigins === undefined ? {} : { maxTargets: maxOrigins })
  }

  async call<Value>(
    input: string | URL | Request,
    how: Reader<Value> | undefined,
    init: CallInit,
    mayHedge = true,
  ): Promise<Answer<Value>> {
    const request = await fixRequest(input, init, this.#options.maxBodyBytes ?? defaultMaxBytes)
    const { origin } = request.url
    const { deadline, history } = init
    const guard = init.guard ?? guardOf(request, this.#honoursKeys(origin), init.compare)
    const policy = this.#policyFor(request, guard, mayHedge)
    const settings = {
      fetch: this.#options.fetch ?? fetch,
      clock: this.#clock,
      trusts: this.#trusts,
      repeats: guard !== undefined && request.body.isRepeatable && this.#attempts > 1,
    }
    const { signal } = request
    const run = { ...(signal && { signal }), ...(deadline !== undefined && { deadline }), ...(history && { history }) }
    const soFar = new CallSoFar()
    const body = async (attempt: Attempt): Promise<Answer<Value> | ReturnedVerdict<Answer<Value>>> => {
      if (soFar.strayed !== undefined) throw this.#strayed()
      soFar.begin()
      const trail = newTrail(request)
      const adjusted = (given: Verdict): Verdict => {
        const more = soFar.strayed === undefined ? {} : { doNotRepeat: true }
        const verdict: Verdict = { ...given, ...(trail.isAnswered && { happened: 'maybe' }), ...more }
        // An attempt that was given up counts as what the runner took it for.
        if (verdict.happened === 'no' && !attempt.signal.aborted) soFar.provedHarmless()
        return verdict
      }
      const onSend = (next: string): void => {
        if (!this.#leavesGuard(guard, request, next)) return
        soFar.strayed ??= attempt.number
        // Another attempt has been there already, while this one was out.
        if (soFar.strayed !== attempt.number) throw this.#strayed()
      }
      try {
        const response = await exchange(request, attempt, { ...settings, onSend }, trail)
        const isKeyed = guard?.rung === 'key' || (guard?.rung !== 'conditional' && this.#honoursKeys(trail.origin))
        const mayBeInFlight = isKeyed && request.key !== undefined && soFar.mayHaveHappened
        const judged = await this.#judge(response, trail, mayBeInFlight)
        if (judged === undefined) return await this.#taken(response, how, trail)
        const verdict = adjusted(judged)
        if (attempt.signal.aborted) letGo(response)
        else soFar.refuse(response, verdict.happened === 'maybe')
        return failedBecause<Answer<Value>>(verdict, { ok: false, response })
      } catch (error) {
        if (typeof error === 'object' && error !== null && !this.#strays.has(error)) {
          const verdict = isRepriseError(error, 'BODY_MALFORMED')
            ? permanent('http-body')
            : (this.#classify(error) ?? unclassified)
          this.#judged.set(error, adjusted(verdict))
        }
        throw error
      }
    }
    let answer: Answer<Value> | undefined
    try {
      const result: unknown = await (guard === undefined ? policy.once(body, run) : policy.run(guard, body, run))
      // A comparison ends the call with the Response that it found.
      answer =
        result instanceof Response ? await this.#taken(result, how, newTrail(request)) : (result as Answer<Value>)
      return answer
    } finally {
      soFar.end(answer?.response)
    }
  }

  #policyFor(request: FixedRequest, guard: Guard | undefined, mayHedge: boolean): RetryPolicy {
    const target = this.#targetOf(request.url.origin)
    // Two writes under one precondition at a time: one of them fails by the other's success, and nobody knows whose it was.
    const hedges = mayHedge && guard?.rung !== 'conditional' && !hasPrecondition(request)
    if (!request.body.isRepeatable) return target.single
    return hedges ? target.repeating : target.unhedged
  }

  // What makes a repeat harmless was said of the origin that was asked. Another one may neither know the key, nor the tag, nor
  // what the caller knows of the first; only keys are declared for origins by name.
  #leavesGuard(guard: Guard | undefined, { url, method }: FixedRequest, next: string): boolean {
    if (guard === undefined || isSafe(method) || next === url.origin) return false
    return guard.rung !== 'key' || !this.#honoursKeys(next)
  }

  // A redirect led a request to an origin for which its guard does not hold, where its time ran out or it still is. This
  // repeat is not made; what became of the other attempt is what the caller gets, since that one may have happened.
  #strayed(): RepriseError {
    const error = new RepriseError('ATTEMPT_FAILED', 'A redirect led to an origin for which the guard does not hold.')
    this.#judged.set(error, permanent('redirect', 'no'))
    this.#strays.add(error)
    return error
  }

  async #judge(response: Response, { origin }: Trail, mayBeInFlight: boolean): Promise<Verdict | undefined> {
    if (response.status < 400) return undefined
    const problem = this.#trusts(origin) ? await problemIn(response) : undefined
    const own = firstOf((answer) => this.#options.policy?.classify?.(answer))(response)
    if (own !== undefined) return own
    const verdict = httpVerdict({
      status: response.status,
      header: (name) => response.headers.get(name),
      nowMs: this.#clock.wallMs(),
      refusesBeforeProcessing: this.#refusesEarly(origin),
      ...(problem && { problem }),
    })
    // Where keys are honoured, 409 is also the answer while the first request with the key is being carried out.
    const isInFlight = mayBeInFlight && response.status === 409 && verdict !== undefined
    return isInFlight ? { ...verdict, help: 'transient', conflict: false } : verdict
  }

  async #taken<Value>(response: Response, how: Reader<Value> | undefined, trail: Trail): Promise<Answer<Value>> {
    if (how === undefined || !response.ok) return { ok: false, response }
    // From here on the server has said that it acted.
    trail.isAnswered = true
    return { ok: true, response, value: await readBody(response, how, this.#options.maxReadBytes ?? defaultMaxBytes) }
  }
}
