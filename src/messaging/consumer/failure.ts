// What it means that the transaction of a handler failed: whether it is the message's fault, the store's, or nobody's.

import { isRepriseError, keepableText } from '../../kernel/index.js'
import { type Classifier, unclassified, type Verdict } from '../../retry/index.js'
import { transactionHistoryOf, UnknownCommitError } from '../../transaction/index.js'
import type { Ending } from './machine.js'

/** Thrown in a handler's transaction to roll it back: the lane has another owner. */
export class Fenced extends Error {
  override readonly name = 'Fenced'

  constructor() {
    super('The lane has another owner by now.')
  }
}

/** Thrown in place of a verdict that a handler returned, so that its transaction is rolled back. */
export class Judged extends Error {
  override readonly name = 'Judged'
  readonly verdict: Verdict

  constructor(verdict: Verdict) {
    super(`The handler said ${verdict.help}: ${verdict.why}.`)
    this.verdict = verdict
  }
}

/** How far a transaction had come. */
export interface HandlerProgress {
  /** Whether the transaction had begun. */
  begun: boolean
  /** Whether the handler was called. */
  called: boolean
  /** What it threw, in the attempt that was the last. */
  threw: { readonly error: unknown } | undefined
}

/**
 * How a message's handling ended, by the error of its transaction.
 *
 * @param signal Aborted: the lane is not ours any more.
 */
export function endingOf(
  error: unknown,
  progress: HandlerProgress,
  classify: Classifier,
  signal: AbortSignal | undefined,
): Exclude<Ending, { readonly is: 'committed' | 'dead' }> {
  if (error instanceof Fenced || signal?.aborted === true) return { is: 'fenced' }
  if (error instanceof UnknownCommitError) return { is: 'away' }
  const last = transactionHistoryOf(error)?.attempts.at(-1)
  // A primitive has no history: only a handler throws those.
  if (last === undefined || last.ruling.sign === 'body-threw') {
    return progress.threw === undefined ? { is: 'away' } : failed(progress.threw.error, classify)
  }
  const { phase, ruling } = last
  // A full disk, a wrong password, a server that only reads: no message is to blame.
  if (phase === 'waiting' || phase === 'connecting' || ruling.alarm) return { is: 'away' }
  if (!progress.called) {
    if (!progress.begun || ruling.connection === 'discard') return { is: 'away' }
    if (ruling.help === 'transient' || isLimit(error)) return { is: 'busy' }
    // What was to be written about the message: another time the store says the same.
    return { is: 'refused', code: wordOf(ruling.sign, error), reason: reasonOf(error) }
  }
  if (ruling.help === 'transient' && ruling.connection === 'discard') {
    return { is: 'lost', code: wordOf(ruling.sign, error), reason: reasonOf(error) }
  }
  return failed(error, classify)
}

// A machine that stood still says nothing about the message that was to be looked up then.
function isLimit(error: unknown): boolean {
  return isRepriseError(error, 'DEADLINE_EXCEEDED') || isRepriseError(error, 'BODY_TIME_LIMIT')
}

/** A handler that failed, and what its error means. */
export function failed(error: unknown, classify: Classifier): Ending & { readonly is: 'failed' } {
  const verdict = error instanceof Judged ? error.verdict : (classify(error) ?? unclassified)
  return { is: 'failed', verdict, code: codeOf(error, verdict), reason: reasonOf(error), spared: false }
}

const soundWord = /^[A-Za-z0-9][\w.-]{0,99}$/

// The word that dead letters are grouped by: what the classifier called it, else what the error is called.
function codeOf(error: unknown, { why }: Verdict): string {
  if (why !== unclassified.why && soundWord.test(why)) return why
  try {
    const { code, name } = Object(error) as { readonly code?: unknown; readonly name?: unknown }
    if (typeof code === 'string' && soundWord.test(code)) return code
    return typeof name === 'string' && soundWord.test(name) ? name : unclassified.why
  } catch {
    return unclassified.why
  }
}

function wordOf(sign: string, error: unknown): string {
  return isRepriseError(error) ? error.code : soundWord.test(sign) ? sign : 'store'
}

/** What an error says, for people. */
export function reasonOf(error: unknown): string {
  try {
    if (error instanceof Error) return keepableText(`${error.name}: ${error.message}`, 1_000)
    return keepableText(String(error), 1_000)
  } catch {
    return 'It cannot be read.'
  }
}
