// What is remembered of an answer: the status, the fields that may be repeated, and the body; or, where that is too
// large, only that the answer was given.

import type { ValueCodec } from '../../../idempotency/index.js'
import { isPromiseLike, RepriseError } from '../../../kernel/index.js'
import { type Answer, discardBody } from './answer.js'

/** An answer as plain data, as codecs get it and give it back: anything in it can be JSON. */
export interface AnswerJson {
  readonly status: number
  /** The fields that are repeated, names in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** The body where it is text in UTF-8. */
  readonly text?: string
  /** The body where it is not, in base64. */
  readonly base64?: string
  /** True: the answer was too large to keep, or not to be kept. */
  readonly tombstone?: true
}

/**
 * Whether answers of a status are stored by default: 2xx and 3xx, which always are, and 4xx but for 401, 403, 408, 412,
 * 421, 423, 425, 428 and 429.
 */
export function storesStatus(status: number): boolean {
  return status >= 200 && status < 500 && !temporary.has(status)
}

const temporary = new Set([401, 403, 408, 412, 421, 423, 425, 428, 429])

/** The fields that are repeated by default. */
export const replayedFields: readonly string[] = [
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-location',
  'content-type',
  'etag',
  'last-modified',
  'link',
  'location',
  'reprise-accepted',
  'vary',
]

// Where the resource is, and that a number was accepted.
const ofTombstones = new Set(['location', 'reprise-accepted'])

const neverReplayed = new Set([
  'authentication-info',
  'authorization',
  'cache-control',
  'connection',
  'content-length',
  'date',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'set-cookie',
  'set-cookie2',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'www-authenticate',
])

const token = /^[!#$%&'*+.^_`|~0-9a-z-]+$/

/** The fields that a route repeats. Refuses what must never be repeated, such as Set-Cookie, with OPERATION_INVALID. */
export function fieldsToReplay(more: readonly string[]): ReadonlySet<string> {
  const names = Array.from(more, (name) => String(name).toLowerCase())
  if (names.some((name) => neverReplayed.has(name) || !token.test(name))) {
    const message =
      'The option replayHeaders names something that is no field, or one that is never repeated: cookies, credentials, and what belongs to one connection.'
    throw new RepriseError('OPERATION_INVALID', message, { details: { option: 'replayHeaders' } })
  }
  return new Set([...replayedFields, ...names])
}

/** How much of an answer is kept. */
export interface AnswerLimits {
  /** The fields that are repeated. */
  readonly replayed: ReadonlySet<string>
  /** The most bytes of a body that are kept. */
  readonly largestAnswer: number
}

/**
 * The codec of a route's operation, on top of one for plain data. It is faithful: the first caller gets the answer that
 * the handler gave, with every field and the whole body. An answer that was thrown is stored like one that was
 * returned, so that a codec that encrypts or leaves things out does so for both.
 */
export function answerCodec(codec: ValueCodec<AnswerJson>, limits: AnswerLimits): ValueCodec<Answer> {
  const { name, encode, decode } = Object(codec) as Partial<ValueCodec<AnswerJson>>
  // What is no codec is refused with the operation.
  if (typeof encode !== 'function' || typeof decode !== 'function') return codec as never
  return {
    name: name as string,
    failures: true,
    faithful: true,
    encode: (value, context) => codec.encode(toJson(value, limits), context),
    // A promise only where the codec itself has one: waiting for it takes a timer.
    decode: (text, context, state) => {
      const json = codec.decode(text, context, state)
      return isPromiseLike(json) ? Promise.resolve(json).then((known) => decoded(known, state)) : decoded(json, state)
    },
    discard: (value) => void discardBody((value as Partial<ThrownAnswer>).data ?? value),
  }
}

// How an operation hands a final failure to its codec, and wants it back.
interface ThrownAnswer {
  readonly code: string
  readonly data: Answer
}

function decoded(json: AnswerJson, state: 'succeeded' | 'failed' | undefined): Answer {
  const answer = fromJson(json)
  if (state !== 'failed') return answer
  const thrown: ThrownAnswer = { code: 'answer', data: answer }
  return thrown as unknown as Answer
}

/**
 * What is stored of an answer, returned or thrown. One whose body is too large, or a stream, leaves a tombstone that
 * still knows its status, where the resource is, and which number it used up. Plain data, as a person gives it who
 * settles an outcome, stays so.
 */
export function toJson(value: Answer, { replayed, largestAnswer }: AnswerLimits): AnswerJson {
  const answer = (value as Partial<ThrownAnswer>).data ?? value
  const { status, body } = answer
  if (body === undefined) return answer as AnswerJson
  const headers: (readonly [string, string])[] = []
  for (const field of answer.headers) if (replayed.has(field[0])) headers.push(field)
  if (body === null) return { status, headers, text: '' }
  const size = typeof body === 'string' ? Buffer.byteLength(body) : body instanceof Uint8Array ? body.length : Infinity
  if (size > largestAnswer) {
    return { status, headers: headers.filter(([name]) => ofTombstones.has(name)), tombstone: true }
  }
  const text = typeof body === 'string' ? body : utf8(body as Uint8Array)
  // PostgreSQL cannot hold a zero in a text.
  if (text !== undefined && !text.includes('\0')) return { status, headers, text }
  return { status, headers, base64: Buffer.from(body as string).toString('base64') }
}

/** The answer of what is stored. */
export function fromJson({ status, headers, text, base64, tombstone }: AnswerJson): Answer {
  if (tombstone) return { status, headers, body: null, tombstone }
  return { status, headers, body: text ?? Buffer.from(base64 ?? '', 'base64') }
}

/**
 * The codec of routes that have none of their own: status and fields as JSON, the length of that JSON before it, and a
 * body of text behind it as it is. Most bodies are JSON, and JSON inside JSON is a quarter longer and takes as long to
 * write as the rest of an answer.
 */
export const jsonAndBody: ValueCodec<AnswerJson> = {
  name: 'http-answer-2',
  encode: ({ status, headers, text = '', base64, tombstone }) => {
    const head = JSON.stringify({ status, headers, base64, tombstone })
    return `${head.length}${head}${text}`
  },
  decode: (stored) => {
    const start = stored.indexOf('{')
    const end = start + Number(stored.slice(0, start))
    const head = JSON.parse(stored.slice(start, end)) as AnswerJson
    const { status, headers } = head
    return head.base64 === undefined && !head.tombstone ? { status, headers, text: stored.slice(end) } : head
  },
}

/** The codecs of routes in earlier versions, which are still read. */
export const earlierAnswerCodecs: readonly ValueCodec<AnswerJson>[] = [
  {
    name: 'http-answer-1',
    encode: (answer) => JSON.stringify(answer),
    decode: (text) => JSON.parse(text) as AnswerJson,
  },
]

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function utf8(bytes: Uint8Array): string | undefined {
  try {
    return strict.decode(bytes)
  } catch {
    return undefined
  }
}
