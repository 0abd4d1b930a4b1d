// The tables of messages of a store in memory: the same names and columns as those of the SQL stores.

import type { Tables } from '../tables.js'

/** The names of the tables, which no table of a user has. */
export const messageTables = {
  head: 'reprise_head',
  message: 'reprise_message',
  reader: 'reprise_reader',
  lane: 'reprise_lane',
  processed: 'reprise_processed',
  inbox: 'reprise_inbox',
  deadLetter: 'reprise_dead_letter',
} as const

/** Makes the tables. */
export function defineMessageTables(tables: Tables): void {
  const { head, message, reader, lane, processed, inbox, deadLetter } = messageTables
  tables.define(head, { unique: [['key']] })
  tables.define(message, {
    unique: [
      ['key', 'epoch', 'number'],
      ['source', 'id'],
      ['subject', 'version'],
    ],
    groups: [['key']],
  })
  tables.define(reader, { unique: [['name']] })
  tables.define(lane, { unique: [['reader', 'key']], groups: [['reader', 'state'], ['key']] })
  tables.define(processed, { unique: [['reader', 'source', 'id']] })
  tables.define(inbox, {
    unique: [
      ['reader', 'key', 'epoch', 'number'],
      ['reader', 'source', 'id'],
    ],
    groups: [['reader', 'key']],
  })
  tables.define(deadLetter, { unique: [['reader', 'source', 'id']], groups: [['reader', 'key']] })
}
