// Which operations are being carried out around this code, so that one that calls itself is told so instead of waiting for itself.

import type { StoredKey } from '../../identity/index.js'
import { RepriseError, type ScopeKind, type ScopeValue, scopeKind } from '../../kernel/index.js'

interface Running {
  readonly queue: object
  readonly id: StoredKey
  readonly outer: Running | undefined
}

const running: ScopeKind<Running> = /* @__PURE__ */ scopeKind<Running>('reprise.operation')

/**
 * Runs the body of an operation.
 *
 * @param queue The queue of the domain: the same name means another record in another domain.
 */
export function insideOperation<Result>(queue: object, id: StoredKey, work: () => Result): Result {
  return running.run({ queue, id, outer: running.current() }, work)
}

/** The same as a scope, to be opened together with others. */
export function operationScope(queue: object, id: StoredKey): ScopeValue {
  return running.with({ queue, id, outer: running.current() })
}

/** Refuses with OPERATION_REENTERED a call from inside the very operation and key it is about. */
export function refuseReentry(queue: object, id: StoredKey): void {
  for (let around = running.current(); around !== undefined; around = around.outer) {
    if (around.queue !== queue || around.id !== id) continue
    throw new RepriseError('OPERATION_REENTERED', 'The operation was called with its own key from inside itself.')
  }
}
