// Whether a transaction function commits when it says so: looked at after the first commit with a key, and after every
// one where it was once seen to end well although its work threw.

import type { StoredKey } from '../../identity/index.js'
import { RepriseError } from '../../kernel/index.js'
import { seenIn } from '../sql/index.js'
import type { CallbackDatabase } from './database.js'
import { type CallbackOptions, sendOn } from './options.js'

/** What a look needs. */
export interface CommitCheckParts<Tx> extends Pick<CallbackOptions<Tx>, 'transaction' | 'query'> {
  readonly database: CallbackDatabase
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
   * Looks whether the record of a transaction that is said to be committed is there. Refuses with
   * TRANSACTION_ENDED_ELSEWHERE where it is not; a look that fails says nothing, and the next commit is looked at.
   */
  async confirm({ id, token }: { readonly id: StoredKey; readonly token: string }): Promise<void> {
    if (this.#trust === 'yes') return
    const found = await this.#tokenOf(id).catch(() => undefined)
    if (found === undefined) return
    if (found.token === undefined) throw rolledBackSilently()
    if (found.token === token && this.#trust === 'not-yet') this.#trust = 'yes'
  }

  async #tokenOf(id: StoredKey): Promise<{ readonly token: string | undefined } | undefined> {
    const { transaction, query, database } = this.#parts
    const [isolation = 'serializable'] = database.manifest.isolation
    let found: { readonly token: string | undefined } | undefined
    await transaction(
      async (tx) => {
        const send = sendOn(query, tx, database.dialect)
        const { record } = seenIn((await send(database.statements.read(id))).rows[0])
        found = { token: record === undefined ? undefined : (record.token ?? '') }
      },
      { isolation, readOnly: true },
    )
    return found
  }
}

// The transaction function has not committed what it said it had.
function rolledBackSilently(): RepriseError {
  return new RepriseError(
    'TRANSACTION_ENDED_ELSEWHERE',
    'The transaction function ended well, and what its work wrote is not there: it has rolled back. Nothing was stored.',
    { details: { option: 'transaction' } },
  )
}
