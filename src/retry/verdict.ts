// A verdict on a failed attempt, and classifiers, which find it. Two questions, two answers: would another try help,
// and may it have happened?
//
// Retryable and safe to retry are different things: a time-out is often both worth repeating and unsafe to repeat. A
// classifier never guesses `no`: without proof that nothing happened the answer is `maybe`.

import { type ErrorCode, isRepriseError, RepriseError } from '../kernel/index.js'

/**
 * Would another try help? `transient`: yes, later. `permanent`: no. `discard`: no, and the work itself is to be dropped
 * and counted rather than reported as an error.
 */
export type Help = 'transient' | 'permanent' | 'discard'

/**
 * May the attempt have had its effect? `no`: provably not (never sent, or refused unprocessed). `maybe`: nobody knows.
 */
export type Happened = 'no' | 'maybe'

/** What the other side said beyond the failure itself. */
export interface VerdictExtra {
  /** The shortest wait the other side asks for, in ms. Never shortened. Default: none asked. */
  readonly retryAfterMs?: number
  /**
   * `retryAfterMs`, or 0 without it, is the wait itself: the backoff adds nothing to it, and starts anew after it, as
   * gRPC proposal A6 has it for pushback. Default false: the backoff may wait longer.
   */
  readonly exactly?: boolean
  /** The other side is overloaded (429, 503): never repeated without a budget. Default false. */
  readonly overload?: boolean
  /** The other side forbids a repeat (pushback). Default false. */
  readonly doNotRepeat?: boolean
  /**
   * A precondition failed (412, a version that moved on): after a `maybe` this may be our own success. Default false.
   */
  readonly conflict?: boolean
  /**
   * Another request of the same intent is at work (409 in flight): it says nothing about the health of the other side,
   * so that neither breaker nor budget counts it as a failure. Default false.
   */
  readonly inFlight?: boolean
  /**
   * What `happened: 'no'` rests on, where it is known of one request only: `unsent`: an error shows that its request
   * did not leave; `uncalled`: a refusal of ours, before a request was made; `refused`: an answer shows that its
   * request was not processed. It stands only where no other request left in the same attempt. Default: none, whoever
   * gives the verdict answers for the whole attempt.
   */
  readonly proof?: 'unsent' | 'uncalled' | 'refused'
}

/** The two answers about one failed attempt, and the word for why. */
export interface Verdict extends VerdictExtra {
  /** Would another try help? */
  readonly help: Help
  /** May it have happened? */
  readonly happened: Happened
  /** A short stable word such as `http-503` or `ECONNREFUSED`. Never input: it ends up in events and metrics. */
  readonly why: string
}

/** A failure that another try may cure. */
export function transient(why: string, happened: Happened, extra?: VerdictExtra): Verdict {
  return { help: 'transient', happened, why, ...extra }
}

/** A failure that no other try will cure. `happened` is `maybe` unless something proves otherwise. */
export function permanent(why: string, happened: Happened = 'maybe', extra?: VerdictExtra): Verdict {
  return { help: 'permanent', happened, why, ...extra }
}

/** Work to be dropped: counted, not thrown, not repeated. */
export function discard(why: string): Verdict {
  return { help: 'discard', happened: 'no', why }
}

// A registered symbol is the same in every copy of the package.
const returned: unique symbol = Symbol.for('reprise.verdict') as never

/** A verdict handed back by a body in place of a throw, with the value that belongs to it, if any. */
export interface ReturnedVerdict<V = undefined> {
  /** Marks it, in every copy of the package. */
  readonly [returned]: true
  /** What the failure meant. */
  readonly verdict: Verdict
  /** What the body had in hand, such as the response it judged. */
  readonly value: V | undefined
}

// Whether the value answers both questions, and asks for no wait that cannot be kept.
function isVerdict(value: unknown): value is Verdict {
  const { help, happened, retryAfterMs = 0 } = Object(value) as Partial<Verdict>
  const isAnswered = help === 'transient' || help === 'permanent' || help === 'discard'
  return isAnswered && (happened === 'no' || happened === 'maybe') && typeof retryAfterMs === 'number'
}

/**
 * What a classifier or a body said, as a verdict. Both are the user's: what is no verdict, or cannot be read, counts as
 * none, and only `no` is no.
 */
export function soundVerdict(said: Verdict | undefined): Verdict {
  if (said === undefined) return unclassified
  try {
    // A copy, since what is asked again might answer otherwise.
    const copy: Verdict = { ...said }
    if (copy.happened !== 'no') Object.assign(copy, { happened: 'maybe' })
    if (typeof copy.why !== 'string') Object.assign(copy, { why: 'unnamed' })
    return isVerdict(copy) ? copy : unclassified
  } catch {
    return unclassified
  }
}

/**
 * Lets a body return its verdict as a value: `return failedBecause(transient('busy', 'no'), response)`. Refuses what is
 * no verdict with `ARGUMENT_INVALID`.
 */
export function failedBecause<V = undefined>(verdict: Verdict, value?: V): ReturnedVerdict<V> {
  if (!isVerdict(verdict) || typeof verdict.why !== 'string') {
    throw new RepriseError('ARGUMENT_INVALID', 'Not a verdict: help, happened and why are needed.')
  }
  return { [returned]: true, verdict, value }
}

/** Whether a body's result is a verdict made by {@link failedBecause}, also by another copy of the package. */
export function isReturnedVerdict(result: unknown): result is ReturnedVerdict<unknown> {
  return typeof result === 'object' && result !== null && (result as ReturnedVerdict<unknown>)[returned] === true
}

/** Judges what a body threw. `undefined` means: not mine, ask the next. */
export type Classifier = (error: unknown) => Verdict | undefined

/** The verdict on a failure that no classifier knows: not repeated, and it may have happened. */
export const unclassified: Verdict = /* @__PURE__ */ permanent('unclassified')

/**
 * Asks the classifiers in turn; the first answer counts. A classifier that throws, or whose answer cannot be read, has
 * none, since an error with a hostile getter, or a mistake in a predicate, must not hide the failure that is being
 * judged.
 */
export function firstOf(...classifiers: readonly Classifier[]): Classifier {
  return (error) => {
    for (const classifier of classifiers) {
      try {
        const verdict = classifier(error)
        if (verdict !== undefined) return read(verdict)
      } catch {}
    }
    return undefined
  }
}

// Asks for every member: an answer that throws when it is read is none.
function read(verdict: Verdict): Verdict {
  Object.entries(verdict)
  return verdict
}

/**
 * Judges by the `code` of an error, also one that another error names as its `cause` (five levels deep) and the members
 * of an AggregateError: those count together, and as `no` only when every one of them is.
 */
export function forCodes(table: Readonly<Record<string, Verdict>>): Classifier {
  return alongCauses(({ code }) => (typeof code === 'string' && Object.hasOwn(table, code) ? table[code] : undefined))
}

/** Gives the verdict to every failure that the predicate recognises. */
export function when(predicate: (error: unknown) => boolean, verdict: Verdict): Classifier {
  return firstOf((error) => (predicate(error) ? verdict : undefined))
}

/** What is looked at in an error. Anything may be missing or of another type. */
export type ErrorFacts = Readonly<Partial<Record<string, unknown>>>

// An error is input: its chain of causes may be a circle, and its members may have members.
const deepest = 5
const mostErrors = 64

/**
 * Looks at an error, then at its cause, and so on, until something is recognised. The members of an AggregateError
 * are looked at in place of the error itself. At most 64 errors are looked at.
 */
export function alongCauses(look: (facts: ErrorFacts) => Verdict | undefined): Classifier {
  return firstOf((error) => {
    let left = mostErrors
    const judge = (value: unknown, depth: number): Verdict | undefined => {
      if (typeof value !== 'object' || value === null || depth > deepest || left-- <= 0) return undefined
      const facts = value as ErrorFacts
      const members = facts['errors']
      if (Array.isArray(members) && members.length > 0) {
        // Lazy in neither sense: a member that nobody knows leaves the whole unknown.
        return together(members.slice(0, mostErrors + 1).map((member) => judge(member, depth + 1)))
      }
      const cause = facts['cause'] as ErrorFacts | undefined
      const below = (): Verdict | undefined => judge(cause, depth + 1)
      // Clients wrap an error under its own code and leave the evidence behind.
      const isSame = typeof facts['code'] === 'string' && facts['code'] === cause?.['code']
      return (isSame ? below() : undefined) ?? look(facts) ?? wrapped(facts, below())
    }
    return judge(error, 0)
  })
}

// Whoever wraps an error may have done more than what the cause speaks of: `order saved, mail failed` does not prove
// that nothing happened. Only fetch is known to add nothing of its own.
function wrapped(facts: ErrorFacts, verdict: Verdict | undefined): Verdict | undefined {
  const isFetch = facts['name'] === 'TypeError' && facts['message'] === 'fetch failed'
  return verdict?.happened !== 'no' || isFetch ? verdict : { ...verdict, happened: 'maybe' }
}

// What may have happened outweighs what did not; then, what another try may cure.
function together(verdicts: readonly (Verdict | undefined)[]): Verdict | undefined {
  if (verdicts.includes(undefined)) return undefined
  return (
    verdicts.find((verdict) => verdict?.happened === 'maybe') ??
    verdicts.find((verdict) => verdict?.help === 'transient') ??
    verdicts[0]
  )
}

// Of the errors of Reprise: whether another try would help.
const ownHelp: Readonly<Partial<Record<ErrorCode, Help>>> = {
  ATTEMPT_TIMEOUT: 'transient',
  DEADLINE_EXCEEDED: 'transient',
  BREAKER_OPEN: 'transient',
  CONCURRENCY_LIMITED: 'transient',
  EFFECT_IN_TRANSACTION: 'permanent',
  // Nothing was sent under the new key, but an earlier attempt may have taken effect under its own.
  KEY_PER_ATTEMPT: 'permanent',
  // Whatever caused an unknown outcome, nobody knows whether it happened.
  UNKNOWN_OUTCOME: 'permanent',
}

/** What Reprise itself threw. Asked before the caller's own classifier. */
export const ownErrorClassifier: Classifier = (error) => {
  const { code: why, details } = Object(error) as RepriseError
  const help = ownHelp[why]
  if (help === undefined || !isRepriseError(error)) return undefined
  // The effect guard says whether it stopped the effect, or noticed it too late.
  const isRefused = why === 'BREAKER_OPEN' || why === 'CONCURRENCY_LIMITED'
  const isUncalled = isRefused || (why === 'EFFECT_IN_TRANSACTION' && details['left'] === false)
  return isUncalled ? { help, happened: 'no', why, proof: 'uncalled' } : { help, happened: 'maybe', why }
}
