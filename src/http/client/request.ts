// A request as it will be sent, however often: method, URL, headers, key and body, fixed before the first attempt.

import { deriveKey, type Key, keyHeader, mintKey, parseKey } from '../../identity/index.js'
import { type Deadline, type Duration, defined, RepriseError, type WaitLimits } from '../../kernel/index.js'
import {
  type AttemptRecord,
  type Comparison,
  conditional,
  type Guard,
  keyed,
  readOnly,
  repeatable,
} from '../../retry/index.js'
import { type FrozenBody, freezeBody, freezeStream } from './body.js'

/** What one call can be told beyond what fetch can. */
export interface CallOptions {
  /**
   * The key of the intent. Default: that of the guard, of an `Idempotency-Key` header, or a new one; under `sequenced`
   * none. Sent with unsafe methods.
   */
  readonly key?: string
  /** The name of this call within the current intent, from whose key its own is derived. Default: not derived. */
  readonly step?: string
  /**
   * Why a repeat is harmless, where method, precondition and key do not say so. Its key, if it has one, is the one that
   * is sent; ARGUMENT_INVALID when another one is given beside it.
   */
  readonly guard?: Guard
  /** How long the call may take, all attempts together. Default: what the policy says. */
  readonly deadline?: Duration | Deadline
  /** Filled with a record of each failed attempt. */
  readonly history?: AttemptRecord[]
  /**
   * After a 412 that follows an attempt which may have succeeded: whose success was it? It has until the deadline, or a
   * minute where there is none; then its signal aborts. Default: nobody can tell, and the outcome is unknown.
   */
  readonly compare?: (signal: AbortSignal) => PromiseLike<Comparison<Response>> | Comparison<Response>
}

/** What a call can be told: everything fetch can, and {@link CallOptions}. */
export type CallInit = RequestInit & CallOptions

/** A request that no longer changes. */
export interface FixedRequest {
  /** Where it goes. */
  readonly url: URL
  /** The method, in the case in which fetch sends it. */
  readonly method: string
  /** The headers of every attempt, the key's included. */
  readonly headers: Headers
  /** The body, which no longer changes. */
  readonly body: FrozenBody
  /** What to do about redirects, as fetch has it. */
  readonly redirect: 'follow' | 'manual' | 'error'
  /** The caller's own signal. */
  readonly signal: AbortSignal | undefined
  /** The key, for methods that are not safe. */
  readonly key: Key | undefined
  /** Whether the caller gave the key, or what it is made from; otherwise it was minted for this request. */
  readonly isNamed: boolean
  /** Everything else that fetch understands. */
  readonly rest: RequestInit
}

/** Methods that read (RFC 9110, 9.2.1; QUERY from its own specification). */
export const isSafe = (method: string): boolean => /^(GET|HEAD|OPTIONS|TRACE|QUERY)$/.test(method)

/**
 * Fixes a request. Rejects with a TypeError where fetch would.
 *
 * @param time How long the body may take to be read.
 */
export async function fixRequest(
  input: string | URL | Request,
  init: RequestInit & CallOptions,
  maxBodyBytes: number,
  time: WaitLimits = {},
): Promise<FixedRequest> {
  const { key: given, step, guard, deadline, history, compare, ...own } = init
  const request = typeof input === 'object' && 'method' in input ? input : undefined
  // To fetch, a member that is undefined is one that was not given, and does not hide the Request's own.
  const asked: RequestInit = defined(own)
  const { signal, body, ...rest } = { ...(request && membersOf(request, Object.keys(asked).length > 0)), ...asked }
  const inherited = (body ?? undefined) === undefined ? request?.body : undefined
  if (inherited && request?.bodyUsed) throw new TypeError('the body of the Request has been read')
  const hasBody = (body ?? inherited ?? undefined) !== undefined
  // fetch's own judgement on URL, method and headers, before anything is sent or counted.
  const probe = new Request(request?.url ?? (input as string | URL), { ...rest, body: hasBody ? '' : null })
  const method = probe.method
  // The probe's own body would leave a type behind.
  const headers = new Headers(rest.headers)
  const isNamed = [given, step, guard?.key].some((name) => name !== undefined) || headers.has(keyHeader.name)
  // A number names the intent as a key would; one that nobody asked for would only be remembered twice.
  const isNumbered = guard?.rung === 'sequence' && !isNamed
  const key = isSafe(method) || isNumbered ? undefined : keyOf(given, step, guard?.key, headers)
  const limits = { ...time, signal: signal ?? undefined }
  const frozen = await (inherited
    ? freezeStream(inherited, maxBodyBytes, limits)
    : freezeBody(body, maxBodyBytes, limits))
  if (frozen.type !== undefined && !headers.has('content-type')) headers.set('content-type', frozen.type)
  if (key !== undefined) headers.set(keyHeader.name, keyHeader.write(key))
  return {
    url: new URL(probe.url),
    method,
    headers,
    body: frozen,
    redirect: probe.redirect,
    signal: signal ?? undefined,
    key,
    isNamed,
    rest,
  }
}

/**
 * Why a repeat of this request is harmless; undefined when nothing says so. A precondition comes first, since after a
 * lost answer its 412 must not be taken for somebody else's change.
 *
 * @param honoursKeys Whether the origin is declared to honour keys.
 * @param compare Tells our own success from somebody else's after a failed precondition.
 */
export function guardOf(
  request: FixedRequest,
  honoursKeys: boolean,
  compare: CallOptions['compare'],
): Guard | undefined {
  const { method, key } = request
  if (isSafe(method)) return readOnly()
  // What POST makes need not change the resource that it is sent to, so its tag may stay.
  if (/^(PUT|PATCH|DELETE)$/.test(method) && hasPrecondition(request)) return conditional(compare && { compare })
  if (method === 'PUT' || method === 'DELETE') return repeatable('RFC 9110, 9.2.2')
  return honoursKeys && key !== undefined ? keyed(key) : undefined
}

/**
 * Whether a request that is not a read has a precondition that our own success makes false: `If-Match: *` stays true,
 * and so does another tag in If-None-Match.
 */
export function hasPrecondition({ method, headers }: Pick<FixedRequest, 'method' | 'headers'>): boolean {
  if (isSafe(method)) return false
  const match = headers.get('if-match')?.trim()
  return (match !== undefined && match !== '*') || headers.get('if-none-match')?.trim() === '*'
}

function keyOf(given: string | undefined, step: string | undefined, guarding: Key | undefined, headers: Headers): Key {
  const field = headers.get(keyHeader.name)
  if (guarding === undefined) {
    if (given !== undefined) return parseKey(given)
    if (step !== undefined) return deriveKey(step)
    return field === null ? mintKey() : keyHeader.read(field)
  }
  // The guard vouches for its own key only, so no other may be sent under it.
  const others = [
    ...(given === undefined ? [] : [parseKey(given)]),
    ...(step === undefined ? [] : [deriveKey(step)]),
    ...(field === null ? [] : [keyHeader.read(field)]),
  ]
  if (others.some((other) => other !== guarding)) {
    throw new RepriseError('ARGUMENT_INVALID', 'The key of the guard is not the one given by key, step or header.')
  }
  return parseKey(guarding)
}

// What an init can say, read from a Request. As in the Fetch standard (5.4, the constructor), another init beside it
// makes it a new request: no page's navigation, and from nobody.
function membersOf(request: Request, isChanged: boolean): RequestInit {
  const { method, headers, redirect, signal, cache, credentials, integrity, keepalive } = request
  // Nobody but a page may navigate, and nobody may say so in an init.
  const mode = request.mode === 'navigate' ? 'same-origin' : request.mode
  const members = { method, headers, redirect, signal, cache, credentials, integrity, keepalive, mode }
  if (isChanged) return members
  const { referrer, referrerPolicy } = request
  return { ...members, referrer, referrerPolicy }
}
