// The guard of a call that carries a precondition. It brings its own way to end a call whose precondition failed, so
// that programs without such calls do not load it.

import { demandKnown } from '../../kernel/index.js'
import type { RepeatDecision } from '../decide-repeat.js'
import { type Guard, guardOf } from '../guard.js'
import type { CallState, EndValue } from './call-state.js'
import { unknownOutcome } from './end-of-call.js'
import { lookFor } from './look.js'

/** Whose success a failed precondition was, found out by looking. */
export type Comparison<Result> = { readonly ours: true; readonly value: Result } | { readonly ours: false } | undefined

/** How a conditional write tells its own earlier success from somebody else's. */
export interface ConditionalOptions<Result = unknown> {
  /**
   * Called when the precondition failed after an attempt that may have succeeded: reads back, and looks for a write
   * token, since others may have written an equal value. Undefined when it cannot tell; the outcome is then unknown.
   * It has until the deadline, or a minute where there is none; then its signal aborts, and it could not tell.
   * Default: it cannot tell.
   */
  readonly compare?: (signal: AbortSignal) => PromiseLike<Comparison<Result>> | Comparison<Result>
}

/** The call carries a precondition (ETag, version, compare-and-set) that a second success would violate. */
export function conditional<Result = unknown>(options: ConditionalOptions<Result> = {}): Guard {
  demandKnown(options, ['compare'], 'conditional')
  const { compare } = options
  return guardOf('conditional', undefined, async (call: CallState<unknown>) => {
    const comparison = compare && (await lookFor(call, compare))
    return () => endCompared(call, comparison)
  })
}

// How a call ends after a conflict: it was ours, it was not, or nobody can tell.
function endCompared(call: CallState<unknown>, comparison: Comparison<unknown>): RepeatDecision | EndValue<unknown> {
  const { failures } = call
  if (comparison?.ours === false) {
    failures.latestMaybe = undefined
    return { again: false, reason: 'permanent' }
  }
  call.letGo(undefined)
  if (comparison?.ours === true) return { value: comparison.value }
  const { latestMaybe: maybe } = failures
  throw unknownOutcome(call, maybe?.returned === false ? maybe.error : undefined, 'conflict')
}
