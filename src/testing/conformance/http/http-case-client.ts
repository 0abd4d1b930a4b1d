// The client of the HTTP cases: plain node:http, since it must send two fields of one name and exact bytes.

import { type IncomingMessage, request as openRequest, type RequestOptions } from 'node:http'
import { request as openSecureRequest } from 'node:https'
import { defined, systemClock, uuidv4, waitFor } from '../../../kernel/index.js'
import { ConformanceFailure } from '../expectations.js'

/** A request of a case. */
export interface SubjectRequest {
  /** Default `POST`. */
  readonly method?: string
  /** Path and query: `/charges?account=7`. */
  readonly path: string
  /** The value of `Idempotency-Key`; a list sends several fields. Default: none. */
  readonly key?: string | readonly string[]
  /** Default: no body. */
  readonly body?: string | Uint8Array
  /** The media type. Default `application/json` if there is a body. */
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Which process gets it, the first being 0. Default: they take turns. */
  readonly at?: number
}

/** An answer of the server. */
export interface SubjectAnswer {
  readonly status: number
  readonly body: Buffer
  /** From the first byte sent to the last received, in ms. */
  readonly tookMs: number
  /** All values of a header field; upper and lower case do not matter. */
  fields(name: string): readonly string[]
  /** The value of a header field, several joined by a comma; undefined if there is none. */
  header(name: string): string | undefined
  /** The parsed body; undefined if it is not JSON. */
  json(): unknown
}

/** A user of the server. */
export interface SubjectUser {
  readonly name: string
  /** Sends a request. Fails the case when no answer comes in time. */
  send(request: SubjectRequest): Promise<SubjectAnswer>
  /** Sends a `POST` with a key and a JSON body. */
  post(path: string, key: string | readonly string[] | undefined, body?: unknown): Promise<SubjectAnswer>
  effects(): Promise<number>
}

/** What a case works with. */
export interface HttpCaseClient {
  /** How many processes of the server share the store. */
  readonly places: number
  /** A new user; with a name, that user. */
  user(name?: string): SubjectUser
  /** Sends requests without credentials. */
  readonly nobody: Pick<SubjectUser, 'send' | 'post'>
  /** A new key. */
  key(): string
  /** The same client for one case, which keeps track of the requests that are still running. */
  forCase(): HttpCaseClient & {
    /** Resolves when all requests of the case have ended. */
    idle(): Promise<void>
  }
}

/** How the server is reached. */
export interface HttpCaseClientOptions {
  /** The address of the server, or of several processes that share a store: `http://127.0.0.1:8080`. */
  readonly urls: readonly string[]
  /** The header fields that name a user; `{user}` stands for the name. Default `{ Authorization: 'Bearer {user}' }`. */
  readonly credentials?: Readonly<Record<string, string>>
  /** More header fields for every request, including those without credentials. */
  readonly headers?: Readonly<Record<string, string>>
  /** How long one answer may take, in ms. Default 15,000. */
  readonly limitMs?: number
}

const largestAnswer = 16_777_216

/** A client for a server under test. */
export function httpCaseClient(options: HttpCaseClientOptions): HttpCaseClient {
  const { credentials = { Authorization: 'Bearer {user}' }, headers = {}, limitMs = 15_000 } = options
  const urls = options.urls.map((url) => new URL(url))
  let turn = 0
  const exchangeAs = async (name: string | undefined, request: SubjectRequest): Promise<SubjectAnswer> => {
    const place = request.at ?? turn++ % urls.length
    const base = urls[place]
    if (base === undefined) throw new ConformanceFailure(`there is no process ${place}`)
    const named = name === undefined ? [] : Object.entries(credentials)
    const whoever = Object.fromEntries(named.map(([field, value]) => [field, value.replaceAll('{user}', name ?? '')]))
    return exchange(base, { ...request, headers: { ...headers, ...whoever, ...request.headers } }, limitMs)
  }
  const clientOf = (underWay: Set<Promise<unknown>>): ReturnType<HttpCaseClient['forCase']> => {
    const sendAs = (name: string | undefined, request: SubjectRequest): Promise<SubjectAnswer> => {
      const sent = exchangeAs(name, request)
      // A case that fails early leaves requests behind. Their errors no longer matter.
      const end = sent.catch(() => undefined).finally(() => underWay.delete(end))
      underWay.add(end)
      return sent
    }
    const personOf = (name: string | undefined): Pick<SubjectUser, 'send' | 'post'> => ({
      send: (request) => sendAs(name, request),
      post: (path, key, body = { amount: 5 }) =>
        sendAs(name, { path, ...defined({ key }), body: JSON.stringify(body) }),
    })
    return {
      places: urls.length,
      nobody: personOf(undefined),
      key: () => uuidv4(),
      user: (name = `user-${uuidv4()}`) => {
        const person = personOf(name)
        const effects = async () => countOf(await person.send({ method: 'GET', path: '/effects' }))
        return { name, ...person, effects }
      },
      forCase: () => clientOf(new Set()),
      idle: async () => void (await Promise.all(underWay)),
    }
  }
  return clientOf(new Set())
}

function countOf(answer: SubjectAnswer): number {
  const count = (answer.json() as { readonly effects?: unknown } | undefined)?.effects
  if (answer.status === 200 && typeof count === 'number') return count
  throw new ConformanceFailure(`GET /effects answers ${answer.status}, and should 200 {"effects": n}`)
}

/** One exchange, on a connection of its own. */
function exchange(base: URL, request: SubjectRequest, limitMs: number): Promise<SubjectAnswer> {
  const { method = 'POST', path, key, body, type = 'application/json' } = request
  const bytes = body === undefined ? undefined : Buffer.from(body as Uint8Array)
  const headers: Record<string, string | string[]> = { ...request.headers }
  if (bytes !== undefined) Object.assign(headers, { 'Content-Type': type, 'Content-Length': String(bytes.length) })
  if (key !== undefined) headers['Idempotency-Key'] = typeof key === 'string' ? key : [...key]
  const open = base.protocol === 'https:' ? openSecureRequest : openRequest
  const at: RequestOptions = {
    host: base.hostname.replace(/^\[|\]$/g, ''),
    port: base.port === '' ? undefined : Number(base.port),
    method,
    path: base.pathname.replace(/\/$/, '') + path,
    headers,
    agent: false, // A connection that is kept may be closed by the other side just as it is used again.
  }
  const startMs = systemClock.monotonicMs()
  const failure = (why: string, cause?: unknown): ConformanceFailure =>
    new ConformanceFailure(`${method} ${path.split('?', 1)[0]}: ${why}`, { cause })
  const expired = (): ConformanceFailure => failure(`no answer within ${limitMs} ms`)
  return waitFor({ limitMs, expired }, (resolve, reject) => {
    const outgoing = open(at)
    outgoing.on('error', (error: NodeJS.ErrnoException) =>
      reject(failure(`no answer: ${error.code ?? 'the connection failed'}`, error)),
    )
    outgoing.on('response', (incoming) => {
      const parts: Buffer[] = []
      let size = 0
      incoming.on('data', (part: Buffer) => {
        size += part.length
        if (size > largestAnswer) reject(failure(`the answer has more than ${largestAnswer} bytes`))
        else parts.push(part)
      })
      incoming.on('error', (error) => reject(failure('the answer was cut off', error)))
      incoming.on('end', () => resolve(answerOf(incoming, Buffer.concat(parts), systemClock.monotonicMs() - startMs)))
    })
    outgoing.end(bytes)
    return () => void outgoing.destroy()
  })
}

function answerOf(incoming: IncomingMessage, body: Buffer, tookMs: number): SubjectAnswer {
  const fields = (name: string): readonly string[] => incoming.headersDistinct[name.toLowerCase()] ?? []
  return {
    status: incoming.statusCode ?? 0,
    body,
    tookMs,
    fields,
    header: (name) => (fields(name).length === 0 ? undefined : fields(name).join(', ')),
    json() {
      try {
        return JSON.parse(body.toString('utf8')) as unknown
      } catch {
        return undefined
      }
    },
  }
}
