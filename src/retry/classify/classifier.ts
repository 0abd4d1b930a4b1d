// What did that failure mean? A classifier answers with a verdict, or says that the failure is not its business.
//
// A classifier never guesses `no`: without proof that nothing happened the answer is `maybe`.

import { permanent, type Verdict } from '../verdict.js'

/** Judges what a body threw. `undefined` means: not mine, ask the next. */
export type Classifier = (error: unknown) => Verdict | undefined

/** The verdict on a failure that no classifier knows: not repeated, and it may have happened. */
export const unclassified: Verdict = /* @__PURE__ */ permanent('unclassified')

/**
 * Asks the classifiers in turn; the first answer counts. A classifier that throws has no answer, since an error with
 * a hostile getter, or a mistake in a predicate, must not hide the failure that is being judged.
 */
export function firstOf(...classifiers: readonly Classifier[]): Classifier {
  return (error) => {
    for (const classifier of classifiers) {
      try {
        const verdict = classifier(error)
        if (verdict !== undefined) return verdict
      } catch {}
    }
    return undefined
  }
}

/**
 * Judges by the `code` of an error, also one that another error names as its `cause` (five levels deep) and the members of an
 * AggregateError: those count together, and as `no` only when every one of them is.
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

// Whoever wraps an error may have done more than what the cause speaks of: `order saved, mail failed` does not prove that
// nothing happened. Only fetch is known to add nothing of its own.
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
