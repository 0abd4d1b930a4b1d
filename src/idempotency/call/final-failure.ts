// The final failure that a thrown error stands for. A mistake in the definition's own predicate never takes the place of the error that it was to judge.

import { isRepriseError } from '../../kernel/index.js'
import { type OperationEvent, type OperationMisjudgedEvent, operationMisjudged } from '../../telemetry/index.js'
import type { OperationOptions } from '../definition.js'
import { type Failure, isFailure, type OperationFailedError } from '../failure.js'

/**
 * The failure in what a body threw, or what `terminal` makes of it; undefined: it is none. A `terminal` that throws, or returns something else, says nothing: what the body threw
 * decides, and the mistake is told as an event.
 */
export function finalFailureIn(
  error: unknown,
  { terminal }: Pick<OperationOptions<never, unknown, string>, 'terminal'>,
  event: () => OperationEvent,
): Failure | undefined {
  // Thrown as it is, it means the same as inside its error.
  if (isFailure(error)) return error
  if (isRepriseError(error, 'OPERATION_FAILED')) {
    const { failure } = error as Partial<OperationFailedError>
    if (isFailure(failure)) return failure
  }
  const tell = (mistake: Pick<OperationMisjudgedEvent, 'because' | 'error'>): undefined => {
    if (operationMisjudged.hasSubscribers) operationMisjudged.publish({ ...event(), ...mistake })
  }
  let failure: unknown
  try {
    failure = terminal?.(error)
  } catch (mistake) {
    return tell({ because: 'threw', error: mistake })
  }
  if (failure === undefined || isFailure(failure)) return failure
  // Nobody waits for a promise here: one that fails would end the process.
  if (failure instanceof Promise) failure.catch(() => undefined)
  return tell({ because: 'no-failure' })
}
