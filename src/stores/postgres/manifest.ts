// What PostgreSQL can do.

import type { Manifest } from '../../atomicity/index.js'

/** The manifest of PostgreSQL, through `pg`. */
export const postgresManifest: Manifest = {
  engine: 'PostgreSQL',
  isolation: ['read-committed', 'repeatable-read', 'serializable'],
  writers: 'many',
  readOnly: true,
  savepoints: true,
  commit: 'ambiguous',
  resolvesUnkeyed: true,
  rowLock: 'row',
  lockReport: true,
  refuse: 'exact',
  reach: 'network',
  durability: 'replicated',
  because: {
    commit:
      'The connection can be lost after COMMIT was sent and before it was answered, and the error is the same for both outcomes.',
    refuse:
      'A claim that is not committed cannot be seen by another connection, but the unique index makes the next one wait, and a wait of 1 ms tells. A wait for anything but the row, such as a lock on the whole table, is told apart and is a lock time-out. Nothing of the other claim can be read: other content is told apart only once it has committed.',
    resolvesUnkeyed:
      'pg_xact_status answers on the same server and timeline only; after a failover it can be wrong, and is not asked.',
  },
}

/** The same where transactions without a key are not traced. */
export const untracedManifest: Manifest = {
  ...postgresManifest,
  resolvesUnkeyed: false,
  because: {
    ...postgresManifest.because,
    resolvesUnkeyed: 'The domain was told not to take the number of each transaction with BEGIN.',
  },
}
