// One request on its way through a route: what it is about is fixed here, and every run of the handler is given it afresh.

import type { Content, Key } from '../../../identity/index.js'
import { discard, type FinishedAnswer } from '../answer/finished.js'
import { contentOf } from '../request/content.js'
import type { RequestFacts } from '../request/facts.js'
import { HttpRequest } from '../request/http-request.js'

/** What is fixed about a request when it arrives. */
export interface ArrivalParts<Native> {
  /** The facts. */
  readonly facts: RequestFacts
  /** The framework's own request. */
  readonly native: Native
  /** The body. */
  readonly bytes: Uint8Array
  /** On whose behalf it is made. */
  readonly principal: readonly [string, ...string[]]
  /** Its key; undefined: it has none. */
  readonly key: Key | undefined
  /** Which call of the intent it is, as the caller says. */
  readonly callerAttempt: number | undefined
}

/** One request on its way through a route. Not a plain object, so that an operation takes it as it is. */
export class Arrival<Native, Input> {
  readonly native: Native
  readonly principal: readonly [string, ...string[]]
  readonly key: Key | undefined
  readonly method: string
  readonly callerAttempt: number | undefined
  /** Whether the handler was called. */
  ran = false
  /** The last answer that the handler gave, whole. */
  last: FinishedAnswer | undefined
  /** What the handler threw in its last run, where that was no answer. */
  thrown: { readonly error: unknown } | undefined
  /** The error by which the handler's last run ended where it came to an answer that is not stored. */
  rejected: { readonly error: unknown } | undefined
  readonly #facts: RequestFacts
  readonly #bytes: Uint8Array
  readonly #parse: ((request: HttpRequest, native: Native) => Input | PromiseLike<Input>) | undefined
  #parsed: { readonly input: Input } | undefined

  constructor(
    { facts, native, bytes, principal, key, callerAttempt }: ArrivalParts<Native>,
    parse: ((request: HttpRequest, native: Native) => Input | PromiseLike<Input>) | undefined,
  ) {
    this.native = native
    this.principal = principal
    this.key = key
    this.method = facts.method
    this.callerAttempt = callerAttempt
    this.#facts = facts
    this.#bytes = bytes
    this.#parse = parse
  }

  /** A run begins: what an earlier one left is let go. */
  begin(): Promise<void> | undefined {
    const { last } = this
    this.ran = true
    this.last = undefined
    this.thrown = undefined
    this.rejected = undefined
    return last === undefined ? undefined : discard(last)
  }

  /** A fresh request. */
  request(): HttpRequest {
    return new HttpRequest(this.#facts, this.#bytes)
  }

  /** What is bound to the key. */
  content(): Content {
    return contentOf(this.request(), this.#bytes)
  }

  /** Reads the input for the first run, before anything is claimed. Throws what `parse` throws. */
  async check(): Promise<void> {
    this.#parsed = { input: await this.#read() }
  }

  /** Whether there is anything to read from the request before a run. */
  get isParsed(): boolean {
    return this.#parse !== undefined
  }

  /** The input for one run: what was read at first, or read anew. */
  input(): Input | PromiseLike<Input> {
    const parsed = this.#parsed
    this.#parsed = undefined
    return parsed === undefined ? this.#read() : parsed.input
  }

  #read(): Input | PromiseLike<Input> {
    return this.#parse === undefined ? (undefined as Input) : this.#parse(this.request(), this.native)
  }
}
