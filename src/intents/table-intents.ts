// Keys in a table of the user's own, in any of our stores: the unique index decides who is first.

import type { Rows, TableName, Transitioned } from '../atomicity/index.js'
import { RepriseError } from '../kernel/index.js'
import type { IntentStorage } from './storage.js'

/** What is used of a store. */
export interface TableDomain {
  transact<Result>(body: (tx: Pick<Rows, 'insertOnce' | 'transition'>) => Promise<Result>): Promise<Result>
}

const ended = 'ended'
const mostLooks = 3

/**
 * Keeps keys in a table, with the columns `id` (text, primary key), `state` (text: the key, or `ended`) and
 * `last_command` (text). Rows that have ended stay, for whoever purges the table.
 */
export function tableIntents(db: TableDomain, table: TableName): IntentStorage {
  // From one state to another: the second column is the command, so that a repeat of either is known as one.
  const move = (id: string, from: string, to: string, command: string): Promise<Transitioned> =>
    db.transact((tx) => tx.transition(table, { where: { id }, from, to, command }))
  return {
    async keep(id, key) {
      for (let looks = 0; looks < mostLooks; looks += 1) {
        const { row } = await db.transact((tx) => tx.insertOnce(table, { id, state: key, last_command: '' }, ['id']))
        if (row['state'] !== ended) return String(row['state'])
        const moved = await move(id, ended, key, `keep ${key}`)
        if (moved.result === 'applied' || moved.result === 'already-applied') return key
        if (moved.result === 'invalid' && moved.state !== ended) return moved.state
      }
      throw new RepriseError('ROW_UNSETTLED', 'The key of an intent came and went every time it was looked at.')
    },
    async forget(id, key) {
      // Invalid or absent: another key is kept, or none. Both are as they should be.
      await move(id, key, ended, `end ${key}`)
    },
  }
}
