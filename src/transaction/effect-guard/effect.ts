// Effects that leave the process while a transaction is open: they cannot be rolled back, and a repeat of the body
// repeats them.

import { defined, detached, RepriseError, type ScopeKind, scopeKind } from '../../kernel/index.js'
import { type TransactionEffectEvent, transactionEffect } from '../../telemetry/index.js'
import { type OpenTransaction, openTransaction } from '../open-transaction.js'

/** An effect, as far as it is known. */
export interface Effect {
  /**
   * How it was noticed: `fetch` stands for everything of undici, `http` for `node:http` and `node:https`, `effect` for
   * a mark, `query` for a statement past the transaction.
   */
  readonly by: 'fetch' | 'http' | 'effect' | 'query'
  /**
   * Where it goes: scheme, host and port, or `unix:` and a path. Undefined where that cannot be told, and for marks.
   */
  readonly origin?: string | undefined
  /** The name given to a mark. */
  readonly name?: string
  /** What kind of statement it is: `'insert'`. */
  readonly statement?: string
}

interface Permit {
  readonly reason: string
  readonly transaction: OpenTransaction
}

const permits: ScopeKind<Permit> = scopeKind<Permit>('reprise.allowed-effect')
const longestText = 255

/** Whether the guard is on. Stores read it, and guard what they are given to work with. */
export const effectGuard: { isOn: boolean } = { isOn: false }

/**
 * From now on no effect is let out of a transaction where it can be stopped, and none commits where it cannot. For
 * development and tests.
 */
export function beStrict(): void {
  effectGuard.isOn = true
}

/**
 * Runs work whose effects are permitted although a transaction is open, until its promise settles. Each of them is
 * reported with the reason. Outside a transaction it just runs the work.
 *
 * @param reason Why it does no harm when the transaction is repeated or rolled back: a constant of your code, 1 to 255
 *   characters.
 */
export async function allowEffect<Result>(reason: string, work: () => PromiseLike<Result> | Result): Promise<Result> {
  checkText('reason', reason)
  const transaction = openTransaction()
  if (transaction === undefined) return work()
  // An async function waits inside the scope, also for a query that starts when it is awaited.
  return permits.run({ reason, transaction }, async () => work())
}

/**
 * Marks an effect that cannot be seen (HTTP/2, gRPC, a raw socket, mail): call it right before. Does nothing outside a
 * transaction. Inside, it refuses with EFFECT_IN_TRANSACTION under the guard and where the domain's `effects` is
 * `'poison'`, and reports where it is `'report'`.
 *
 * @param name What is about to be done: a constant of your code, 1 to 255 characters.
 */
export function effect(name: string): void {
  checkText('name', name)
  const refusal = refuseUnseen(() => ({ by: 'effect', name }))
  if (refusal !== undefined) throw refusal
}

/**
 * Judges an effect that no channel of Node tells of, before it leaves: the error to refuse it with, or undefined, and
 * then it is taken note of. It is refused under the guard and where the domain's `effects` is `'poison'`. For stores.
 */
export function refuseUnseen(look: () => Effect | undefined): RepriseError | undefined {
  const transaction = openTransaction()
  if (transaction === undefined) return undefined
  const found = look()
  if (found === undefined) return undefined
  const isStrict = effectGuard.isOn || transaction.effects.mode === 'poison'
  const refusal = isStrict ? refuseEffect(() => found) : undefined
  if (refusal === undefined) noticeEffect(() => found)
  return refusal
}

/**
 * The error with which an effect that has not left is to be refused, or undefined: it may leave. The transaction cannot
 * commit any more.
 */
export function refuseEffect(look: () => Effect | undefined): RepriseError | undefined {
  const transaction = openTransaction()
  if (transaction === undefined || transaction.effects.mode === 'ignore') return undefined
  const found = look()
  if (found === undefined || isAllowedOrigin(transaction, found) || permitFor(transaction) !== undefined)
    return undefined
  const error = refusal(transaction, found, false)
  // Also where the body swallows the refusal: whoever wrote it is to hear of it.
  transaction.poison(error)
  report(transaction, found, 'refused')
  return error
}

/** Takes note of an effect that has left, or is permitted to. Never throws: it runs inside calls of other people. */
export function noticeEffect(look: () => Effect): void {
  const transaction = openTransaction()
  if (transaction === undefined || transaction.effects.mode === 'ignore') return
  try {
    judge(transaction, look())
  } catch {
    // A store that cannot be poisoned any more. An error thrown here would be an uncaught one, in the middle of a
    // request.
  }
}

function judge(transaction: OpenTransaction, found: Effect): void {
  if (isAllowedOrigin(transaction, found)) return
  const permit = permitFor(transaction)
  if (permit !== undefined) {
    report(transaction, found, 'allowed', permit.reason)
  } else if (effectGuard.isOn || transaction.effects.mode === 'poison') {
    transaction.poison(refusal(transaction, found, true))
    report(transaction, found, 'poisoned')
  } else {
    report(transaction, found, 'reported')
  }
}

function isAllowedOrigin({ effects }: OpenTransaction, { origin }: Effect): boolean {
  return origin !== undefined && effects.allowOrigins.has(origin)
}

// One that was given around the whole transaction says nothing about a call inside.
function permitFor(transaction: OpenTransaction): Permit | undefined {
  const permit = permits.current()
  return permit?.transaction === transaction ? permit : undefined
}

function refusal({ domain }: OpenTransaction, { by, statement }: Effect, left: boolean): RepriseError {
  if (statement !== undefined) {
    const message =
      `A statement that writes (${statement.toUpperCase()}) was to be sent past the open transaction, by a connection of its own: ` +
      'a rollback would not undo it. It was stopped, and the transaction cannot commit. Send it through tx.'
    return new RepriseError('EFFECT_IN_TRANSACTION', message, { details: { domain, by, left, statement } })
  }
  const message = left
    ? 'An effect left this process inside a transaction, which therefore cannot commit.'
    : 'An effect was to leave this process inside a transaction. It was stopped, and the transaction cannot commit.'
  return new RepriseError('EFFECT_IN_TRANSACTION', message, { details: { domain, by, left } })
}

function report(
  { domain }: OpenTransaction,
  { by, origin, name, statement }: Effect,
  decision: TransactionEffectEvent['decision'],
  reason?: string,
): void {
  if (!transactionEffect.hasSubscribers) return
  const event: TransactionEffectEvent = {
    domain,
    by,
    decision,
    ...defined({ origin, name, statement, reason }),
  }
  // A listener that sends the event on by HTTP is not part of the transaction, and would hear of itself for ever.
  detached(() => transactionEffect.publish(event))
}

function checkText(argument: string, text: string): void {
  if (typeof text === 'string' && text.length > 0 && text.length <= longestText) return
  throw new RepriseError('ARGUMENT_INVALID', `The ${argument} must be text of 1 to ${longestText} characters.`)
}
