// The facts of a request of `node:http` or `node:http2`, whatever framework it went through.

import type { IncomingMessage } from 'node:http'
import { isRepriseError, RepriseError } from '../../kernel/index.js'
import { limited, type RequestFacts, readNodeBody } from '../core/index.js'
import { addField } from './response-fields.js'

/** A request of Node: the parts that are read. */
export type NodeRequest = Pick<IncomingMessage, 'rawHeaders' | 'headers'> &
  IncomingMessage & {
    /** The bytes as a parser kept them. */
    readonly rawBody?: unknown
  }

/** What a parser kept of a body: its bytes, or its text. */
export type KeptBytes = string | Uint8Array | undefined

/** Where in a service a request arrived. */
export interface NodePlace {
  /** Path and query as they arrived, where a router changed `url`. */
  readonly target: string
  /** What the router found in the path. */
  readonly params?: Readonly<Record<string, unknown>> | undefined
  /** The bytes that a parser kept elsewhere than in `rawBody`. */
  readonly kept?: KeptBytes
  /** What to do where a parser was faster, in the words of the framework. */
  readonly advice?: string
}

/** The facts of a request of Node. Fields are taken as they arrived, one by one: `headers` joins what was sent twice. */
export function nodeFacts(request: NodeRequest, { target, params, kept, advice }: NodePlace): RequestFacts {
  const fields = fieldsOfRaw(request.rawHeaders)
  if (fields['content-encoding'] !== undefined) forgetEncoding(fields, kept ?? request.rawBody)
  return {
    method: request.method ?? 'GET',
    target,
    fields,
    ...(params === undefined ? {} : { params: textsOf(params) }),
    readBody(mostBytes) {
      if (kept !== undefined) return new Promise((resolve) => resolve(limited(Buffer.from(kept as string), mostBytes)))
      const reading = readNodeBody(request, mostBytes)
      return advice === undefined ? reading : reading.catch((error: unknown) => advised(error, advice))
    },
  }
}

function advised(error: unknown, advice: string): never {
  if (!isRepriseError(error, 'BODY_CONSUMED')) throw error
  throw new RepriseError('BODY_CONSUMED', `The body was read before the route could see its bytes. ${advice}`)
}

function fieldsOfRaw(raw: readonly string[]): Record<string, string[]> {
  const fields = Object.create(null) as Record<string, string[]>
  for (let place = 0; place + 1 < raw.length; place += 2)
    addField(fields, raw[place] as string, raw[place + 1] as string)
  return fields
}

// Parsers inflate what they read. The body in hand is not compressed any more then, and the fields must not say so; bytes as many as arrived are as they arrived.
function forgetEncoding(fields: Record<string, string[]>, kept: unknown): void {
  if (typeof kept !== 'string' && !(kept instanceof Uint8Array)) return
  if (Number(fields['content-length']?.[0]) === Buffer.byteLength(kept)) return
  delete fields['content-encoding']
  delete fields['content-length']
}

// Express gives the parts of a wildcard as a list.
function textsOf(params: Readonly<Record<string, unknown>>): Record<string, string> {
  const texts = Object.entries(params).filter(([, value]) => value !== undefined)
  return Object.fromEntries(
    texts.map(([name, value]) => [name, Array.isArray(value) ? value.join('/') : String(value)]),
  )
}
