// An answer, and what is read from it.

import { RepriseError } from '../../kernel/index.js'
import type { HttpProblem } from '../../retry/index.js'
import { bytesOf } from './body.js'

/** How the body of a successful answer is read: as JSON, as text, as bytes, or by a function. */
export type Reader<Value> = 'json' | 'text' | 'bytes' | ((response: Response) => Value | PromiseLike<Value>)

/**
 * An answer, with what was read from it if it was a success (2xx). Read as JSON, the value of 204 and 205 is undefined,
 * since they have no body.
 */
export type Answer<Value> =
  | { readonly ok: true; readonly response: Response; readonly value: Value }
  | { readonly ok: false; readonly response: Response }

const maxProblemBytes = 64 << 10

/**
 * Reads the body of a success. Refuses with BODY_TOO_LARGE and, where it is not JSON, BODY_MALFORMED; both say which
 * status the server answered with.
 */
export async function readBody<Value>(response: Response, how: Reader<Value>, maxBytes: number): Promise<Value> {
  if (typeof how === 'function') return how(response)
  if (how === 'json' && (response.status === 204 || response.status === 205)) return undefined as Value
  const { status } = response
  const bytes = await bytesOf(response.body, maxBytes, status)
  if (how === 'bytes') return bytes as Value
  const text = new TextDecoder().decode(bytes)
  if (how === 'text') return text as Value
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own message quotes the body.
    const message = `The server answered ${status}, so it most likely acted, but the body is not JSON.`
    throw new RepriseError('BODY_MALFORMED', message, { details: { status, bytes: bytes.length } })
  }
}

/**
 * The problem (RFC 9457) in a 409 or 503, or undefined where there is none that can be read. The answer itself stays
 * unread. Only for servers that are trusted to tell the truth about themselves.
 */
export async function problemIn(response: Response): Promise<HttpProblem | undefined> {
  const { status, headers } = response
  const isProblem = /^application\/problem\+json\s*(;|$)/i.test(headers.get('content-type') ?? '')
  if (!isProblem || (status !== 409 && status !== 503)) return undefined
  try {
    const problem = JSON.parse(new TextDecoder().decode(await bytesOf(response.clone().body, maxProblemBytes)))
    return typeof problem?.type === 'string' ? { type: problem.type, retryable: problem.retryable === true } : undefined
  } catch {
    return undefined
  }
}
