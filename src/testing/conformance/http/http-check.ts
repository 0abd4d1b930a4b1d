// The checks of the HTTP cases. Their messages tell what was seen, but never a body or a key.

import { holds, same } from '../expectations.js'
import type { SubjectAnswer, SubjectUser } from './http-case-client.js'

/** The checks of a case. All of them throw a `ConformanceFailure`. */
export interface HttpCheck {
  /** The answer has this status, or one of these. */
  status(answer: SubjectAnswer, wanted: number | readonly number[], what: string): void
  /** The answer is a success, and does not say that it is a replay. */
  first(answer: SubjectAnswer, what: string): void
  /**
   * The answer has the status and the exact bytes of an earlier one. Whether it is marked as a replay is checked by
   * {@link marked}.
   */
  replay(answer: SubjectAnswer, earlier: SubjectAnswer, what: string): void
  /** The answer says `Idempotent-Replayed: true`. */
  marked(answer: SubjectAnswer, what: string): void
  /** The answer does not say that it is a replay. */
  unmarked(answer: SubjectAnswer, what: string): void
  /** A refusal as the draft requires: this status, and a problem (RFC 9457) with a type or a link that describes it. */
  problem(answer: SubjectAnswer, wanted: number | readonly number[], what: string): void
  /** A refusal that may be repeated says when: `Retry-After` of at least 1 second. */
  retryAfter(answer: SubjectAnswer, what: string): void
  effects(user: SubjectUser, wanted: number, what?: string): Promise<void>
  /** Both values are the same, compared as JSON. */
  same(actual: unknown, wanted: unknown, what: string): void
  holds(condition: boolean, what: string): void
}

const isMarked = (answer: SubjectAnswer): boolean => answer.header('Idempotent-Replayed')?.toLowerCase() === 'true'

const mark = ' marked as a replay'

/** An answer in words: its status, and the type of its problem. */
function describeAnswer(answer: SubjectAnswer): string {
  const type = (answer.json() as { readonly type?: unknown } | undefined)?.type
  const isProblem = answer.header('Content-Type')?.startsWith('application/problem+json') === true
  const kind = isProblem && typeof type === 'string' ? ` (${type.slice(0, 80)})` : ''
  return `${answer.status}${kind}${isMarked(answer) ? mark : ''}`
}

const isWanted = (status: number, wanted: number | readonly number[]): boolean =>
  typeof wanted === 'number' ? status === wanted : wanted.includes(status)

/** The checks that every case gets. */
export const httpCheck: HttpCheck = {
  status(answer, wanted, what) {
    const words = typeof wanted === 'number' ? String(wanted) : wanted.join(' or ')
    if (!isWanted(answer.status, wanted)) same(describeAnswer(answer), words, what)
  },
  first(answer, what) {
    if (answer.status < 200 || answer.status > 299) same(describeAnswer(answer), 'a success', what)
    httpCheck.unmarked(answer, what)
  },
  replay(answer, earlier, what) {
    if (answer.status !== earlier.status) same(describeAnswer(answer), describeAnswer(earlier), what)
    const seen = `${answer.body.length} bytes after ${earlier.body.length}`
    holds(answer.body.equals(earlier.body), `${what}: byte-identical (${seen})`)
  },
  marked(answer, what) {
    if (!isMarked(answer)) same(describeAnswer(answer), `${answer.status}${mark}`, what)
  },
  unmarked(answer, what) {
    if (isMarked(answer)) same(describeAnswer(answer), 'an answer without that mark', what)
  },
  problem(answer, wanted, what) {
    httpCheck.status(answer, wanted, what)
    const members = Object(answer.json()) as { readonly type?: unknown }
    const isProblem = answer.header('Content-Type')?.startsWith('application/problem+json') === true
    const isTyped =
      isProblem && typeof members.type === 'string' && members.type !== '' && members.type !== 'about:blank'
    const isLinked = /rel="?describedby/i.test(answer.header('Link') ?? '')
    holds(isTyped || isLinked, `${what}: problem+json with a type, or a link that describes it`)
  },
  retryAfter(answer, what) {
    const value = answer.header('Retry-After')
    holds(value !== undefined && /^[1-9]\d*$/.test(value), `${what}: Retry-After of at least 1 second`)
  },
  async effects(user, wanted, what = 'effects') {
    same(await user.effects(), wanted, what)
  },
  same,
  holds,
}
