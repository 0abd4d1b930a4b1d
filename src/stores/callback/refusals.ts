// Why a transaction inside an ORM's cannot go on, as errors.

import { RepriseError } from '../../kernel/index.js'

/** An error came before the work was allowed to return. */
export function aborted(cause: unknown): RepriseError {
  const message = 'A statement of the transaction failed before its work was allowed to return; nothing was stored.'
  return new RepriseError('TRANSACTION_ABORTED', message, { cause })
}

/** The handle is of the past. */
export function over(): RepriseError {
  return new RepriseError('TRANSACTION_OVER', 'The transaction has ended; its handle cannot be used.')
}

/** Somebody else has the key. */
export function notClaimed(): RepriseError {
  return new RepriseError('MARKER_INVALID', 'The key is not claimed by this transaction; nothing may be done under it.')
}

/** Something else has ended the transaction. */
export function endedElsewhere(): RepriseError {
  return new RepriseError(
    'TRANSACTION_ENDED_ELSEWHERE',
    'The transaction was ended by something other than its owner; what ran after that ran outside of it.',
  )
}

/** The transaction function has not committed what it said it had. */
export function rolledBackSilently(): RepriseError {
  return new RepriseError(
    'TRANSACTION_ENDED_ELSEWHERE',
    'The transaction function ended well, and what its work wrote is not there: it has rolled back. Nothing was stored.',
    { details: { option: 'transaction' } },
  )
}
