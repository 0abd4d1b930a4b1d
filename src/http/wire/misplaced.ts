// Refusals of the drop-in form where it was mounted so that it cannot work.

import { RepriseError } from '../../kernel/index.js'

/** The refusal of a middleware that is not where it can work. */
export function misplaced(message: string): RepriseError {
  return new RepriseError('OPERATION_INVALID', message, { details: { option: 'idempotency' } })
}

/** The refusal of one that a request meets twice. */
export function mountedTwice(): RepriseError {
  return misplaced('It is on the way of a request more than once. A handler has one answer and one key: leave one out.')
}
