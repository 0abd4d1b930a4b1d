// What is bound to a key: method, path, query, media type and body, as one content to take a fingerprint of.

import type { Content, FieldRule } from '../../../identity/index.js'
import { canonicalJson, isRepriseError, sha256 } from '../../../kernel/index.js'
import type { HttpRequest } from './http-request.js'
import { readParts } from './multipart.js'

/**
 * The content of a request. A JSON body counts by its meaning (member order, whitespace and the spelling of numbers do not), a multipart body by its parts (the boundary
 * does not), any other by its bytes. The query counts by its decoded pairs; only the order of pairs with different names does not.
 */
export function contentOf(request: HttpRequest, bytes: Uint8Array): Content {
  const { method, path, search, mediaType } = request
  const head = `"method":${text(method)},"path":${text(path)},"query":${queryOf(search)},"type":${text(mediaType)}`
  return { json: `{${head},${bodyOf(request, mediaType, bytes, head.length)}}` }
}

/** A rule on the fields of a JSON body, as a rule on the whole content. What is not JSON counts whole, and so does JSON too large or too deep to be looked into. */
export function ruleOf({ only, omit }: FieldRule): FieldRule {
  if (omit !== undefined) return { omit: Array.isArray(omit) ? omit.map((pointer) => `/json${pointer}`) : omit }
  if (only === undefined) return {}
  const always = ['/method', '/path', '/query', '/type', '/bytes', '/parts', '/digest']
  return { only: Array.isArray(only) ? [...always, ...only.map((pointer) => `/json${pointer}`)] : only }
}

function bodyOf(request: HttpRequest, mediaType: string, bytes: Uint8Array, headLength: number): string {
  if (mediaType === 'application/json' || mediaType.endsWith('+json')) {
    const json = jsonOf(bytes, headLength)
    if (json !== undefined) return json
  }
  if (mediaType.startsWith('multipart/')) {
    const parts = readParts(request.header('content-type') ?? '', bytes)
    if (parts !== undefined) {
      return `"parts":${JSON.stringify(parts.map(({ headers, body }) => [headers, sha256(body)]))}`
    }
  }
  return `"bytes":${text(sha256(bytes))}`
}

// The limits of a fingerprint's JSON, less what stands around the body: room for the head, and one level.
const mostInlineBytes = 1_048_576 - 64
const mostInlineDepth = 127
const widest = { maxBytes: 67_108_864, maxDepth: 1_000 } as const

// Made canonical on its own first: spliced in as it is, a body could end the member that it is meant to be the value of. What does not fit counts as a digest of its canonical text.
function jsonOf(bytes: Uint8Array, headLength: number): string | undefined {
  const inline = canonicalOf(bytes, mostInlineDepth)
  const canonical = inline === 'too-deep' ? canonicalOf(bytes, widest.maxDepth) : inline
  if (canonical === undefined || canonical === 'too-deep') return undefined
  const isInline = inline === canonical && Buffer.byteLength(canonical) + headLength * 3 <= mostInlineBytes
  return isInline ? `"json":${canonical}` : `"digest":${text(sha256(canonical))}`
}

function canonicalOf(bytes: Uint8Array, maxDepth: number): string | 'too-deep' | undefined {
  try {
    return canonicalJson(bytes, { ...widest, maxDepth })
  } catch (error) {
    if (isRepriseError(error)) return error.code === 'JSON_TOO_DEEP' ? 'too-deep' : undefined
    throw error
  }
}

function queryOf(search: string): string {
  const pairs = search
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const end = pair.indexOf('=')
      return end < 0 ? [decoded(pair), ''] : [decoded(pair.slice(0, end)), decoded(pair.slice(end + 1))]
    })
    .map(([name, value]) => [JSON.stringify(name), JSON.stringify(value)] as const)
  pairs.sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0))
  return `[${pairs.map(([name, value]) => `[${name},${value}]`).join(',')}]`
}

// What no UTF-8 stands behind counts as it is spelled, marked by a list: decoded by halves, different bytes would look alike.
function decoded(part: string): string | readonly [string] {
  try {
    return decodeURIComponent(part.replaceAll('+', ' '))
  } catch {
    return [part]
  }
}

function text(value: string): string {
  return JSON.stringify(value)
}
