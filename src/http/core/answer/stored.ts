// What is remembered of an answer: the status, the fields that may be repeated, and the bytes; or, where there are too many, that it was given.

import type { ValueCodec } from '../../../idempotency/index.js'
import { isPromiseLike, RepriseError } from '../../../kernel/index.js'
import { type FinishedAnswer, textAnswer } from './finished.js'

/** What is stored of an answer, as JSON. */
export interface StoredAnswer {
  /** The status. */
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
  'vary',
]

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

/** What is stored of an answer. One whose body is too large, or a stream, leaves a tombstone that still knows its status and where the resource is. */
export function store(answer: FinishedAnswer, fields: ReadonlySet<string>, mostBytes: number): StoredAnswer {
  const { status, body } = answer
  const headers = answer.headers.filter(([name]) => fields.has(name))
  if (!(body instanceof Uint8Array) || body.length > mostBytes) {
    return { status, headers: headers.filter(([name]) => name === 'location'), tombstone: true }
  }
  if (body.length === 0) return { status, headers, text: '' }
  const text = answer.text ?? utf8(body)
  // PostgreSQL cannot hold a zero in a text.
  return text === undefined || text.includes('\0')
    ? { status, headers, base64: base64(body) }
    : { status, headers, text }
}

/** The answer of what is stored. */
export function restore({ status, headers, text, base64: encoded }: StoredAnswer): FinishedAnswer {
  if (text !== undefined) return textAnswer(status, headers, text)
  return { status, headers, body: Buffer.from(encoded ?? '', 'base64') }
}

/**
 * Stores answers: the length of all but a body of text, that as JSON, and the text as it is. Most bodies are JSON, and JSON in JSON is a quarter longer and takes as long to write as the
 * rest of an answer.
 */
export const answerCodec: ValueCodec<StoredAnswer> = {
  name: 'http-answer-2',
  encode: ({ status, headers, text = '', base64: encoded, tombstone }) => {
    const head = JSON.stringify({ status, headers, base64: encoded, tombstone })
    return `${head.length}${head}${text}`
  },
  decode: (stored) => {
    const start = stored.indexOf('{')
    const end = start + Number(stored.slice(0, start))
    const head = JSON.parse(stored.slice(start, end)) as StoredAnswer
    const { status, headers } = head
    return head.base64 === undefined && !head.tombstone ? { status, headers, text: stored.slice(end) } : head
  },
}

/** The codecs of earlier versions, which are still read. */
export const earlierAnswerCodecs: readonly ValueCodec<StoredAnswer>[] = [
  {
    name: 'http-answer-1',
    encode: (answer) => JSON.stringify(answer),
    decode: (text) => JSON.parse(text) as StoredAnswer,
  },
]

/**
 * A codec of answers, for final failures too: an answer that was thrown is stored by the same codec as one that was returned, so that what encrypts or leaves things out does so for both. What
 * it decodes can be read as either, since what is stored does not say which it was.
 */
export function codecForBoth(codec: ValueCodec<StoredAnswer>): ValueCodec<StoredAnswer> {
  const { name, encode, decode } = Object(codec) as Partial<ValueCodec<StoredAnswer>>
  // What is no codec is refused with the operation.
  if (typeof encode !== 'function' || typeof decode !== 'function') return codec
  return {
    name: name as string,
    failures: true,
    encode: (value, context) => {
      const { data } = value as { readonly data?: StoredAnswer }
      return codec.encode(data ?? value, context)
    },
    // A promise only where the codec itself has one: waiting for it takes a timer.
    decode: (text, context) => {
      const answer = codec.decode(text, context)
      return isPromiseLike(answer) ? Promise.resolve(answer).then(either) : either(answer)
    },
  }
}

// Member by member: a spread of what JSON made takes as long as the JSON.
function either(answer: StoredAnswer): StoredAnswer {
  const { status, headers, text, base64, tombstone } = answer
  return { status, headers, text, base64, tombstone, code: 'answer', data: answer } as StoredAnswer
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function utf8(bytes: Uint8Array): string | undefined {
  try {
    return strict.decode(bytes)
  } catch {
    return undefined
  }
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}
