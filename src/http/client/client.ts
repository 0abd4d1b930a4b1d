// fetch, with repeats where they are safe. What makes a repeat safe is found in the request itself: a method that reads
// or is idempotent, a precondition, or a key that the origin honours. Without any of them only what provably did not
// happen is repeated.

import { currentDeadline } from '../../identity/index.js'
import {
  type Clock,
  type Deadline,
  type Duration,
  deadlineAfter,
  earlier,
  RepriseError,
  remainingMs,
  systemClock,
  type WaitLimits,
} from '../../kernel/index.js'
import {
  type Breaker,
  demandSameKey,
  type Guard,
  perTarget,
  type RetryPolicy,
  retryPolicy,
  tokenBudget,
  type Verdict,
  watchKeys,
} from '../../retry/index.js'
import type { Answer, Reader } from './answer.js'
import { demandSendable } from './blocked-urls.js'
import { ClientCall, type ClientSettings, ownClassifier } from './call.js'
import { type ConditionalUpdate, type ConditionalUpdateOptions, conditionalUpdate } from './conditional-update.js'
import { demandClientOptions, type HttpClientOptions } from './options.js'
import { among } from './origins.js'
import { type CallInit, type FixedRequest, fixRequest, guardOf, hasPrecondition } from './request.js'

export type { HttpClientOptions } from './options.js'

/** fetch, with repeats where they are safe. */
export interface HttpClient {
  /**
   * As fetch: resolves to the answer, whatever its status, and rejects with what fetch threw or with the signal's
   * reason. The body is the caller's to read; a failure to read it is outside of the attempt, so use `read` for what
   * matters.
   *
   * Rejects with UNKNOWN_OUTCOME where nothing guards the request and no answer came, so that it may have happened. An
   * answer such as 500 may also follow an effect; it is handed over as it is, and `history` says what was made of it.
   */
  fetch(input: string | URL | Request, init?: CallInit): Promise<Response>
  /**
   * As `fetch`, and reads the body of a success within the attempt: a body that breaks off is a failed attempt. Read as
   * JSON, the value of 204 and 205 is undefined, since they have no body.
   *
   * What is whole and cannot be understood is never repeated, and rejects as it is, also where nothing guards the
   * request, since the server has said that it acted: BODY_MALFORMED, BODY_TOO_LARGE, a SyntaxError of your own
   * function, and what your own classifier calls permanent.
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

/** What belongs to one origin. All policies share budget, breaker and limit. */
interface Target {
  readonly repeating: RetryPolicy
  /** For what is repeated one after the other, even if the policy hedges. */
  readonly unhedged: RetryPolicy
  /** For what can be sent only once. */
  readonly single: RetryPolicy
  /** Whether nothing is remembered of the origin that matters. */
  readonly isLikeNew: () => boolean
}

const defaultMaxBytes = 16 << 20

/**
 * Makes a client. Keep it: budgets, breakers and limits live in it. Refuses options that cannot be with
 * ARGUMENT_INVALID, and a policy that cannot be with POLICY_INVALID or DURATION_INVALID, here and not at the first
 * call.
 *
 * @example
 * ```ts
 * import { httpClient } from 'reprise/http/client'
 * import { mintKey } from 'reprise/identity'
 *
 * const http = httpClient()
 * const answer = await http.fetch('https://api.example.com/payments', {
 *   method: 'POST',
 *   key: mintKey(),
 *   body: JSON.stringify({ order: 4711 }),
 * })
 * ```
 */
export function httpClient(options: HttpClientOptions = {}): HttpClient {
  demandClientOptions(options)
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
  readonly #isRuntimesFetch: boolean
  readonly #maxBodyBytes: number
  readonly #attempts: number
  readonly #deadline: Duration | undefined
  readonly #targetOf: (origin: string) => Target
  readonly #settings: ClientSettings

  constructor(options: HttpClientOptions) {
    const { policy = {}, maxOrigins } = options
    const judged = new WeakMap<object, Verdict>()
    this.#isRuntimesFetch = options.fetch === undefined
    this.#maxBodyBytes = options.maxBodyBytes ?? defaultMaxBytes
    this.#settings = {
      // Looked up at each call: programs replace the global one.
      fetch: options.fetch ?? ((...args) => fetch(...args)),
      clock: policy.clock ?? systemClock,
      classify: ownClassifier(policy.classify),
      trusts: among(options.trusts, 'trusts'),
      honoursKeys: among(options.honoursKeys, 'honoursKeys'),
      refusesEarly: among(options.refusesBeforeProcessing, 'refusesBeforeProcessing'),
      maxReadBytes: options.maxReadBytes ?? defaultMaxBytes,
      judged,
    }
    // Refuses a policy that cannot be, here and not at the first call.
    const { attempts, deadlineMs } = retryPolicy({ ...policy, budget: false }).toJSON()
    watchKeys()
    this.#attempts = attempts
    this.#deadline = deadlineMs
    const { breaker, ...withoutBreaker } = options
    // A breaker for many origins would refuse the sound ones with the others.
    const make = (origin: string, isForRest: boolean): Target =>
      targetFor(origin, isForRest ? withoutBreaker : options, judged)
    this.#targetOf = perTarget(make, {
      ...(maxOrigins !== undefined && { maxTargets: maxOrigins }),
      isLikeNew: (target) => target.isLikeNew(),
    })
  }

  async call<Value>(
    input: string | URL | Request,
    how: Reader<Value> | undefined,
    init: CallInit,
    mayHedge = true,
  ): Promise<Answer<Value>> {
    const { history } = init
    const { clock } = this.#settings
    const deadline = this.#deadlineOf(init.deadline)
    const request = await fixRequest(input, init, this.#maxBodyBytes, readingLimits(deadline, clock))
    if (this.#isRuntimesFetch) demandSendable(request.url)
    const guard = init.guard ?? guardOf(request, this.#settings.honoursKeys(request.url.origin), init.compare)
    const repeats = guard !== undefined && request.body.isRepeatable && this.#attempts > 1
    const { signal } = request
    const run = { ...(signal && { signal }), ...(deadline && { deadline }), ...(history && { history }) }
    const policy = this.#policyFor(request, guard, mayHedge)
    const call = new ClientCall(this.#settings, request, guard, how, repeats)
    // Inside a layer that repeats, the key must be the one of the attempts before. One that was minted for this request
    // matters only where keys are honoured.
    if (request.key !== undefined && (request.isNamed || guard?.rung === 'key'))
      demandSameKey(`${request.method} ${request.url.href}`, request.key)
    return call.end(guard === undefined ? policy.once(call.attempt, run) : policy.run(guard, call.attempt, run))
  }

  // The earliest of all that hold for the call. It counts from here on, also while the body of a Request is read.
  #deadlineOf(given: CallInit['deadline']): Deadline | undefined {
    const { clock } = this.#settings
    const after = (duration: Duration | undefined): Deadline | undefined =>
      duration === undefined ? undefined : deadlineAfter(duration, clock)
    const called = typeof given === 'object' && given !== null ? given : after(given)
    return earlier(earlier(called, after(this.#deadline)), currentDeadline())
  }

  #policyFor(request: FixedRequest, guard: Guard | undefined, mayHedge: boolean): RetryPolicy {
    const target = this.#targetOf(request.url.origin)
    // Two writes under one precondition at a time: one of them fails by the other's success, and nobody knows whose it
    // was.
    const hedges = mayHedge && guard?.rung !== 'conditional' && !hasPrecondition(request)
    if (!request.body.isRepeatable) return target.single
    return hedges ? target.repeating : target.unhedged
  }
}

function readingLimits(deadline: Deadline | undefined, clock: Clock): WaitLimits {
  if (deadline === undefined || deadline.expiresAtMs === Number.POSITIVE_INFINITY) return {}
  const message = 'The deadline passed while the body of the request was read; nothing was sent.'
  const expired = () => new RepriseError('DEADLINE_EXCEEDED', message)
  return { clock, limitMs: remainingMs(deadline, clock), expired }
}

function targetFor(origin: string, options: HttpClientOptions, judged: WeakMap<object, Verdict>): Target {
  const { policy = {} } = options
  const { clock = systemClock } = policy
  const budget = options.budget === false ? (false as const) : (options.budget?.(origin) ?? tokenBudget())
  const breaker = options.breaker?.(origin)
  const limit = options.limit?.(origin)
  const shared = {
    name: 'http',
    ...policy,
    classify: (error: unknown) => judged.get(error as object) ?? policy.classify?.(error),
    budget,
    ...(breaker && { breaker }),
    ...(limit && { limit }),
  }
  const levelAtFirst = budget === false ? 0 : budget.level(clock.monotonicMs())
  const isLikeNew = (): boolean => {
    const nowMs = clock.monotonicMs()
    const isSpared = budget === false || budget.level(nowMs) >= levelAtFirst
    return isSpared && (breaker === undefined || isSound(breaker, nowMs)) && (limit === undefined || limit.out === 0)
  }
  const { hedge, ...calm } = shared
  const unhedged = retryPolicy(calm)
  const repeating = hedge === undefined ? unhedged : retryPolicy(shared)
  return { repeating, unhedged, single: retryPolicy({ ...calm, attempts: 1 }), isLikeNew }
}

// Closed, and with no failure in its evidence, which is pairs of calls and failures.
function isSound(breaker: Breaker, nowMs: number): boolean {
  const { state, evidence } = breaker.snapshot(nowMs)
  return state === 'closed' && evidence.every((count, index) => index % 2 === 0 || count === 0)
}
