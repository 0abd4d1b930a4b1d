// Conditional requests for servers (RFC 9110, 13): the rung of compare-and-set, where a repeat after success finds a
// changed version and does nothing.

import { defined, sha256 } from '../../kernel/index.js'
import { type Answer, reply } from './answer/answer.js'
import { problem } from './problems.js'
import type { HttpRequest } from './request/http-request.js'

/** What is known of the resource that a request is about. */
export interface CurrentState {
  /** The strong entity tag of its present version, quoted; undefined: there is no such resource. */
  readonly etag: string | undefined
  /** Whether a request that changes something must name a version. Default true. */
  readonly required?: boolean
  /** What the `type` of problems begins with. Default as for routes. */
  readonly problems?: string
}

/**
 * Checks `If-Match` and `If-None-Match` against the present version, read in the same transaction in which the change
 * is made. Undefined: go on. Otherwise the answer: 412 where a version does not match, 428 where none is named and one
 * is required, 304 to a GET or HEAD of what the client has.
 */
export function checkPreconditions(request: HttpRequest, current: CurrentState): Answer | undefined {
  const { etag, required = true, problems } = current
  const base = defined({ base: problems })
  const tag = defined({ headers: etag === undefined ? undefined : { etag } })
  const [match, noneMatch] = [request.header('if-match'), request.header('if-none-match')]
  const isSafe = request.method === 'GET' || request.method === 'HEAD'
  if (match !== undefined && !names(match, etag, isSame)) return problem('precondition-failed', { ...base, ...tag })
  if (noneMatch !== undefined && names(noneMatch, etag, isAlike)) {
    return isSafe ? reply(304, null, { etag }) : problem('precondition-failed', { ...base, ...tag })
  }
  const isBare = match === undefined && noneMatch === undefined
  return isBare && required && !isSafe ? problem('precondition-required', base) : undefined
}

/** A strong entity tag for a version: a number or text that changes with every change, or the bytes themselves. */
export function entityTag(version: string | number | Uint8Array): string {
  const text = typeof version === 'number' ? String(version) : version
  return `"${sha256(text).slice('sha256:'.length)}"`
}

function names(field: string, etag: string | undefined, same: (left: string, right: string) => boolean): boolean {
  if (etag === undefined) return false
  if (field.trim() === '*') return true
  return [...field.matchAll(/(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g)].some(([tag]) => same(tag, etag))
}

// RFC 9110, 8.8.3.2: strong comparison, and weak.
function isSame(left: string, right: string): boolean {
  return left === right && !left.startsWith('W/')
}

function isAlike(left: string, right: string): boolean {
  return left.replace(/^W\//, '') === right.replace(/^W\//, '')
}
