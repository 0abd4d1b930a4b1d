// What a body returned that is no success: its verdict as a value, or the answer of a server that is not ok.

import { RepriseError } from '../../kernel/index.js'
import { type Classifier, isReturnedVerdict, type ReturnedVerdict, soundVerdict, type Verdict } from '../verdict.js'

/** How an attempt failed: it threw, or it returned a value that is no success. */
export type AttemptFailure<Result> =
  | { readonly returned: true; readonly verdict: Verdict; readonly value: Result }
  | { readonly returned: false; readonly error: unknown; readonly verdict?: Verdict }

/** The failure in what a body returned; undefined: it is a success. */
export function failureIn<Result>(result: object, classify: Classifier): AttemptFailure<Result> | undefined {
  if (isReturnedVerdict(result)) return returnedFailure(result)
  if (!isResponse(result) || result.ok || result.status < 400) return undefined
  return { returned: true, verdict: soundVerdict(classify(result)), value: result as Result }
}

// A verdict without a value leaves nothing to hand to the caller: it is as if it had been thrown.
function returnedFailure<Result>({ verdict: said, value }: ReturnedVerdict<unknown>): AttemptFailure<Result> {
  const verdict = soundVerdict(said)
  if (value !== undefined || verdict.help === 'discard') return { returned: true, verdict, value: value as Result }
  const message = 'The attempt failed, as its body said; the verdict is in the history.'
  return { returned: false, verdict, error: new RepriseError('ATTEMPT_FAILED', message) }
}

/** Cancels the body of an answer that nobody gets, and so gives its connection back; for clients. */
export function cancelBody(response: Response): void {
  // Where somebody reads it, or it broke, it is not ours to end.
  if (!response.bodyUsed) response.body?.cancel?.().catch(() => {})
}

/** Lets go of a value that nobody gets: of the body of an answer. Leaves other values alone. */
export function letGoOf(value: unknown): void {
  if (isResponse(value)) cancelBody(value)
}

// Of any realm, and of packages that bring a fetch of their own. A value may throw when it is looked at: then it is
// none.
function isResponse(value: unknown): value is Response {
  try {
    const { ok } = Object(value) as Partial<Response>
    return typeof ok === 'boolean' && Object.prototype.toString.call(value) === '[object Response]'
  } catch {
    return false
  }
}
