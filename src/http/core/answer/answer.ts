// Answers: what a handler returns, or throws, and what leaves for the client.

import { RepriseError } from '../../../kernel/index.js'

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
  /** What it carries. */
  readonly body: AnswerBody
}

/**
 * An answer. An object, a list, a number or a boolean becomes JSON; text is `text/plain` and bytes are `application/octet-stream`, unless the fields say otherwise; undefined
 * and null carry nothing.
 */
export function reply(status: number, body?: unknown, headers: AnswerHeaders = {}): Answer {
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw new RepriseError('ARGUMENT_INVALID', 'The status of an answer is a whole number from 200 to 599.')
  }
  const fields: (readonly [string, string])[] = []
  for (const [name, given] of Object.entries(headers)) {
    if (given === undefined) continue
    for (const value of typeof given === 'string' ? [given] : given) fields.push([name.toLowerCase(), String(value)])
  }
  const { content, type } = contentOf(body)
  if (type !== undefined && !fields.some(([name]) => name === 'content-type')) fields.unshift(['content-type', type])
  const made: Answer & Made = { status, headers: fields, body: content, [madeByReply]: true }
  return made
}

// Known to every copy of the package, kept by a spread, and not by JSON.
const madeByReply: unique symbol = Symbol.for('reprise.answer')

interface Made {
  readonly [madeByReply]: true
}

function contentOf(body: unknown): { readonly content: AnswerBody; readonly type?: string } {
  if (body === undefined || body === null) return { content: null }
  if (typeof body === 'string') return { content: body, type: 'text/plain; charset=utf-8' }
  if (body instanceof Uint8Array) return { content: body, type: 'application/octet-stream' }
  if (body instanceof ReadableStream) return { content: body as ReadableStream<Uint8Array> }
  if (isAsyncIterable(body)) return { content: body }
  const text: unknown = JSON.stringify(body)
  if (typeof text !== 'string') throw new RepriseError('ARGUMENT_INVALID', 'The body of an answer cannot be JSON.')
  return { content: text, type: 'application/json; charset=utf-8' }
}

/** Whether a value yields its parts one after the other, asynchronously. */
export function isAsyncIterable(value: unknown): value is AsyncIterable<Uint8Array | string> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value
}

/** A problem that was made before the route was known whose addresses it is to have. */
export interface AnswerProblem {
  /** Its kind. */
  readonly name: string
  /** The same with a `type` that begins with these words. */
  readonly of: (base: string) => Answer
}

/**
 * An answer that is thrown: what the handler wrote is rolled back. One whose status is stored is then kept and replayed like one that was returned; any other leaves the
 * key free.
 */
export class AnswerError extends Error {
  override readonly name: string = 'AnswerError'
  /** The answer. */
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
  if (given instanceof Response) return fromResponse(given)
  if (isAnswered(given)) return given
  throw new RepriseError('ARGUMENT_INVALID', 'A handler returns what reply(…) makes, or a Response.')
}

function fromResponse(response: Response): Answer {
  if (response.bodyUsed) throw new RepriseError('ARGUMENT_INVALID', 'The Response was read already.')
  // 0: an opaque or an error Response, which no server can send.
  if (response.status < 200) throw new RepriseError('ARGUMENT_INVALID', 'The Response has no status that can be sent.')
  const headers = [...response.headers].map(([name, value]) => [name, value] as const)
  return { status: response.status, headers, body: response.body }
}
