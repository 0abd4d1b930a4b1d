// Statements to a store's records: tried again while there is time, and decided on again where the record changed in
// between. Each of them is safe to repeat: a claim knows its token, a write its version.

import type { RecordLimits, Seen, StoredRecord, Written } from '../../atomicity/index.js'
import {
  type Clock,
  type Deadline,
  defined,
  type ErrorCode,
  isRepriseError,
  type Random,
  RepriseError,
  remainingMs,
  sleep,
} from '../../kernel/index.js'
import { type Backoff, fullJitter } from '../../retry/index.js'

/** Where time and chance come from. */
export interface TimeAndChance {
  readonly clock: Clock
  readonly random: Random
}

/** An answer of the store, and when the question was sent. */
export interface StoreAnswer<Answer> {
  readonly answer: Answer
  /**
   * Monotonic time before the statement was sent, in ms: whatever the store counted from its own clock began no
   * earlier.
   */
  readonly sentAtMs: number
  /** Whether an earlier try failed: it may have happened all the same. */
  readonly repeated: boolean
}

const backoff: Backoff = /* @__PURE__ */ fullJitter({ baseMs: 20, capMs: 1_000 })

/**
 * The longest that one statement may take, in ms, so that a store that does not answer is asked again before the
 * deadline.
 */
const longestTryMs = 5_000

/** Another try would end in the same way. */
const hopeless: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'ARGUMENT_INVALID',
  'CAPABILITY_UNSUPPORTED',
  'MIGRATION_MISSING',
  'MIGRATION_NEWER',
  'POOLING_UNSUPPORTED',
  'RECORD_FORMAT_NEWER',
  'STATEMENT_UNSUPPORTED',
  'STORE_CLOSED',
  'STORE_FULL',
  'TRANSACTION_NESTED',
])

/** What a statement is given beyond its deadline. */
export interface StatementOptions {
  /** Hears of each try that failed. */
  readonly onFailure?: (error: unknown) => void
  /**
   * For a claim, under which nothing has begun: when its wait for a lock ends, in ms of monotonic time. It is then
   * given up before the deadline, with the store's own error, where the store was full or locked for as long as one
   * waits for it, and nothing can have been written. After a try of which that is not known it goes on: somebody has to
   * hear what became of it.
   */
  readonly lockUntilMs?: number
}

/**
 * Asks the store until it answers, or the deadline has passed: then the last error is thrown, or DEADLINE_EXCEEDED
 * where nothing was tried.
 */
export async function persistently<Answer>(
  { clock, random }: TimeAndChance,
  deadline: Deadline,
  statement: (limits: RecordLimits) => Promise<Answer>,
  { onFailure, lockUntilMs }: StatementOptions = {},
): Promise<StoreAnswer<Answer>> {
  let delayMs = 0
  let mayGiveUp = lockUntilMs !== undefined
  for (let failures = 1; ; failures += 1) {
    const sentAtMs = clock.monotonicMs()
    if (sentAtMs >= deadline.expiresAtMs) {
      throw new RepriseError('DEADLINE_EXCEEDED', 'The deadline passed before the store could be asked.')
    }
    const tryUntil = { expiresAtMs: Math.min(deadline.expiresAtMs, sentAtMs + longestTryMs) }
    const lockDeadline = mayGiveUp && lockUntilMs !== undefined ? { expiresAtMs: lockUntilMs } : undefined
    try {
      const answer = await statement(defined({ deadline: tryUntil, lockDeadline }))
      return { answer, sentAtMs, repeated: failures > 1 }
    } catch (error) {
      onFailure?.(error)
      if (isRepriseError(error) && hopeless.has(error.code)) throw error
      const unwritten = unwrittenIn(error)
      mayGiveUp &&= unwritten !== undefined
      if (mayGiveUp && unwritten === error) throw error
      delayMs = backoff.delayMs(failures, delayMs, random)
      if (delayMs >= remainingMs(deadline, clock)) throw mayGiveUp ? unwritten : error
    }
    await sleep(delayMs, { clock })
  }
}

/** Nothing was written: there was no connection, no turn or no lock to be had. */
const nothingWritten: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'COMMITS_UNANSWERED',
  'LOCK_TIMEOUT',
  'POOL_EXHAUSTED',
  'QUEUE_FULL',
])

// One try is cut before the store's own wait may be over. Then it says what it was waiting for.
function unwrittenIn(error: unknown): RepriseError | undefined {
  const inner = isRepriseError(error, 'DEADLINE_EXCEEDED') ? error.cause : error
  return isRepriseError(inner) && nothingWritten.has(inner.code) ? inner : undefined
}

/** Whether a statement that failed with this error certainly wrote nothing. Otherwise it may have. */
export function provesUnwritten(error: unknown): boolean {
  const inner = isRepriseError(error, 'DEADLINE_EXCEEDED') ? error.cause : error
  if (!isRepriseError(inner)) return false
  return nothingWritten.has(inner.code) || hopeless.has(inner.code) || neverSent.has(inner.code)
}

const neverSent: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['CONNECT_TIMEOUT', 'STORE_UNREACHABLE'])

/**
 * What follows from a record as it was seen: an end, or a statement. Where the statement wrote, `written` says what
 * that means; otherwise what it saw is decided on again.
 */
export type Step<Result> =
  | { readonly end: Result }
  | {
      readonly statement: (limits: RecordLimits) => Promise<Seen | Written>
      readonly written?: (record: StoredRecord | undefined, answered: StoreAnswer<Seen>) => Result
      readonly options?: StatementOptions
    }

/**
 * Decides on a record, step by step, until there is an end. Undefined: it changed between deciding and writing every
 * time.
 *
 * @param first The first step: a read, a write, or an end.
 * @param decideOn What follows from what a statement saw.
 */
export async function stepByStep<Result>(
  time: TimeAndChance,
  deadline: Deadline,
  first: Step<Result>,
  decideOn: (seen: StoreAnswer<Seen>) => Step<Result> | Promise<Step<Result>>,
  mostSteps: number = 9,
): Promise<Result | undefined> {
  let step = first
  for (let steps = 0; steps < mostSteps; steps += 1) {
    if ('end' in step) return step.end
    const { statement, written, options } = step
    const answered = await persistently(time, deadline, statement, options)
    const { answer } = answered
    if (written !== undefined && 'written' in answer && answer.written) return written(answer.record, answered)
    step = await decideOn(answered)
  }
  return 'end' in step ? step.end : undefined
}
