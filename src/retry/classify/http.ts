// What an HTTP answer says about the attempt: the status first, then what the server asks for in its headers.
//
// Shapes are recognised by their members, not by their class, so that a Response, and the errors of axios, got, ky,
// undici and generated SDKs are all understood.

import { readRetryAfter } from '../../identity/index.js'
import { type Clock, demandKnown, systemClock } from '../../kernel/index.js'
import type { Verdict } from '../verdict.js'
import { type Classifier, firstOf } from '../verdict.js'

/** What is known of an answer. */
export interface HttpFacts {
  /** The status code. */
  readonly status: number
  /** The value of a header; the name is lower-case. Several values are joined by a comma, as Headers does. */
  header(name: string): string | null
  /** Wall time in ms since 1970, to which a date in `Retry-After` is compared. */
  readonly nowMs: number
  /** The origin is declared to answer 408 and 503 only to requests that it has not begun to process. Default false. */
  readonly refusesBeforeProcessing?: boolean
  /**
   * The request carried a key that the origin is declared to honour: a 409 with `Retry-After`, or with the problem
   * `in-flight` of a Reprise server, says that another request with the key is at work. Default false.
   */
  readonly honoursKeys?: boolean
  /**
   * The problem (RFC 9457) in the body, already parsed. Give `retryable` only where the origin is known to be a Reprise
   * server: there, a 409 or 503 that says so was refused before the handler ran. Default: none.
   */
  readonly problem?: HttpProblem
}

/** The members of a problem that matter to a verdict. */
export interface HttpProblem {
  /** The kind of problem, a URI. Absent and `about:blank` mean nothing beyond the status (RFC 9457, 4.2.1). */
  readonly type?: string
  /** Whether the server expects a repeat to succeed. */
  readonly retryable?: boolean
}

/**
 * The verdict on an answer, or undefined for one that is no failure (below 400).
 *
 * | status | another try | happened |
 * |---|---|---|
 * | 421, 425, 429 | transient | no |
 * | 408, 503 | transient | maybe; no where the origin refuses before processing |
 * | 409 and 503 with a retryable problem of a Reprise server | transient | no |
 * | 409 in flight, where keys are honoured | transient | no |
 * | other 4xx up to 451 | permanent | no |
 * | 452 to 499: not registered, such as a proxy's 499 | permanent | maybe |
 * | 501, 505, 506, 508, 510, 511 | permanent | maybe |
 * | other 5xx: unknown ones count as 500 (RFC 9110, 15) | transient | maybe |
 *
 * A 409 or 412 says that *this* attempt changed nothing, and is marked as a conflict: after an earlier `maybe` it may
 * be the trace of our own success, which has to be compared with what was intended; a status cannot tell. One that says
 * that another request with the key is at work is no conflict, and marked as in flight.
 *
 * 429, 503 and 529 are marked as overload. `Retry-After` and `retry-after-ms` give the wait, the longer one if both are
 * there. `x-should-retry` and `stripe-should-retry`: `false` forbids a repeat, `true` makes it worthwhile; neither says
 * what happened. Malformed values are ignored.
 */
export function httpVerdict(facts: HttpFacts): Verdict | undefined {
  const verdict = statusVerdict(facts)
  const { status, problem, honoursKeys } = facts
  if (verdict === undefined || (status !== 409 && status !== 503)) return verdict
  const { conflict, ...rest } = verdict
  const { type = 'about:blank', retryable } = problem ?? {}
  const isTold = /[:/#]in-flight$/.test(type)
  const isAtWork = (isTold && retryable) || (honoursKeys && (isTold || rest.retryAfterMs !== undefined))
  const inFlight = status === 409 && isAtWork ? { inFlight: true } : undefined
  const isRefused = inFlight !== undefined || (retryable && type !== 'about:blank')
  return isRefused ? { ...rest, help: 'transient', happened: 'no', proof: 'refused', ...inFlight } : verdict
}

// What status and headers say, without the problem in the body and what is declared about the origin's keys.
function statusVerdict(facts: HttpFacts): Verdict | undefined {
  const { status } = facts
  if (!(status >= 400 && status <= 599)) return undefined
  const header = (name: string) => facts.header(name)
  const waitMs = Math.max(readRetryAfter(header('retry-after'), facts.nowMs) ?? -1, inMs(header('retry-after-ms')))
  const isEarly = status === 503 || status === 408 ? facts.refusesBeforeProcessing : status < 452
  const should = [header('x-should-retry'), header('stripe-should-retry')]
  return {
    help: should.includes('true') || transientStatus.test(`${status}`) ? 'transient' : 'permanent',
    happened: isEarly ? 'no' : 'maybe',
    why: `http-${status}`,
    ...(isEarly && { proof: 'refused' as const }),
    ...(waitMs >= 0 && { retryAfterMs: waitMs }),
    ...((status === 503 || status === 429 || status === 529) && { overload: true }),
    ...((status === 412 || status === 409) && { conflict: true }),
    ...(should.includes('false') && { doNotRepeat: true }),
  }
}

const transientStatus = /408|421|425|429|5(?!01|05|06|08|10|11)../

// Sent by Azure and by servers of generated SDKs. Rounded up, since a wait is never shortened.
function inMs(text: string | null): number {
  return /^\d+(\.\d+)?$/.test(text ?? '') ? Math.ceil(Number(text)) : -1
}

/** How answers are judged. */
export interface HttpClassifierOptions {
  /** What dates in `Retry-After` are compared with. Default {@link systemClock}. */
  readonly clock?: Clock
  /** Whether 408 and 503 are known to be answered before a request is processed. Default false. */
  readonly refusesBeforeProcessing?: boolean
}

/**
 * A classifier for a Response, and for errors that carry `status` or `statusCode` with `headers`, themselves or in
 * their `response`.
 */
export function httpClassifierFor(options: HttpClassifierOptions = {}): Classifier {
  demandKnown(options, ['clock', 'refusesBeforeProcessing'], 'options')
  const { clock = systemClock, refusesBeforeProcessing = false } = options
  return answersBy(clock, refusesBeforeProcessing)
}

/** {@link httpClassifierFor} with a clock of its own. */
export function answersBy(clock: Clock, refusesBeforeProcessing = false): Classifier {
  // firstOf answers undefined where this throws: for null, for a getter that throws, for a header that is no text.
  return firstOf((error) => {
    const outer = error as Answer
    const inner = outer.response
    // A word, or a fraction, is not a status.
    const status = [inner?.status, inner?.statusCode, outer.status, outer.statusCode].find(Number.isInteger) ?? 0
    const headers = inner?.headers ?? outer.headers ?? {}
    const header = (name: string): string | null => fieldOf(headers, name)
    return statusVerdict({ status, header, nowMs: clock.wallMs(), refusesBeforeProcessing })
  })
}

/** {@link httpClassifierFor} with its defaults. */
export const httpClassifier: Classifier = /* @__PURE__ */ answersBy(systemClock)

/** The members by which an answer is recognised. Anything may be missing or of another type. */
interface Answer {
  readonly status?: number
  readonly statusCode?: number
  readonly headers?: Readonly<Record<string, unknown>>
  readonly response?: Answer | null
}

/**
 * A field of an answer, or of an error or value that carries one in its `response`; null: there is none.
 *
 * @param name In lower case.
 */
export function answerField(value: unknown, name: string): string | null {
  try {
    const { headers, response } = Object(value) as Answer
    return fieldOf(response?.headers ?? headers ?? {}, name)
  } catch {
    // A value may throw when it is looked at: then it is no answer.
    return null
  }
}

// Headers and their imitations have `get`; Node's are a plain object, whose names may be written in any case.
function fieldOf(headers: Readonly<Record<string, unknown>>, name: string): string | null {
  const found =
    typeof headers['get'] === 'function'
      ? headers['get'](name)
      : Object.entries(headers).find(([field]) => field.toLowerCase() === name)?.[1]
  return found === undefined || found === null ? null : String(found)
}
