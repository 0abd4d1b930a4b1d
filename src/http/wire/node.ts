// Requests of `node:http` or `node:http2` as facts, whatever framework they went through, and answers on their
// responses.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { currentIntent } from '../../identity/index.js'
import { canonicalJsonOf, isRepriseError, RepriseError, waitFor } from '../../kernel/index.js'
import { openTransaction } from '../../transaction/index.js'
import {
  type Answer,
  discardBody,
  invalid,
  isBodiless,
  limited,
  peekNodeBody,
  type RequestFacts,
  readNodeBody,
} from '../core/index.js'
import { fieldsOf, setFields } from './fields.js'

/** A request of Node: the parts that are read. */
export type NodeRequest = Pick<IncomingMessage, 'rawHeaders' | 'headers'> &
  IncomingMessage & {
    /** The bytes as a parser kept them. */
    readonly rawBody?: unknown
  }

/** What a parser kept of a body: its bytes, or its text. */
export type KeptBytes = string | Uint8Array | undefined

/** What a framework knows of a request beside what Node does. */
export interface FrameworkFacts {
  /** Path and query as they arrived, where a router changed `url`. */
  readonly target: string
  /** What the router found in the path. */
  readonly params?: Readonly<Record<string, unknown>> | undefined
  /** The bytes that a parser kept elsewhere than in `rawBody`. */
  readonly kept?: KeptBytes
  /** What a parser made of the body. */
  readonly parsed?: unknown
  /** What to do where a parser was faster, in the words of the framework. */
  readonly advice?: string
}

/**
 * The facts of a request of Node. Fields are taken as they arrived, one by one: `headers` joins what was sent twice.
 */
export function nodeFacts(request: NodeRequest, { target, params, kept, advice }: FrameworkFacts): RequestFacts {
  const fields = fieldsOf(request.rawHeaders)
  if (fields['content-encoding'] !== undefined) forgetEncoding(fields, kept ?? request.rawBody)
  return {
    method: request.method ?? 'GET',
    target,
    fields,
    params: params === undefined ? undefined : textParams(params),
    async readBody(mostBytes) {
      if (kept !== undefined) return limited(Buffer.from(kept as string), mostBytes)
      return readNodeBody(request, mostBytes, advice)
    },
  }
}

/**
 * The facts of a request whose handler reads the body by itself, behind the route. Bytes that nobody has read are read
 * and put back. Of what a parser before the route made of a body, where it kept no bytes, text and bytes count as they
 * are, and JSON and a form by their value; what has no canonical value is refused with 400.
 */
export function parsedFacts(request: NodeRequest, known: FrameworkFacts): RequestFacts {
  const facts = nodeFacts(request, known)
  const { parsed, kept = request.rawBody, advice } = known
  const fields = facts.fields as Record<string, string[]>
  return {
    ...facts,
    async readBody(mostBytes) {
      if (known.kept !== undefined) return facts.readBody(mostBytes)
      const isParsed = kept === undefined && request.readableDidRead && parsed !== undefined
      const isByValue = countsByValue(request)
      if (isParsed && (parsed instanceof Uint8Array || (typeof parsed === 'string' && !isByValue))) {
        forgetEncoding(fields, parsed)
        return limited(Buffer.from(parsed as string), mostBytes)
      }
      if (!isParsed || !isByValue) return peekNodeBody(request, mostBytes, advice)
      // The bytes that were sent count, where it is known how many: 1e20 is longer as a canonical value.
      const isPlain = fields['content-encoding'] === undefined
      const sentBytes = isPlain ? Number(fields['content-length']?.[0]) : Number.NaN
      if (sentBytes > mostBytes) throw tooLarge(mostBytes)
      forgetEncoding(fields, '')
      return Buffer.from(canonicalOf(parsed, sentBytes <= mostBytes ? widestBytes : mostBytes))
    },
  }
}

const widestBytes = 67_108_864

function canonicalOf(parsed: unknown, mostBytes: number): string {
  try {
    return canonicalJsonOf(parsed, { maxBytes: mostBytes, maxDepth: 1_000 })
  } catch (error) {
    if (isRepriseError(error, 'JSON_TOO_LARGE')) throw tooLarge(mostBytes)
    if (!isRepriseError(error)) throw error
    const why = error.code === 'JSON_TOO_DEEP' ? 'It is nested more than 1,000 levels deep.' : notJson
    throw invalid(400, `The body cannot be compared by its value. ${why} Nothing was carried out.`)
  }
}

const notJson = 'It holds half of a surrogate pair, or a number or another value that JSON cannot express.'

function tooLarge(limit: number): RepriseError {
  return new RepriseError('BODY_TOO_LARGE', `The body has more than ${limit} bytes.`, { details: { limit } })
}

// Of a body in parts the files are elsewhere, and would not count.
function countsByValue({ headers }: NodeRequest): boolean {
  return /^(?:application\/(?:x-www-form-urlencoded|json)|[^;]*\+json)\s*(?:;|$)/i.test(headers['content-type'] ?? '')
}

// Parsers inflate what they read. The body in hand is not compressed any more then, and the fields must not say so;
// bytes as many as arrived are as they arrived.
function forgetEncoding(fields: Record<string, string[]>, kept: unknown): void {
  if (typeof kept !== 'string' && !(kept instanceof Uint8Array)) return
  if (Number(fields['content-length']?.[0]) === Buffer.byteLength(kept)) return
  delete fields['content-encoding']
  delete fields['content-length']
}

function textParams(params: Readonly<Record<string, unknown>>): Record<string, string> {
  const texts: Record<string, string> = {}
  for (const [name, value] of Object.entries(params)) {
    // Express gives the parts of a wildcard as a list.
    if (value !== undefined) texts[name] = Array.isArray(value) ? value.join('/') : String(value)
  }
  return texts
}

/**
 * Finds the answer of a request while its response is held: a handler that writes to the response itself is refused
 * before anything leaves, since its answer would be out before COMMIT, and would stay out if that fails. Others may
 * write meanwhile, such as a middleware whose own time-out answers in place of the route.
 *
 * @param refusal The error that it is refused with. Default: ANSWER_NOT_RETURNED.
 */
export async function held(
  response: ServerResponse,
  answer: () => Promise<Answer>,
  refusal: () => RepriseError = notReturned,
): Promise<Answer> {
  // Whatever is written first goes through it: write, end and flushHeaders call it.
  const { writeHead } = response
  response.writeHead = (...given: unknown[]) => {
    refuseInHandler(response, refusal)
    return writeHead.apply(response, given as never)
  }
  try {
    return await answer()
  } finally {
    response.writeHead = writeHead
  }
}

function refuseInHandler(response: ServerResponse, refusal: () => RepriseError): void {
  if (openTransaction() === undefined && currentIntent()?.key === undefined) return
  // They belong to the body that does not leave.
  for (const field of ['content-length', 'etag']) response.removeHeader(field)
  throw refusal()
}

function notReturned(): RepriseError {
  const message =
    'The handler wrote to the response itself. It returns its answer, such as reply(201, order), which is sent after COMMIT.'
  return new RepriseError('ANSWER_NOT_RETURNED', message)
}

/**
 * Sends an answer on a response of Node: after the fields that others have set, and at the pace of the client. That the
 * client has gone is no error. Rejects where the body fails halfway, with the connection cut, so that nobody takes a
 * part for the whole.
 */
export async function sendToNode(response: ServerResponse, answer: Answer): Promise<void> {
  const { status, body } = answer
  if (isGone(response)) return discardBody(answer)
  response.statusCode = status
  setFields(response, answer)
  if (isBodiless(status) || response.req?.method === 'HEAD') {
    response.end()
    return discardBody(answer)
  }
  if (body === null || typeof body === 'string' || body instanceof Uint8Array) {
    // Given with the end, all of it leaves in one write to the socket: Node holds the fields back until then.
    if (body === null || body.length === 0) response.end()
    else response.end(body)
    return
  }
  try {
    for await (const part of body) {
      if (isGone(response)) return
      if (!response.write(part)) await isDrained(response)
    }
  } catch (error) {
    response.destroy()
    throw error
  }
  response.end()
}

function isGone(response: ServerResponse): boolean {
  return response.destroyed || response.writableEnded || response.closed
}

async function isDrained(response: ServerResponse): Promise<void> {
  if (isGone(response)) return
  await waitFor<void>({}, (resolve) => {
    const done = (): void => void resolve()
    response.on('drain', done).on('close', done)
    return () => void response.off('drain', done).off('close', done)
  })
}
