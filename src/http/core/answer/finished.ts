// An answer that is ready to leave: its body in memory, or known to be too long to be kept.

import { isWellFormed, RepriseError } from '../../../kernel/index.js'
import { type Answer, type AnswerBody, isAsyncIterable } from './answer.js'

/** An answer that is ready to leave. */
export interface FinishedAnswer {
  /** The status. */
  readonly status: number
  /** Its fields in order, names in lower case; without Content-Length and Transfer-Encoding, which the adapter adds. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** The bytes, or a stream of them where they are too many to be held. A stream is read once; whoever does not read it ends it with `return`. */
  readonly body: Uint8Array | AsyncIterable<Uint8Array>
  /** The same bytes as text, where they were given as text: a server sends text together with the fields, in one write. Undefined: only `body` is known. */
  readonly text?: string
}

const empty = new Uint8Array(0)
const framing = new Set(['content-length', 'transfer-encoding', 'connection', 'keep-alive', 'trailer', 'upgrade'])
const token = /^[!#$%&'*+.^_`|~0-9a-z-]+$/
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/

/**
 * Reads the body of an answer, up to a limit; past it the rest stays a stream, which is not read before somebody sends it. Refuses with ARGUMENT_INVALID what could not be sent: after
 * the commit it would be too late.
 */
export function finish(answer: Answer, mostBytes: number): FinishedAnswer | Promise<FinishedAnswer> {
  const { status, body } = answer
  if (!Number.isInteger(status) || status < 200 || status > 599) throw unsendable('status is not from 200 to 599')
  if (!isBody(body)) throw unsendable('body is neither text nor bytes, nor a stream of them')
  if (!Array.isArray(answer.headers)) throw unsendable('fields are no list')
  const headers: (readonly [string, string])[] = []
  for (const field of answer.headers) {
    if (!isPair(field)) throw unsendable('fields are not all pairs of a name and a value')
    const [name, value] = field
    if (framing.has(name)) continue
    if (!token.test(name)) throw unsendable('field has a name that cannot be sent')
    if (!fieldValue.test(value)) throw unsendable('field has a value that cannot be sent')
    headers.push(field)
  }
  if (typeof body === 'string' && !isBodiless(status)) return textAnswer(status, headers, body)
  return held(status, headers, body, mostBytes)
}

// An answer may have been changed since reply() made it, or made by hand and thrown.
function isBody(body: unknown): body is AnswerBody {
  return body === null || typeof body === 'string' || body instanceof Uint8Array || isAsyncIterable(body)
}

function isPair(field: unknown): field is readonly [string, string] {
  return Array.isArray(field) && field.length === 2 && field.every((part) => typeof part === 'string')
}

/** An answer whose body is text. */
export function textAnswer(status: number, headers: FinishedAnswer['headers'], text: string): FinishedAnswer {
  const body = Buffer.from(text)
  // Half a pair of surrogates has no bytes of its own, so such a text is not what is sent.
  return isWellFormed(text) ? { status, headers, body, text } : { status, headers, body }
}

async function held(
  status: number,
  headers: FinishedAnswer['headers'],
  body: AnswerBody,
  mostBytes: number,
): Promise<FinishedAnswer> {
  if (isBodiless(status)) {
    await end(body)
    return { status, headers, body: empty }
  }
  return { status, headers, body: await bodyOf(body, mostBytes) }
}

/** Ends an answer that nobody is going to send: what a stream holds is let go. Never throws. */
export async function discard({ body }: Pick<FinishedAnswer, 'body'>): Promise<void> {
  await end(body)
}

async function bodyOf(body: AnswerBody, mostBytes: number): Promise<FinishedAnswer['body']> {
  if (body === null) return empty
  if (typeof body === 'string') return Buffer.from(body)
  if (body instanceof Uint8Array) return Uint8Array.from(body)
  const parts = body[Symbol.asyncIterator]() as AsyncIterator<unknown>
  const held: Uint8Array[] = []
  let size = 0
  for (;;) {
    const next = await parts.next()
    if (next.done) return held.length === 1 ? (held[0] as Uint8Array) : Buffer.concat(held)
    const part = await partOf(next.value, parts)
    held.push(part)
    size += part.length
    if (size > mostBytes) return new Rest(held, parts)
  }
}

async function partOf(part: unknown, parts: AsyncIterator<unknown>): Promise<Uint8Array> {
  if (part instanceof Uint8Array) return part
  if (typeof part === 'string') return Buffer.from(part)
  await quietly(parts)
  throw unsendable('body yields something other than bytes and text')
}

// Not a generator: one that was never begun does not hear of its end, and the stream behind it would stay open.
class Rest implements AsyncIterableIterator<Uint8Array> {
  readonly #held: Uint8Array[]
  readonly #parts: AsyncIterator<unknown>

  constructor(held: Uint8Array[], parts: AsyncIterator<unknown>) {
    this.#held = held
    this.#parts = parts
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    const held = this.#held.shift()
    if (held !== undefined) return { done: false, value: held }
    const next = await this.#parts.next()
    return next.done ? { done: true, value: undefined } : { done: false, value: await partOf(next.value, this.#parts) }
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    this.#held.length = 0
    await this.#parts.return?.()
    return { done: true, value: undefined }
  }
}

async function end(body: AnswerBody): Promise<void> {
  if (body === null || typeof body === 'string' || body instanceof Uint8Array) return
  try {
    await quietly(body[Symbol.asyncIterator]())
  } catch {
    // A stream that somebody else reads is theirs to end.
  }
}

async function quietly(parts: AsyncIterator<unknown>): Promise<void> {
  try {
    await parts.return?.()
  } catch {
    // Nobody waits for it any more.
  }
}

function unsendable(what: string): RepriseError {
  return new RepriseError('ARGUMENT_INVALID', `The answer of a handler cannot be sent: its ${what}.`)
}

/** Whether an answer with this status carries no body (RFC 9110, 6.4.1). */
export function isBodiless(status: number): boolean {
  return status === 204 || status === 205 || status === 304
}
