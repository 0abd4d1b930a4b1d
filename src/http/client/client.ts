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
import { type CallInit, fixRequest, guardOf } from './request.js'

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
  /** As `fetch`, and reads the body of a success within the attempt: a body that breaks off is a failed attempt. */
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

/** What belongs to one origin. Both policies share budget and breaker. */
interface Target {
  readonly repeating: RetryPolicy
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
      conditionalUpdate((...args) => client.call(...args), options.policy?.clock ?? systemClock, url, update),
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
      const single = { ...shared, attempts: 1 }
      return sameLayer(() => ({ repeating: retryPolicy(shared), single: retryPolicy(single) }))
    }
    // Refuses a policy that cannot be, here and not at the first call.
    this.#attempts = retryPolicy({ ...policy, budget: false }).toJSON().attempts
    this.#targetOf = perTarget(make, maxOrigins === undefined ? {} : { maxTargets: maxOrigins })
  }

  async call<Value>(
    input: string | URL | Request,
    how: Reader<Value> | undefined,
    init: CallInit,
  ): Promise<Answer<Value>> {
    const request = await fixRequest(input, init, this.#options.maxBodyBytes ?? defaultMaxBytes)
    const { origin } = request.url
    const { deadline, history } = init
    const guard = init.guard ?? guardOf(request, this.#honoursKeys(origin), init.compare)
    const target = this.#targetOf(origin)
    const policy = request.body.isRepeatable ? target.repeating : target.single
    const settings = {
      fetch: this.#options.fetch ?? fetch,
      clock: this.#clock,
      trusts: this.#trusts,
      repeats: guard !== undefined && request.body.isRepeatable && this.#attempts > 1,
    }
    const { signal } = request
    const run = { ...(signal && { signal }), ...(deadline !== undefined && { deadline }), ...(history && { history }) }
    const refused: Response[] = []
    let strayed = false
    const body = async (attempt: Attempt): Promise<Answer<Value> | ReturnedVerdict<Answer<Value>>> => {
      // An answer that asks for a repeat has served its turn when the repeat begins.
      for (const response of refused.splice(0)) letGo(response)
      if (strayed) throw this.#strayed()
      const trail = newTrail(request)
      const adjusted = (verdict: Verdict): Verdict => {
        const more = strayed ? { doNotRepeat: true } : {}
        return { ...verdict, ...(trail.isAnswered && { happened: 'maybe' }), ...more }
      }
      const stray = (next: string): void => {
        strayed ||= guard?.rung === 'key' && !this.#honoursKeys(next)
      }
      try {
        const response = await exchange(request, attempt, { ...settings, onSend: stray }, trail)
        const verdict = await this.#judge(response, trail)
        if (verdict === undefined) return await this.#taken(response, how, trail)
        refused.push(response)
        return failedBecause<Answer<Value>>(adjusted(verdict), { ok: false, response })
      } catch (error) {
        if (typeof error === 'object' && error !== null) {
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
      for (const response of refused) if (response !== answer?.response) letGo(response)
    }
  }

  // A redirect led a keyed request to an origin that does not honour keys, and its time ran out there. This repeat is not
  // made; the error of the attempt before is the one that the caller gets, since that one may have happened.
  #strayed(): RepriseError {
    const error = new RepriseError(
      'UNKNOWN_OUTCOME',
      'A redirect led to an origin that is not declared to honour keys.',
    )
    this.#judged.set(error, permanent('redirect', 'no'))
    return error
  }

  async #judge(response: Response, { origin }: Trail): Promise<Verdict | undefined> {
    if (response.status < 400) return undefined
    const problem = this.#trusts(origin) ? await problemIn(response) : undefined
    return (
      firstOf((answer) => this.#options.policy?.classify?.(answer))(response) ??
      httpVerdict({
        status: response.status,
        header: (name) => response.headers.get(name),
        nowMs: this.#clock.wallMs(),
        refusesBeforeProcessing: this.#refusesEarly(origin),
        ...(problem && { problem }),
      })
    )
  }

  async #taken<Value>(response: Response, how: Reader<Value> | undefined, trail: Trail): Promise<Answer<Value>> {
    if (how === undefined || !response.ok) return { ok: false, response }
    // From here on the server has said that it acted.
    trail.isAnswered = true
    return { ok: true, response, value: await readBody(response, how, this.#options.maxReadBytes ?? defaultMaxBytes) }
  }
}
