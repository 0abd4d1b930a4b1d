// What left the process during an attempt, and which verdicts stand in its light. Used by unguarded calls of a policy,
// by the HTTP client, which makes such calls, and by the calls of a leased operation.
//
// An error speaks of one request: a refused connection proves that this request did not leave, and says nothing of
// those before it. fetch follows redirects, a body may hold a loop of its own, or make a second call after the first
// had its effect. So each attempt is watched: undici (the engine of Node's fetch) and node:http tell of their requests
// on diagnostics channels, in the async context of whoever made them.

import { onDiagnostics, scopeKind } from '../kernel/index.js'
import { networkClassifier } from './classify/network.js'
import { historyOf } from './history.js'
import type { Verdict } from './verdict.js'

/** More requests than this in one attempt are not told apart any more: the rest counts as sent. */
const mostOpen = 1_000

/** Sees the requests that leave during one attempt. Where the runtime has no such channels it sees none. */
export class SentWatch {
  // The watch of the attempt around this one, which sees the same requests.
  readonly #outer: SentWatch | undefined = watches.current()
  // Made, and neither sent nor failed: they may still leave.
  readonly #open = new Set<object>()
  #made = 0
  #left = 0

  /** Calls the body of the attempt, and sees what it sends until it has ended. */
  call<Given, Result>(body: (given: Given) => PromiseLike<Result> | Result, given: Given): Promise<Result> {
    listen()
    // Resolved inside, since some work (a lazy promise) starts only when it is awaited.
    return watches.run(this, () => Promise.resolve(body(given)))
  }

  /**
   * The verdict on a failure of the attempt. A `no` that rests on one request (see `proof` of a verdict) becomes
   * `maybe` where another one left or still may, and where the request in question was made in a way that cannot be
   * seen (http2, a raw socket). A `no` that somebody declared stands.
   */
  judge(verdict: Verdict, error: unknown): Verdict {
    const { proof } = verdict
    if (verdict.happened !== 'no' || proof === undefined) return verdict
    const isSeen = proof !== 'unsent' || this.#made > 0
    const isAlone = this.#left <= refusals(verdict, error) && [...this.#open].every(isGone)
    return isSeen && isAlone ? verdict : { ...verdict, happened: 'maybe' }
  }

  /** A request was made. */
  made(request: object): void {
    for (let watch: SentWatch | undefined = this; watch !== undefined; watch = watch.#outer) {
      watch.#made += 1
      if (watch.#open.size < mostOpen) watch.#open.add(request)
      else watch.#left += 1
    }
  }

  /** A request is through: it was sent, or it failed before it was. */
  through(request: object, wasSent: boolean): void {
    for (let watch: SentWatch | undefined = this; watch !== undefined; watch = watch.#outer) {
      if (watch.#open.delete(request) && wasSent) watch.#left += 1
    }
  }
}

const watches = /* @__PURE__ */ scopeKind<SentWatch>('reprise.sent')

// How many requests are known to have been refused unprocessed: those of a policy inside, where each of its attempts
// was harmless, or the one that was answered.
function refusals(verdict: Verdict, error: unknown): number {
  const attempts = historyOf(error)?.attempts ?? [{ verdict }]
  if (attempts.some(({ verdict: { happened } }) => happened !== 'no')) return 0
  return attempts.filter(({ verdict: { proof } }) => proof === 'refused').length
}

/** As much of node:http's ClientRequest, and of its socket, as is looked at. Anything may be missing. */
interface Request {
  readonly destroyed?: boolean
  readonly socket?: Socket | null
}
interface Socket {
  readonly connecting?: boolean
  readonly secureConnecting?: boolean
  readonly encrypted?: boolean
  readonly destroyed?: boolean
  once?(event: string, listener: () => void): unknown
}

// A request of node:http that did not connect, and never will. undici tells when one of its requests has failed.
function isGone({ destroyed, socket }: Request): boolean {
  return destroyed === true || socket?.destroyed === true
}

const seenBy = /* @__PURE__ */ new WeakMap<object, SentWatch>()
let listening = false

// Once in a process, by the first attempt that is watched.
function listen(): void {
  if (listening) return
  listening = true
  const on = (name: string, hear: (request: object, message: Message) => void): void =>
    onDiagnostics(name, (message) => {
      // Anybody can publish anything on a channel, and an error thrown here would be an uncaught one.
      const { request } = Object(message) as Message
      if (typeof request === 'object' && request !== null) hear(request, message as Message)
    })
  on('undici:request:create', made)
  on('undici:client:sendHeaders', sent)
  // An answer shows that it was sent, also where the other channel is silent (undici over HTTP/2).
  on('undici:request:headers', sent)
  on('undici:request:error', (request, { error }) => {
    seenBy.get(request)?.through(request, networkClassifier(error)?.happened !== 'no')
  })
  // Node 22.12 and later tell it when the request is made. Only then it can be seen while it waits for a socket.
  on('http.client.request.created', made)
  on('http.client.request.start', (request: Request) => {
    made(request)
    whenConnected(request.socket, () => sent(request))
  })
}

interface Message {
  readonly request?: object | null
  readonly error?: unknown
}

function made(request: object): void {
  const watch = seenBy.has(request) ? undefined : watches.current()
  if (watch === undefined) return
  seenBy.set(request, watch)
  watch.made(request)
}

function sent(request: object): void {
  seenBy.get(request)?.through(request, true)
}

// A request that is started has been written, but leaves only when its socket has connected, and has shaken hands under
// TLS. A socket that is used again has done so. What has none of these members is not one of Node's, and counts as
// connected.
function whenConnected(socket: Socket | null | undefined, connected: () => void): void {
  const isWaiting = socket?.connecting === true || socket?.secureConnecting === true
  if (isWaiting && socket?.once !== undefined) socket.once(socket.encrypted ? 'secureConnect' : 'connect', connected)
  else connected()
}
