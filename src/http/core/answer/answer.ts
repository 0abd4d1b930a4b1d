// Answers: what a handler returns or throws. One shape all the way: it is stored, sent, and what a repeat gets.

import { acceptedHeader } from '../../../identity/index.js'
import { isWellFormed, RepriseError } from '../../../kernel/index.js'

/** What an answer may carry: text, bytes, a stream of them, or nothing. */
export type AnswerBody = string | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array | string> | null

/** Fields of an answer. Several values of one field as a list. */
export type AnswerHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

/** An answer, as {@link reply} makes it. */
export interface Answer {
  /** The status, 200 to 599. */
  readonly status: number
  /** Its fields in order, names in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** What it carries. A stream is read once; whoever does not read it ends it with `return`. */
  readonly body: AnswerBody
  /** True: the answer was given once, and was too large to keep. This is what is remembered of it. */
  readonly tombstone?: true
}

/**
 * An answer. An object, a list, a number or a boolean becomes JSON; text is `text/plain` and bytes are
 * `application/octet-stream`, unless the fields say otherwise; undefined and null carry nothing.
 *
 * @example
 * ```ts
 * import { reply } from 'reprise/http/core'
 *
 * const created = reply(201, { id: 'p-1' }, { location: '/payments/p-1' })
 * console.log(created.status, created.body)
 * ```
 * ```text
 * 201 {"id":"p-1"}
 * ```
 */
export function reply(status: number, body?: unknown, headers: AnswerHeaders = {}): Answer {
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw new RepriseError('ARGUMENT_INVALID', 'The status of an answer is a whole number from 200 to 599.')
  }
  const fields: (readonly [string, string])[] = []
  let hasType = false
  for (const [name, given] of Object.entries(headers)) {
    if (given === undefined) continue
    const lower = name.toLowerCase()
    hasType ||= lower === 'content-type'
    for (const value of typeof given === 'string' ? [given] : given) fields.push([lower, String(value)])
  }
  let carried: AnswerBody = null
  let type: string | undefined
  if (typeof body === 'string') {
    carried = body
    type = 'text/plain; charset=utf-8'
  } else if (body instanceof Uint8Array) {
    carried = body
    type = 'application/octet-stream'
  } else if (typeof body === 'object' && body !== null && Symbol.asyncIterator in body) {
    carried = body as AsyncIterable<Uint8Array | string>
  } else if (body !== undefined && body !== null) {
    const text: unknown = JSON.stringify(body)
    if (typeof text !== 'string') throw new RepriseError('ARGUMENT_INVALID', 'The body of an answer cannot be JSON.')
    carried = text
    type = 'application/json; charset=utf-8'
  }
  if (type !== undefined && !hasType) fields.unshift(['content-type', type])
  const made: Answer & Made = { status, headers: fields, body: carried, [madeByReply]: true }
  return made
}

// Known to every copy of the package, kept by a spread, and not by JSON.
const madeByReply: unique symbol = Symbol.for('reprise.answer')

interface Made {
  readonly [madeByReply]: true
}

/** A problem that was thrown before it was known which route answers with it, and so in which shape. */
export interface AnswerProblem {
  readonly name: 'request-invalid'
  readonly status: number
  readonly detail: string
  /** What is wrong with the parts of the request, where that is known. */
  readonly errors?: readonly ProblemError[]
}

/** What is wrong with one part of a request, as in the example of RFC 9457, 3. */
export interface ProblemError {
  /** What is wrong. */
  readonly detail: string
  /** Where, as a JSON Pointer in a fragment, such as `#/amount`; `#` is the whole body. */
  readonly pointer: string
}

/**
 * An answer that is thrown: what the handler wrote is rolled back. One whose status is stored is then kept and
 * replayed like one that was returned; any other leaves the key free.
 *
 * @example
 * ```ts
 * import { AnswerError, reply } from 'reprise/http/core'
 *
 * function demandFunds(balance: number, amount: number): void {
 *   if (balance < amount) throw new AnswerError(reply(402, { reason: 'not enough money' }))
 * }
 * ```
 */
export class AnswerError extends Error {
  override readonly name: string = 'AnswerError'
  readonly answer: Answer
  /** Whether it is stored. Undefined: as the route says for its status. */
  readonly kept: boolean | undefined
  /** The problem that it is. Undefined: it is none of ours. */
  readonly problem: AnswerProblem | undefined

  constructor(
    answer: Answer,
    options: {
      readonly kept?: boolean
      readonly cause?: unknown
      readonly problem?: AnswerProblem
    } = {},
  ) {
    super(
      `The handler ended with an answer of status ${answer.status}.`,
      'cause' in options ? { cause: options.cause } : {},
    )
    this.answer = answer
    this.kept = options.kept
    this.problem = options.problem
  }
}

/** What a handler may return: an answer made by {@link reply}, or a `Response` of the fetch standard. */
export type Answered = Answer | Response

/** Whether a value is an answer, and not something that only has parts with the same names. */
export function isAnswered(value: unknown): value is Answered {
  return value instanceof Response || (Object(value) as Partial<Made>)[madeByReply] === true
}

/** An answer from what a handler returned. Refuses anything else with ARGUMENT_INVALID. */
export function answerOf(given: Answered): Answer {
  if ((Object(given) as Partial<Made>)[madeByReply] === true) return given as Answer
  if (!(given instanceof Response)) {
    throw new RepriseError('ARGUMENT_INVALID', 'A handler returns what reply(…) makes, or a Response.')
  }
  if (given.bodyUsed) throw new RepriseError('ARGUMENT_INVALID', 'The Response was read already.')
  // 0: an opaque or an error Response, which no server can send.
  if (given.status < 200) throw new RepriseError('ARGUMENT_INVALID', 'The Response has no status that can be sent.')
  return { status: given.status, headers: [...given.headers], body: given.body }
}

const accepted = acceptedHeader.name.toLowerCase()

/**
 * An answer whose transaction was rolled back: without the field that says that a number was accepted, since that was
 * rolled back too.
 */
export function rolledBack(answer: Answer): Answer {
  if (!answer.headers.some(([name]) => name === accepted)) return answer
  return { ...answer, headers: answer.headers.filter(([name]) => name !== accepted) }
}

const framing = new Set(['content-length', 'transfer-encoding', 'connection', 'keep-alive', 'trailer', 'upgrade'])
const token = /^[!#$%&'*+.^_`|~0-9a-z-]+$/
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/

/**
 * Makes an answer ready to be stored and sent: its fields without those that frame a message, which the adapter adds,
 * and its body in memory. Past the limit the body stays a stream, whose rest is not read before somebody sends it.
 * Refuses with ARGUMENT_INVALID what could not be sent: after the commit it would be too late.
 */
export function finish(answer: Answer, mostBytes: number): Answer | Promise<Answer> {
  const { status, body } = answer
  if (!Number.isInteger(status) || status < 200 || status > 599) throw unsendable('status is not from 200 to 599')
  // An answer may have been changed since reply() made it, or made by hand and thrown.
  if (!Array.isArray(answer.headers)) throw unsendable('fields are no list')
  const headers: (readonly [string, string])[] = []
  for (const field of answer.headers as readonly unknown[]) {
    if (!Array.isArray(field) || field.length !== 2) throw unsendable('fields are not all pairs of a name and a value')
    const [name, value] = field as [unknown, unknown]
    if (typeof name !== 'string' || typeof value !== 'string') throw unsendable('fields are not all text')
    if (framing.has(name)) continue
    if (!token.test(name)) throw unsendable('field has a name that cannot be sent')
    if (!fieldValue.test(value)) throw unsendable('field has a value that cannot be sent')
    headers.push(field as [string, string])
  }
  if (typeof body === 'string') {
    if (isBodiless(status)) return { status, headers, body: null }
    // Half a pair of surrogates has no bytes of its own, so such a text is not what is sent.
    return { status, headers, body: isWellFormed(body) ? body : Buffer.from(body).toString() }
  }
  if (body === null) return { status, headers, body }
  if (body instanceof Uint8Array) return { status, headers, body: isBodiless(status) ? null : Uint8Array.from(body) }
  if (typeof body !== 'object' || !(Symbol.asyncIterator in body)) {
    throw unsendable('body is neither text nor bytes, nor a stream of them')
  }
  return finishStream({ status, headers, body }, body, mostBytes)
}

async function finishStream(
  answer: Answer,
  stream: AsyncIterable<Uint8Array | string>,
  mostBytes: number,
): Promise<Answer> {
  if (isBodiless(answer.status)) {
    await discardBody(answer)
    return { ...answer, body: null }
  }
  const parts = stream[Symbol.asyncIterator]() as AsyncIterator<unknown>
  const held: Uint8Array[] = []
  let size = 0
  for (;;) {
    const next = await parts.next()
    if (next.done) return { ...answer, body: held.length === 1 ? (held[0] as Uint8Array) : Buffer.concat(held) }
    const part = await bytesOf(next.value, parts)
    held.push(part)
    size += part.length
    if (size > mostBytes) return { ...answer, body: new Rest(held, parts) }
  }
}

async function bytesOf(part: unknown, parts: AsyncIterator<unknown>): Promise<Uint8Array> {
  if (part instanceof Uint8Array) return part
  if (typeof part === 'string') return Buffer.from(part)
  await discardBody({ body: { [Symbol.asyncIterator]: () => parts as AsyncIterator<Uint8Array> } })
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
    return next.done ? { done: true, value: undefined } : { done: false, value: await bytesOf(next.value, this.#parts) }
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    this.#held.length = 0
    await this.#parts.return?.()
    return { done: true, value: undefined }
  }
}

/** Ends an answer that nobody is going to send: what a stream holds is let go. Never throws. */
export async function discardBody({ body }: Pick<Answer, 'body'>): Promise<void> {
  if (body === null || typeof body === 'string' || body instanceof Uint8Array) return
  try {
    await body[Symbol.asyncIterator]().return?.()
  } catch {
    // A stream that somebody else reads is theirs to end, and nobody waits for this one any more.
  }
}

function unsendable(what: string): RepriseError {
  return new RepriseError('ARGUMENT_INVALID', `The answer of a handler cannot be sent: its ${what}.`)
}

/** Whether an answer with this status carries no body (RFC 9110, 6.4.1). */
export function isBodiless(status: number): boolean {
  return status === 204 || status === 205 || status === 304
}
