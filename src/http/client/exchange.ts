// One attempt on the wire: the request, and the redirects that follow from it.
//
// Redirects of anything that is not a plain read are followed here and not by fetch, for three reasons: after the first
// answer a refused connection no longer proves that nothing happened; a guard that holds for one origin need not hold
// for the next; and headers for trusted origins must not travel on. The rules are those of the Fetch standard, 4.4.

import { attemptHeader, deadlineHeader, keyHeader, retryOwnerHeader, sequenceHeader } from '../../identity/index.js'
import { type Clock, remainingMs, whenAborted } from '../../kernel/index.js'
import { type Attempt, cancelBody } from '../../retry/index.js'
import { type FixedRequest, isSafe } from './request.js'

/** What an exchange needs to know. */
export interface ExchangeSettings {
  /** The fetch that sends. */
  readonly fetch: typeof fetch
  /** What the remaining time is measured with. */
  readonly clock: Clock
  /** Whether an origin may know attempt, deadline and ownership. */
  readonly trusts: (origin: string) => boolean
  /** Whether this client repeats the call, so that those below should not. */
  readonly repeats: boolean
  /** Told before the request itself, and not a read in its place, is sent on to another origin. */
  readonly onSend: (origin: string) => void
}

/** What is known about an attempt while it lasts. */
export interface Trail {
  /** The origin that was asked last. */
  origin: string
  /** Whether something was answered that may come after an effect: a redirect of an unsafe request, or a success. */
  isAnswered: boolean
  /** Whether it was a success, whose body is being read. */
  isSuccess: boolean
  /** Stops to follow the caller's own signal, where there is one: nothing is left of the attempt that it could end. */
  leaveSignal: (() => void) | undefined
}

/** A redirect that cannot be followed: what fetch rejects with a TypeError. */
export class BadRedirect extends TypeError {
  override readonly name: string = 'TypeError'
}

/** A new trail for an attempt. */
export function newTrail(request: FixedRequest): Trail {
  return { origin: request.url.origin, isAnswered: false, isSuccess: false, leaveSignal: undefined }
}

const maxRedirects = 20
const redirectStatuses = [301, 302, 303, 307, 308]
const bodyHeaders = ['content-encoding', 'content-language', 'content-location', 'content-type', 'content-length']
// They speak of the write that was answered, and of its resource. fetch keeps them; but our own success makes them
// false, so that the read in its place would say 412, as if somebody else had come first.
const preconditions = ['if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since']
const secretHeaders = ['authorization', 'proxy-authorization', 'cookie', 'host']

// Pages and their workers have a location, and a fetch that hides redirects from whoever wants to follow them.
declare const location: unknown
/** Whether redirects are followed out of sight, so that nobody knows which of the requests was answered. */
export const hidesRedirects = (): boolean => typeof location !== 'undefined'

/** Sends the request once and follows its redirects. Rejects as fetch does. */
export async function exchange(
  request: FixedRequest,
  attempt: Attempt,
  settings: ExchangeSettings,
  trail: Trail,
): Promise<Response> {
  const isOurs =
    request.redirect === 'follow' && !hidesRedirects() && (!isSafe(request.method) || settings.trusts(trail.origin))
  const signal = request.signal === undefined ? attempt.signal : bothSignals(request.signal, attempt.signal, trail)
  const headers = new Headers(request.headers)
  if (attempt.sequence !== undefined) headers.set(sequenceHeader.name, sequenceHeader.write(attempt.sequence))
  // Browsers refuse to fetch as a method of something else.
  const { fetch: send } = settings
  let { url, method } = request
  let body = request.body.content
  for (let redirects = 0; ; redirects++) {
    const response = await send(url.href, {
      ...request.rest,
      method,
      headers: settings.trusts(url.origin) ? announced(headers, attempt, settings) : headers,
      body: body ?? null,
      redirect: isOurs ? 'manual' : request.redirect,
      signal,
      ...(request.body.isStream && body !== undefined && { duplex: 'half' }),
    })
    if (response.redirected) trail.isAnswered ||= !isSafe(request.method)
    const target = isOurs ? redirectTarget(response, url) : undefined
    if (target === undefined) return keptOn(redirects === 0 ? response : marked(response), trail)
    cancelBody(response)
    trail.isAnswered ||= !isSafe(request.method)
    if (redirects === maxRedirects) throw new BadRedirect('redirect count exceeded')
    const { status } = response
    if (status !== 303 && body !== undefined && request.body.isStream)
      throw new BadRedirect('a stream cannot be redirected')
    if (status === 303 ? method !== 'GET' && method !== 'HEAD' : status < 303 && method === 'POST') {
      method = 'GET'
      body = undefined
      for (const name of [...bodyHeaders, ...preconditions, keyHeader.name, sequenceHeader.name]) headers.delete(name)
    }
    if (target.origin !== url.origin) for (const name of secretHeaders) headers.delete(name)
    url = target
    trail.origin = url.origin
    if (!isSafe(method)) settings.onSend(url.origin)
  }
}

// Aborts with the attempt, and after it with the caller's own signal, as long as there is a body that may be read. Not
// AbortSignal.any: in Node 20 the caller's signal keeps a reference for each that was made from it, for as long as it
// lives.
function bothSignals(own: AbortSignal, attempt: AbortSignal, trail: Trail): AbortSignal {
  const both = new AbortController()
  const follow = (signal: AbortSignal) => whenAborted(signal, () => both.abort(signal.reason))
  follow(attempt)
  trail.leaveSignal = follow(own)
  return both.signal
}

// The answers that were handed over, whose bodies are their callers' to read.
const answers = new FinalizationRegistry<() => void>((leave) => leave())

function keptOn(response: Response, { leaveSignal }: Trail): Response {
  if (leaveSignal === undefined) return response
  if (response.body === null) leaveSignal()
  else answers.register(response, leaveSignal)
  return response
}

// Unknown to servers that are not ours, and nobody else's business.
function announced(headers: Headers, attempt: Attempt, { clock, repeats }: ExchangeSettings): Headers {
  const all = new Headers(headers)
  all.set(attemptHeader.name, attemptHeader.write(attempt.number))
  if (attempt.deadline !== undefined) {
    all.set(deadlineHeader.name, deadlineHeader.write(remainingMs(attempt.deadline, clock)))
  }
  if (repeats) all.set(retryOwnerHeader.name, retryOwnerHeader.write('caller'))
  return all
}

function redirectTarget(response: Response, from: URL): URL | undefined {
  const given = response.headers.get('location')
  if (given === null || !redirectStatuses.includes(response.status)) return undefined
  const field = fromUtf8(given)
  const target = URL.canParse(field, from.href) ? new URL(field, from) : undefined
  if (target === undefined || !/^https?:$/.test(target.protocol)) {
    cancelBody(response)
    throw new BadRedirect('a redirect leads to something that is not HTTP')
  }
  // fetch refuses it as well, with the password in its message.
  if (target.username !== '' || target.password !== '') {
    cancelBody(response)
    throw new BadRedirect('a redirect leads to a URL with credentials')
  }
  if (target.hash === '') target.hash = from.hash
  return target
}

// Headers are bytes, read as Latin-1; servers that send more than ASCII mean UTF-8, and fetch reads it so.
function fromUtf8(field: string): string {
  return new TextDecoder().decode(Uint8Array.from(field, (letter) => letter.charCodeAt(0)))
}

// fetch would say so, had it followed the redirects itself.
function marked(response: Response): Response {
  return Object.defineProperty(response, 'redirected', { value: true })
}
