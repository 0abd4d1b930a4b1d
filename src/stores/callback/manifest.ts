// What is left of an engine behind a transaction function: the marker and the effect still commit together, and less
// can be seen.

import type { Manifest } from '../../atomicity/index.js'

const unseen = {
  readOnly:
    'A transaction function is asked for a transaction that writes; whether it can be asked for another one differs.',
  savepoints:
    'Statements of the ORM do not pass by here, so an error inside a savepoint of ours would not be seen. Use the nested transactions of the ORM.',
  resolvesUnkeyed:
    'Only the key tells: the number of a transaction is not taken, and without a key a commit whose answer is lost stays unknown.',
  lockReport: 'The connection is the ORM’s, and nobody else’s connection is asked about it.',
  lanes: 'Its transactions emit. Relays and consumers work without an ORM: give them a domain of the same database.',
} as const

/** The manifests of a callback domain, by the dialect of the database behind it. */
export const callbackManifests: Readonly<Record<'postgres' | 'sqlite', Manifest>> = {
  postgres: {
    engine: 'callback (PostgreSQL)',
    isolation: ['read-committed', 'repeatable-read', 'serializable'],
    writers: 'many',
    readOnly: false,
    savepoints: false,
    commit: 'ambiguous',
    resolvesUnkeyed: false,
    rowLock: 'row',
    lockReport: false,
    lanes: false,
    refuse: 'exact',
    reach: 'network',
    durability: 'replicated',
    because: {
      ...unseen,
      commit:
        'COMMIT is sent by the ORM: neither its tag nor its notices can be read, and an error may come from before it, from it, or from what the ORM does after it.',
      refuse:
        'As on PostgreSQL: a wait of 1 ms for the unique index tells, since the lock time-out of the transaction is set by a statement of ours.',
      durability:
        'As the server is set, and as far as the ORM’s connection leaves that alone; a wait for replicas that was cancelled is a notice, which is not seen.',
    },
  },
  sqlite: {
    engine: 'callback (SQLite)',
    isolation: ['serializable'],
    writers: 'one',
    readOnly: false,
    savepoints: false,
    commit: 'ambiguous',
    resolvesUnkeyed: false,
    rowLock: 'store',
    lockReport: false,
    lanes: false,
    refuse: 'coarse',
    reach: 'machine',
    durability: 'disk',
    because: {
      ...unseen,
      isolation: 'SQLite has one writer, and readers see one commit: nothing weaker is on offer.',
      writers: 'One lock for the whole file; it is asked for by the first statement, before the body begins.',
      commit:
        'COMMIT is sent by the ORM, and an error may come from before it, from it, or from what the ORM does after it.',
      rowLock: 'There are no locks on rows; the writer has the whole file.',
      refuse: 'That somebody writes can be seen at the lock of the file, not with which key.',
      reach: 'The lock of the file is one of the machine.',
      durability: 'As far as the ORM’s connection syncs: its journal mode and `synchronous` are not looked at.',
    },
  },
}
