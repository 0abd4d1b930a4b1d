// The errors of a store that is away or full: in our words, with the driver's own error as the cause.

import { defined, RepriseError } from '../kernel/index.js'
import { transactionAttempt } from '../telemetry/index.js'

/** A driver may put much into a message. */
const mostCharacters = 200

/** The error of a store that could not be reached, which names it and says what its driver said. */
export function storeUnreachable(domain: string, cause: unknown): RepriseError {
  // A host with several addresses fails with one error for each, and no message of its own.
  const first: unknown = cause instanceof AggregateError && cause.message === '' ? cause.errors[0] : cause
  const said = first instanceof Error ? first.message.slice(0, mostCharacters) : ''
  const message = `The store ${domain} could not be reached${said === '' ? '' : `: ${said}`}.`
  return new RepriseError('STORE_UNREACHABLE', message, { cause, details: { domain } })
}

/**
 * The error of a statement on records that met a full disk. It is told on the channel of failed transactions, as an
 * alarm: the statement was a transaction of its own, and another try would end in the same way.
 *
 * @param about The record that it was about; undefined where it was about many.
 */
export function storeFull(
  domain: string,
  sign: string,
  cause: unknown,
  about: { readonly id?: string | undefined; readonly operation?: string | undefined } = {},
): RepriseError {
  if (transactionAttempt.hasSubscribers) {
    const ruling = { outcome: 'aborted', help: 'permanent', alarm: true, stop: 'permanent' } as const
    transactionAttempt.publish({ domain, ...defined(about), attempt: 1, phase: 'body', sign, ...ruling })
  }
  const message = `The disk of the store ${domain} is full: nothing was written.`
  return new RepriseError('STORE_FULL', message, { cause, details: { domain } })
}
