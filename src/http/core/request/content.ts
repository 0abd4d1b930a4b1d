// What is bound to a key: method, path, query, media type and body, as one content to take a fingerprint of.

import type { Content, FieldRule } from '../../../identity/index.js'
import { canonicalJson, isRepriseError, sha256 } from '../../../kernel/index.js'
import type { HttpRequest } from './http-request.js'
import { readParts } from './multipart.js'

/**
 * The content of a request. A JSON body counts by its meaning (member order, whitespace and the spelling of numbers do
 * not), a multipart body by its parts (the boundary does not), any other by its bytes. The query counts by its decoded
 * pairs; only the order of pairs with different names does not.
 *
 * @param bytes The body: the request may be one without.
 */
export function requestContent(request: HttpRequest, bytes: Uint8Array): Content {
  const { method, path, search, mediaType } = request
  const query = search === '' ? '[]' : queryJson(search)
  const type = JSON.stringify(mediaType)
  const head = `"method":${JSON.stringify(method)},"path":${JSON.stringify(path)},"query":${query},"type":${type}`
  let body: string | undefined
  if (mediaType === 'application/json' || mediaType.endsWith('+json')) body = jsonMember(bytes, head.length)
  else if (mediaType.startsWith('multipart/'))
    body = partsMember(request.header('content-type') ?? '', bytes, head.length)
  return { json: `{${head},${body ?? `"bytes":${JSON.stringify(sha256(bytes))}`}}` }
}

/**
 * A rule on the fields of a JSON body, as a rule on the whole content. What is not JSON counts whole, and so does JSON
 * that is too large or too deep to be looked into.
 */
export function contentRule({ only, omit }: FieldRule): FieldRule {
  if (omit !== undefined) return { omit: Array.isArray(omit) ? omit.map((pointer) => `/json${pointer}`) : omit }
  if (only === undefined) return {}
  const always = ['/method', '/path', '/query', '/type', '/bytes', '/parts', '/digest']
  return { only: Array.isArray(only) ? [...always, ...only.map((pointer) => `/json${pointer}`)] : only }
}

// The limits of a fingerprint's JSON, less what stands around the body: the head, and one level.
const mostInlineBytes = 1_048_576 - 64
const mostInlineDepth = 127
const widest = { maxBytes: 67_108_864, maxDepth: 1_000 } as const

// Made canonical on its own first: spliced in as it is, a body could end the member that it is meant to be the value
// of. What does not fit counts as a digest of its canonical text.
function jsonMember(bytes: Uint8Array, headLength: number): string | undefined {
  const inline = canonical(bytes, mostInlineDepth)
  const whole = inline === 'too-deep' ? canonical(bytes, widest.maxDepth) : inline
  if (whole === undefined || whole === 'too-deep') return undefined
  return inline === whole ? member('json', whole, headLength) : digestOf(whole)
}

// Beside a head of so many characters, each of which may take three bytes.
function member(name: 'json' | 'parts', text: string, headLength: number): string {
  return Buffer.byteLength(text) + headLength * 3 <= mostInlineBytes ? `"${name}":${text}` : digestOf(text)
}

function digestOf(text: string): string {
  return `"digest":${JSON.stringify(sha256(text))}`
}

function canonical(bytes: Uint8Array, maxDepth: number): string | 'too-deep' | undefined {
  try {
    return canonicalJson(bytes, { ...widest, maxDepth })
  } catch (error) {
    if (isRepriseError(error)) return error.code === 'JSON_TOO_DEEP' ? 'too-deep' : undefined
    throw error
  }
}

// Bodies count by their digests, and their fields as they are: those can be long, too.
function partsMember(contentType: string, bytes: Uint8Array, headLength: number): string | undefined {
  const parts = readParts(contentType, bytes)?.map(({ headers, body }) => [headers, sha256(body)])
  return parts === undefined ? undefined : member('parts', JSON.stringify(parts), headLength)
}

function queryJson(search: string): string {
  const pairs: (readonly [name: string, value: string])[] = []
  for (const pair of search.split('&')) {
    if (pair === '') continue
    const end = pair.indexOf('=')
    const [name, value] = end < 0 ? [pair, ''] : [pair.slice(0, end), pair.slice(end + 1)]
    pairs.push([JSON.stringify(decoded(name)), JSON.stringify(decoded(value))])
  }
  pairs.sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0))
  return `[${pairs.map(([name, value]) => `[${name},${value}]`).join(',')}]`
}

// What is no escaped UTF-8 counts as it is spelled, marked by a list: decoded by halves, different bytes would look
// alike.
function decoded(part: string): string | readonly [string] {
  try {
    return decodeURIComponent(part.replaceAll('+', ' '))
  } catch {
    return [part]
  }
}
