// Read, change, write back if nobody else has changed it meanwhile. A write whose answer was lost is not decided anew
// before it is known whose change the next 412 is about.

import { keyHeader } from '../../identity/index.js'
import { type Clock, deadlineAfter, demandKnown, isRepriseError, RepriseError } from '../../kernel/index.js'
import {
  type AttemptRecord,
  type Comparison,
  cancelBody,
  currentLayer,
  spendRepeat,
  UnknownOutcomeError,
} from '../../retry/index.js'
import type { Answer, Reader } from './answer.js'
import { hidesRedirects } from './exchange.js'
import type { CallInit } from './request.js'

/** How a resource is changed. */
export interface ConditionalUpdateOptions<Value> {
  /**
   * The new value, from the current one; undefined to leave it. Called again when somebody else changed the resource
   * first, so it must decide from what it is given alone.
   */
  readonly change: (current: Value) => Value | undefined | PromiseLike<Value | undefined>
  /**
   * Whether the resource as it is now was written by us, by something that nobody else writes: a write token in it, or
   * a version that only we set. An equal value is no proof, since somebody else may have made the same change.
   * Undefined: cannot tell. Default: it cannot tell, and a write whose answer was lost ends in UNKNOWN_OUTCOME.
   */
  readonly isOurs?: (current: Value, intended: Value) => boolean | undefined
  /** How often somebody else may come first. Default 5 rounds of reading and writing in all, at most 100. */
  readonly rounds?: number
  /**
   * For every request, such as authorization; a deadline counts for all of them together. No key, also not as a header:
   * each round writes other contents, and has a key of its own. Default: nothing.
   */
  readonly init?: Omit<CallInit, 'method' | 'body' | 'guard' | 'compare' | 'key' | 'step'>
  /** The media type that is written. Default `application/json`. */
  readonly contentType?: string
}

/** What became of an update. */
export interface ConditionalUpdate<Value> {
  /** Whether something was written. */
  readonly changed: boolean
  /** What was written, or the current value if nothing was. */
  readonly value: Value
  /** How many times it was read and decided. */
  readonly rounds: number
}

type Call = <Value>(url: string | URL, how: Reader<Value> | undefined, init: CallInit) => Promise<Answer<Value>>

/**
 * GET, change, PUT with `If-Match`. After a 412 the change is decided anew on the new state, unless an earlier attempt
 * may have been the one that changed it: then, and also when the attempts run out, the resource is read and `isOurs` is
 * asked, which takes a minute at most where `init` has no deadline. Without `isOurs`, where it cannot tell, and where
 * the tag is still the old one, so that our write may yet arrive, it ends in UNKNOWN_OUTCOME. Nothing of it is hedged,
 * whatever the policy says, and caches are asked to stay out of it (`cache: 'no-store'`).
 *
 * Refuses with ETAG_MISSING (a strong one is needed), HTTP_STATUS (another answer than expected), UPDATE_CONFLICT (the
 * rounds ran out), JSON_VALUE_UNSUPPORTED (the new value has no JSON) and, before anything is sent, ARGUMENT_INVALID.
 */
export async function conditionalUpdate<Value>(
  call: Call,
  clock: Clock,
  url: string | URL,
  options: ConditionalUpdateOptions<Value>,
): Promise<ConditionalUpdate<Value>> {
  demandKnown(options, ['change', 'isOurs', 'rounds', 'init', 'contentType'], 'options')
  const { change, rounds: most = 5 } = options
  if (!Number.isInteger(most) || most < 1 || most > 100) {
    throw new RepriseError('ARGUMENT_INVALID', 'rounds must be a whole number from 1 to 100.')
  }
  const resource = new Resource(call, clock, url, options)
  const around = currentLayer()
  let rounds = 1
  for (; ; rounds++) {
    const { response, value } = await resource.read()
    const tag = response.headers.get('etag')
    if (!tag?.startsWith('"')) {
      throw new RepriseError('ETAG_MISSING', 'The answer has no strong ETag, so nothing can be written under it.')
    }
    const intended = await change(value)
    if (intended === undefined) return { changed: false, value, rounds }
    if (await resource.write(intended, tag)) return { changed: true, value: intended, rounds }
    if (rounds >= most || !spendRepeat(around, most)) break
  }
  throw new RepriseError('UPDATE_CONFLICT', 'Somebody else changed the resource first, every time.', {
    details: { rounds },
  })
}

/** How long the comparison after a lost answer may take where the update has no deadline, in ms. */
const maxCompareMs = 60_000

class Resource<Value> {
  readonly #call: Call
  readonly #clock: Clock
  readonly #url: string | URL
  readonly #init: CallInit
  readonly #contentType: string
  readonly #isOurs: ConditionalUpdateOptions<Value>['isOurs']

  constructor(call: Call, clock: Clock, url: string | URL, options: ConditionalUpdateOptions<Value>) {
    const { isOurs, init = {}, contentType = 'application/json' } = options
    const { deadline } = init
    demandNoneOfOurs(init)
    this.#call = call
    this.#clock = clock
    this.#url = url
    // One deadline for everything, not one for each request.
    this.#init =
      deadline === undefined || typeof deadline === 'object'
        ? init
        : { ...init, deadline: deadlineAfter(deadline, clock) }
    this.#contentType = contentType
    this.#isOurs = isOurs
  }

  /** The current value, with the answer it came in. */
  async read(limits: Pick<CallInit, 'deadline'> = {}): Promise<Answer<Value> & { readonly ok: true }> {
    // What a cache kept is not the present state: under its tag every write fails, and our own is not found.
    const fresh = { cache: 'no-store', ...this.#init, ...limits } as const
    const answer = await this.#call(this.#url, 'json' as Reader<Value>, fresh)
    // Without a body (204) there is nothing to change.
    if (answer.ok && answer.value !== undefined) return answer
    cancelBody(answer.response)
    throw unexpected(answer.response)
  }

  /** Whether the value was written; false when somebody else came first. */
  async write(intended: Value, tag: string): Promise<boolean> {
    const body = jsonOf(intended)
    const headers = new Headers(this.#init.headers)
    headers.set('if-match', tag)
    headers.set('content-type', this.#contentType)
    const isOurs = this.#isOurs
    const compare = async (): Promise<Comparison<Response>> => {
      if (isOurs === undefined) return undefined
      const { deadline = deadlineAfter(maxCompareMs, this.#clock) } = this.#init
      const { response, value } = await this.read({ deadline })
      const ours = isOurs(value, intended)
      if (ours) return { ours, value: response }
      // Under the old tag our write may still arrive, after whatever would be decided now.
      return ours === undefined || response.headers.get('etag') === tag ? undefined : { ours }
    }
    const history: AttemptRecord[] = this.#init.history ?? []
    const earlier = history.length
    const init: CallInit = { ...this.#init, method: 'PUT', headers, body, compare, history }
    let failure: unknown
    try {
      const { response } = await this.#call(this.#url, undefined, init)
      cancelBody(response)
      if (response.ok) return true
      // Where redirects are followed out of sight, it may be the answer to the read that came after our success.
      if (response.status === 412 && !(response.redirected && hidesRedirects())) return false
      failure = unexpected(response)
    } catch (error) {
      if (isRepriseError(error, 'UNKNOWN_OUTCOME') || this.#init.signal?.aborted) throw error
      failure = error
    }
    const attempts = history.slice(earlier)
    if (attempts.every(({ verdict }) => verdict.happened === 'no')) throw failure
    // The attempts ran out, and one of them may have been carried out. Looking is all that is left.
    const comparison = await compare().catch(() => undefined)
    if (comparison === undefined) throw new UnknownOutcomeError(failure, attempts)
    return comparison.ours
  }
}

const ours = ['method', 'body', 'guard', 'compare', 'key', 'step'] as const

// What the update decides itself. A key least of all: one key for the different contents of two rounds would have the
// second refused, or answered with what became of the first.
function demandNoneOfOurs(init: CallInit): void {
  const given = ours.find((name) => init[name] !== undefined)
  const field = new Headers(init.headers).has(keyHeader.name) ? `headers.${keyHeader.name.toLowerCase()}` : undefined
  const path = given ?? field
  if (path === undefined) return
  const message = `init.${path} is not for an update, which decides on it for each request.`
  throw new RepriseError('ARGUMENT_INVALID', message, { details: { path: `init.${path}` } })
}

// Functions, symbols and what its toJSON leaves undefined have none, and would be written as an empty body.
function jsonOf(value: unknown): string {
  const text: string | undefined = JSON.stringify(value)
  if (text !== undefined) return text
  throw new RepriseError('JSON_VALUE_UNSUPPORTED', 'The changed value has no JSON, so there is nothing to write.', {
    details: { kind: typeof value },
  })
}

function unexpected({ status }: Response): RepriseError {
  return new RepriseError('HTTP_STATUS', `The server answered ${status}.`, { details: { status } })
}
