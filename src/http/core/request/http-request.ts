// Requests: what an adapter tells about one, and what a handler sees of it. Every run of a handler gets a fresh one, so
// that what an earlier run did to it changes nothing.

import { defined, RepriseError } from '../../../kernel/index.js'
import { AnswerError, type ProblemError } from '../answer/answer.js'
import { problem } from '../problems.js'

/** The facts of a request, as they arrived, whatever its framework calls them. */
export interface RequestFacts {
  /** The method, in any case: some clients send `patch` as it was written. */
  readonly method: string
  /** Path and query as they arrived, before any router rewrote them: `/payments?account=7`. */
  readonly target: string
  /** The fields, each with every value that arrived, one by one and not joined; names are lower-case. */
  readonly fields: Readonly<Record<string, readonly string[] | undefined>>
  /** What a router found in the path, decoded. Default: nothing. */
  readonly params?: Readonly<Record<string, string>> | undefined
  /** Where the service is reached, for absolute addresses: `http://localhost:4700`. Default: made of the Host field. */
  readonly origin?: string
  /**
   * Reads the body, once, as the bytes that arrived, before any parser. Rejects with BODY_TOO_LARGE past the limit, and
   * with BODY_CONSUMED where a parser was faster.
   */
  readBody(mostBytes: number): Uint8Array | Promise<Uint8Array>
}

/** A request whose body was read already, and can be read as often as one likes. */
export class HttpRequest {
  /** The method, in capitals. */
  readonly method: string
  /** Path and query as they arrived. */
  readonly target: string
  /** The path as it arrived, with its escapes. */
  readonly path: string
  /** The query as it arrived, without the question mark; empty where there is none. */
  readonly search: string
  /** What the router found in the path. */
  readonly params: Readonly<Record<string, string>>
  readonly #facts: RequestFacts
  readonly #bytes: Uint8Array

  constructor(facts: RequestFacts, bytes: Uint8Array) {
    const { method, target, params } = facts
    const pathEnd = target.indexOf('?')
    this.method = method.toUpperCase()
    this.target = target
    this.path = pathEnd < 0 ? target : target.slice(0, pathEnd)
    this.search = pathEnd < 0 ? '' : target.slice(pathEnd + 1)
    this.params = { ...params }
    this.#facts = facts
    this.#bytes = bytes
  }

  /** The value of a field, several joined by a comma; undefined where it is absent. The name in any case. */
  header(name: string): string | undefined {
    const values = this.fields(name)
    return values.length === 0 ? undefined : values.join(', ')
  }

  /** Every value of a field, as they arrived; a fresh copy each time. */
  fields(name: string): readonly string[] {
    const { fields } = this.#facts
    const wanted = name.toLowerCase()
    return Object.hasOwn(fields, wanted) ? [...(fields[wanted] ?? [])] : []
  }

  /** The query, decoded; a fresh copy each time. */
  query(): URLSearchParams {
    return new URLSearchParams(this.search)
  }

  /** The media type in lower case, without its parameters; empty where none is told. */
  get mediaType(): string {
    const field = this.header('content-type') ?? ''
    const end = field.indexOf(';')
    return (end < 0 ? field : field.slice(0, end)).trim().toLowerCase()
  }

  /** The body as it arrived; a fresh copy each time. */
  bytes(): Uint8Array {
    return Uint8Array.from(this.#bytes)
  }

  /** How many bytes the body has. */
  get size(): number {
    return this.#bytes.length
  }

  /**
   * The body as text. Throws an answer 400 where it is not UTF-8, 415 where it is compressed and nobody before the
   * route has inflated it.
   */
  text(): string {
    const encoding = this.header('content-encoding')?.trim().toLowerCase() ?? 'identity'
    if (encoding !== 'identity' && encoding !== '')
      throw invalid(415, 'The body is compressed, which is not read here.')
    try {
      return strict.decode(this.#bytes)
    } catch {
      throw invalid(400, 'The body is not text in UTF-8.')
    }
  }

  /** The body as JSON. Throws an answer 400 where it is none; such an answer is never stored. */
  json(): unknown {
    const text = this.text()
    try {
      return JSON.parse(text) as unknown
    } catch {
      throw invalid(400, 'The body is not JSON.')
    }
  }

  /** The same as a `Request` of the fetch standard, fresh each time. */
  toRequest(): Request {
    const { fields, origin = `http://${this.header('host') ?? 'localhost'}` } = this.#facts
    const headers = new Headers()
    for (const [name, values] of Object.entries(fields)) {
      if (name.startsWith(':')) continue
      for (const value of values ?? []) headers.append(name, value)
    }
    const { method, size } = this
    const hasBody = method !== 'GET' && method !== 'HEAD' && size > 0
    const body = hasBody ? { body: this.bytes() as Uint8Array<ArrayBuffer> } : {}
    return new Request(new URL(this.target, origin), { method, headers, ...body })
  }
}

const strict = new TextDecoder('utf-8', { fatal: true })

/**
 * The refusal of a request whose shape is wrong, to be thrown by `parse` or a handler: an answer that is never stored.
 *
 * @param status From 400 to 499.
 * @param errors What is wrong with the parts of the request: `errors` of the problem. Default: it is not said.
 * @example
 * ```ts
 * import { type HttpRequest, invalid } from 'reprise/http/core'
 *
 * function parse(request: HttpRequest): { amount: number } {
 *   const { amount } = request.json() as { amount?: unknown }
 *   if (typeof amount !== 'number') throw invalid(400, 'There is no amount.')
 *   return { amount }
 * }
 * ```
 */
export function invalid(status: number, detail: string, errors?: readonly ProblemError[]): AnswerError {
  if (!(status >= 400 && status < 500))
    throw new RepriseError('ARGUMENT_INVALID', 'A refusal has a status from 400 to 499.')
  const refused = { name: 'request-invalid', status, detail, ...defined({ errors }) } as const
  return new AnswerError(problem('request-invalid', refused), { kept: false, problem: refused })
}
