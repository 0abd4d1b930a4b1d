// Statements to a store's records that are tried again while there is time. Each of them is safe to repeat: a claim knows its token, a write its version.

import type { RecordLimits } from '../../atomicity/index.js'
import {
  type Clock,
  type Deadline,
  type ErrorCode,
  isRepriseError,
  type Random,
  RepriseError,
  remainingMs,
  sleep,
} from '../../kernel/index.js'
import { type Backoff, fullJitter } from '../../retry/index.js'

/** Where time and chance come from. */
export interface Surroundings {
  /** Time. */
  readonly clock: Clock
  /** Chance. */
  readonly random: Random
}

/** An answer of the store, and when the question was sent. */
export interface Answered<Answer> {
  /** What it said. */
  readonly answer: Answer
  /** Monotonic time before the statement was sent, in ms: whatever the store counted from its own clock began no earlier. */
  readonly sentAtMs: number
  /** Whether an earlier try failed: it may have happened all the same. */
  readonly repeated: boolean
}

const backoff: Backoff = /* @__PURE__ */ fullJitter({ baseMs: 20, capMs: 1_000 })

/** The longest that one statement may take, in ms, so that a store that does not answer is asked again before the deadline. */
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
  'TRANSACTION_NESTED',
])

/**
 * Asks the store until it answers, or the deadline has passed: then the last error is thrown, or DEADLINE_EXCEEDED where nothing was tried.
 *
 * @param onFailure Hears of each try that failed.
 */
export async function persistently<Answer>(
  { clock, random }: Surroundings,
  deadline: Deadline,
  statement: (limits: RecordLimits) => Promise<Answer>,
  onFailure?: (error: unknown) => void,
): Promise<Answered<Answer>> {
  let delayMs = 0
  for (let failures = 1; ; failures += 1) {
    const sentAtMs = clock.monotonicMs()
    if (sentAtMs >= deadline.expiresAtMs) throw outOfTime()
    try {
      const expiresAtMs = Math.min(deadline.expiresAtMs, sentAtMs + longestTryMs)
      return { answer: await statement({ deadline: { expiresAtMs } }), sentAtMs, repeated: failures > 1 }
    } catch (error) {
      onFailure?.(error)
      if (isRepriseError(error) && hopeless.has(error.code)) throw error
      delayMs = backoff.delayMs(failures, delayMs, random)
      if (delayMs >= remainingMs(deadline, clock)) throw error
    }
    await sleep(delayMs, { clock })
  }
}

function outOfTime(): RepriseError {
  return new RepriseError('DEADLINE_EXCEEDED', 'The deadline passed before the store could be asked.')
}
