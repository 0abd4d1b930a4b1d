// The honest answer when nobody could tell whether a transaction committed.

import { UnknownOutcomeError } from '../retry/index.js'
import type { FailedTransaction } from './history.js'

/**
 * The transaction may have committed or not, and could not be closed before the deadline. Neither success nor failure.
 *
 * With a key, simply call again with the same key: that call settles it. Otherwise, or to ask without running anything,
 * hand `resolveToken` to the domain's `resolve`, also from another process.
 */
export class UnknownCommitError extends UnknownOutcomeError {
  override readonly name: string = 'UnknownCommitError'
  /**
   * Names the transaction, for `resolve`. Plain text that can be stored; undefined where the engine cannot tell
   * afterwards.
   */
  readonly resolveToken: string | undefined
  /** The attempts at the transaction, in order. */
  readonly transactions: readonly FailedTransaction[]

  constructor(
    resolveToken: string | undefined,
    transactions: readonly FailedTransaction[],
    suppressed: readonly unknown[],
  ) {
    super(transactions.at(-1)?.error, [], suppressed)
    this.message =
      resolveToken === undefined
        ? 'The transaction may have committed; without a key, this engine cannot say afterwards.'
        : 'The transaction may have committed, and nobody could tell in time. With a key, call again with the same key; else resolve its token.'
    this.resolveToken = resolveToken
    this.transactions = Object.freeze([...transactions])
  }
}
