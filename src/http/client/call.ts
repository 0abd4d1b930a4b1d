// One call through the client: each attempt is sent, followed through its redirects, judged, and read if it succeeded.

import { type Clock, isRepriseError, RepriseError } from '../../kernel/index.js'
import {
  type Attempt,
  type Classifier,
  cancelBody,
  defaultClassifier,
  failedBecause,
  firstOf,
  type Guard,
  httpVerdict,
  permanent,
  type ReturnedVerdict,
  unclassified,
  type Verdict,
} from '../../retry/index.js'
import { type Answer, problemIn, type Reader, readBody } from './answer.js'
import { BadRedirect, exchange, newTrail, type Trail } from './exchange.js'
import { type FixedRequest, isSafe } from './request.js'
import { CallSoFar } from './so-far.js'

/** What a client knows, for all of its calls. */
export interface ClientSettings {
  /** The fetch that sends. */
  readonly fetch: typeof fetch
  /** What time is measured with. */
  readonly clock: Clock
  /** What the caller's own classifier says. */
  readonly classify: Classifier
  /** Whether an origin may know attempt, deadline and ownership, and tells the truth about its problems. */
  readonly trusts: (origin: string) => boolean
  /** Whether an origin carries out a key once. */
  readonly honoursKeys: (origin: string) => boolean
  /** Whether an origin answers 408 and 503 only to what it has not begun to process. */
  readonly refusesEarly: (origin: string) => boolean
  /** The largest answer that is read, in bytes. */
  readonly maxReadBytes: number
  /** What is known about an error that the error itself does not say. The policies look here first. */
  readonly judged: WeakMap<object, Verdict>
}

// What one attempt comes to.
type AttemptResult<Value> = Answer<Value> | ReturnedVerdict<Answer<Value>>

/** One call, from its first attempt to its last. */
export class ClientCall<Value> {
  readonly #settings: ClientSettings
  readonly #request: FixedRequest
  readonly #guard: Guard | undefined
  readonly #how: Reader<Value> | undefined
  readonly #repeats: boolean
  readonly #soFar = new CallSoFar()
  // The refusal of a repeat whose guard did not follow a redirect. Its verdict stands, wherever it is thrown.
  #stray: RepriseError | undefined
  // What made the body of a success useless. A unique value, so that no cause equals it by chance.
  #unreadable: object = {}

  /**
   * @param how How a success is read; undefined: it is not.
   * @param repeats Whether this client repeats the call, so that those below should not.
   */
  constructor(
    settings: ClientSettings,
    request: FixedRequest,
    guard: Guard | undefined,
    how: Reader<Value> | undefined,
    repeats: boolean,
  ) {
    this.#settings = settings
    this.#request = request
    this.#guard = guard
    this.#how = how
    this.#repeats = repeats
  }

  /** The body that a policy calls. */
  readonly attempt = async (attempt: Attempt): Promise<AttemptResult<Value>> => {
    const soFar = this.#soFar
    if (soFar.strayed !== undefined) throw this.#strayed()
    soFar.begin()
    const trail = newTrail(this.#request)
    try {
      const response = await this.#send(attempt, trail)
      // A fetch that does not look at its signal answers after the end.
      if (attempt.signal.aborted) cancelBody(response)
      attempt.signal.throwIfAborted()
      const judged = await this.#judge(response, trail)
      if (judged === undefined) return await this.#taken(response, trail)
      const verdict = this.#adjusted(judged, attempt, trail)
      // Its problem may have taken longer than the attempt.
      if (attempt.signal.aborted) cancelBody(response)
      else soFar.refuse(response, verdict.happened === 'maybe')
      return failedBecause<Answer<Value>>(verdict, { ok: false, response })
    } catch (error) {
      trail.leaveSignal?.()
      if (typeof error === 'object' && error !== null && error !== this.#stray) {
        this.#settings.judged.set(error, this.#adjusted(this.#blame(error, trail), attempt, trail))
      }
      throw error
    }
  }

  /** Waits for the policy to end the call, and lets go of what is not handed over. */
  async end(ended: Promise<unknown>): Promise<Answer<Value>> {
    let answer: Answer<Value> | undefined
    try {
      const result = (await ended) as Answer<Value> | Response
      // A comparison ends the call with the Response that it found, which may be one of another fetch's own class.
      answer = 'response' in result ? result : await this.#taken(result, newTrail(this.#request))
      return answer
    } catch (error) {
      const isUnreadable = isRepriseError(error, 'UNKNOWN_OUTCOME') && error.cause === this.#unreadable
      throw isUnreadable ? this.#unreadable : error
    } finally {
      this.#soFar.end(answer?.response)
    }
  }

  #send(attempt: Attempt, trail: Trail): Promise<Response> {
    const { fetch, clock, trusts } = this.#settings
    const soFar = this.#soFar
    const onSend = (next: string): void => {
      if (!this.#leavesGuard(next)) return
      soFar.strayed ??= attempt.number
      // Another attempt has been there already, while this one was out.
      if (soFar.strayed !== attempt.number) throw this.#strayed()
    }
    return exchange(this.#request, attempt, { fetch, clock, trusts, repeats: this.#repeats, onSend }, trail)
  }

  // What makes a repeat harmless was said of the origin that was asked. Another one may neither know the key, nor the
  // tag, nor what the caller knows of the first; only keys are declared for origins by name.
  #leavesGuard(next: string): boolean {
    const { url, method } = this.#request
    if (this.#guard === undefined || isSafe(method) || next === url.origin) return false
    return this.#guard.rung !== 'key' || !this.#settings.honoursKeys(next)
  }

  // A redirect led a request to an origin for which its guard does not hold, where its time ran out or it still is.
  // This repeat is not made; what became of the other attempt is what the caller gets, since that one may have
  // happened.
  #strayed(): RepriseError {
    const message = 'A redirect led to an origin for which the guard does not hold.'
    this.#stray ??= new RepriseError('ATTEMPT_FAILED', message)
    this.#settings.judged.set(this.#stray, permanent('redirect', 'no'))
    return this.#stray
  }

  async #judge(response: Response, { origin }: Trail): Promise<Verdict | undefined> {
    const { trusts, classify, clock, refusesEarly } = this.#settings
    const { status, headers } = response
    if (status < 400) return undefined
    const isTrusted = trusts(origin)
    const honoursKeys = this.#isKeyed(origin)
    const problem = isTrusted || honoursKeys ? await problemIn(response) : undefined
    const own = classify(response)
    if (own !== undefined) return own
    const verdict = httpVerdict({
      status,
      header: (name) => headers.get(name),
      nowMs: clock.wallMs(),
      refusesBeforeProcessing: refusesEarly(origin),
      honoursKeys,
      // An origin that honours keys is believed on those alone.
      ...(problem && { problem: isTrusted ? problem : { ...problem, retryable: false } }),
    })
    // Servers that do not say so answer 409, too, while the first request with the key is being carried out.
    const mayBeInFlight = honoursKeys && this.#guard?.rung !== 'conditional' && this.#soFar.mayHaveHappened
    if (status !== 409 || !mayBeInFlight || verdict === undefined) return verdict
    return { ...verdict, help: 'transient', conflict: false, inFlight: true }
  }

  // Whether the request has a key, and its receiver is declared to honour it.
  #isKeyed(origin: string): boolean {
    return this.#request.key !== undefined && (this.#guard?.rung === 'key' || this.#settings.honoursKeys(origin))
  }

  async #taken(response: Response, trail: Trail): Promise<Answer<Value>> {
    const how = this.#how
    if (how === undefined || !response.ok) return { ok: false, response }
    // From here on the server has said that it acted.
    trail.isAnswered = true
    trail.isSuccess = true
    const value = await readBody(response, how, this.#settings.maxReadBytes)
    trail.leaveSignal?.()
    return { ok: true, response, value }
  }

  // What was thrown, as a verdict. After a success there are two kinds: a body that broke off tells nobody what became
  // of the request; one that is whole and cannot be understood does not make the success unknown, and no repeat will
  // make it better.
  #blame(error: object, { isSuccess }: Trail): Verdict {
    const own = this.#settings.classify(error)
    const usual = defaultClassifier(error)
    const isMalformed =
      isRepriseError(error, 'BODY_MALFORMED') || isRepriseError(error, 'BODY_TOO_LARGE') || error instanceof SyntaxError
    // What is known of connections and answers of others is not about this body.
    if (isSuccess && usual === undefined && (own === undefined ? isMalformed : own.help === 'permanent')) {
      this.#unreadable = error
      return own ?? permanent('http-body')
    }
    if (error instanceof BadRedirect) return permanent('redirect')
    return own ?? usual ?? unclassified
  }

  #adjusted(given: Verdict, attempt: Attempt, { isAnswered }: Trail): Verdict {
    const more = this.#soFar.strayed === undefined ? {} : { doNotRepeat: true }
    const verdict: Verdict = { ...given, ...(isAnswered && { happened: 'maybe' }), ...more }
    // An attempt that was given up counts as what the runner took it for.
    if (verdict.happened === 'no' && !attempt.signal.aborted) this.#soFar.provedHarmless()
    return verdict
  }
}

/** The caller's own classifier, which may throw and may be missing. */
export function ownClassifier(classify: Classifier | undefined): Classifier {
  return classify === undefined ? () => undefined : firstOf(classify)
}
