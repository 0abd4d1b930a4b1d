// Whether a transaction function commits when it says so: looked at after the first commit with a key, and after every one where it was once seen to end well although its work threw.

import type { Isolation } from '../../atomicity/index.js'
import type { StoredKey } from '../../identity/index.js'
import { type CallbackOptions, rowsOf } from './options.js'
import type { RecordStatements } from './records/statements.js'
import { rolledBackSilently } from './refusals.js'

/** What a look needs. */
export interface CommitCheckParts<Tx> extends Pick<CallbackOptions<Tx>, 'dialect' | 'transaction' | 'query'> {
  /** Statements on records. */
  readonly statements: RecordStatements
}

/** What is known of a transaction function. */
export class CommitCheck<Tx> {
  readonly #parts: CommitCheckParts<Tx>
  #trust: 'not-yet' | 'yes' | 'never' = 'not-yet'

  constructor(parts: CommitCheckParts<Tx>) {
    this.#parts = parts
  }

  /** Its word is not taken any more, where it ended well although its work threw. */
  doubtIf(endedWell: boolean): void {
    if (endedWell) this.#trust = 'never'
  }

  /**
   * Looks whether the record of a transaction that is said to be committed is there. Refuses with TRANSACTION_ENDED_ELSEWHERE where it is not; a look that fails says nothing, and the
   * next commit is looked at.
   */
  async confirm({ id, token }: { readonly id: StoredKey; readonly token: string }): Promise<void> {
    if (this.#trust === 'yes') return
    const found = await this.#tokenOf(id).catch(() => undefined)
    if (found === undefined) return
    if (found.token === undefined) throw rolledBackSilently()
    if (found.token === token && this.#trust === 'not-yet') this.#trust = 'yes'
  }

  async #tokenOf(id: StoredKey): Promise<{ readonly token: string | undefined } | undefined> {
    const { dialect, transaction, query, statements } = this.#parts
    const isolation: Isolation = dialect === 'postgres' ? 'read-committed' : 'serializable'
    let found: { readonly token: string | undefined } | undefined
    await transaction(
      async (tx) => {
        const { record } = await statements.read(async (text, values) => rowsOf(await query(tx, text, [...values])), id)
        found = { token: record === undefined ? undefined : (record.token ?? '') }
      },
      { isolation, readOnly: true },
    )
    return found
  }
}
