// What sessions refuse and fail with, whatever the engine.

import type { Blocker, LockEvidence } from '../../atomicity/index.js'
import { defined, RepriseError } from '../../kernel/index.js'

/** A statement waited for a lock as long as it may. The engine's own error is its cause. */
export class LockTimeoutError extends RepriseError {
  override readonly name: string = 'LockTimeoutError'
  /**
   * Who held the lock or waited for it before us, as far as the engine told while we waited, in this attempt or in an
   * earlier one of the same call. Empty: it could not be found out, since the wait was too short, the pool had no other
   * connection to ask on, or the engine has no way to ask.
   */
  readonly blockers: readonly Blocker[]
  /**
   * What speaks for each of the usual causes, where lock time-outs of the domain repeat and the engine can tell: from
   * the second one within a minute on, at most 10 seconds old. Empty: nothing, or it could not be found out.
   */
  readonly evidence: readonly LockEvidence[]

  constructor(cause: unknown, blockers: readonly Blocker[], evidence: readonly LockEvidence[] = []) {
    const who = blockers.length === 0 ? '' : ` ${blockers.length} other session(s) stood before it.`
    const since = blockers.flatMap(({ openSinceMs }) => openSinceMs ?? [])
    // Of several, the one that was there first has the lock.
    const openSinceMs = since.length === 0 ? undefined : Math.min(...since)
    const causes = [...new Set(evidence.map(({ cause }) => cause))].join(', ')
    const why = causes === '' ? '' : ` There is evidence for: ${causes}.`
    super('LOCK_TIMEOUT', `A statement waited too long for a lock.${who}${why}`, {
      cause,
      details: { blockers: blockers.length, ...defined({ openSinceMs }) },
    })
    this.blockers = blockers
    this.evidence = evidence
  }
}

/** The error of a transaction that was ended by something other than its owner. */
export function endedElsewhere(): RepriseError {
  return new RepriseError(
    'TRANSACTION_ENDED_ELSEWHERE',
    'The transaction was ended by something other than its owner; what ran after that ran outside of it.',
  )
}

/** The error of work under a key that is not known to be this transaction's. */
export function notClaimed(): RepriseError {
  return new RepriseError('MARKER_INVALID', 'The key is not claimed by this transaction; nothing may be done under it.')
}
