// What SQLite can and cannot do.

import type { Manifest } from '../../atomicity/index.js'

/** The manifest of a store in SQLite. */
export const sqliteManifest: Manifest = {
  engine: 'sqlite',
  isolation: ['serializable'],
  writers: 'one',
  readOnly: true,
  savepoints: true,
  commit: 'ambiguous',
  resolvesUnkeyed: false,
  rowLock: 'store',
  lockReport: false,
  refuse: 'coarse',
  reach: 'machine',
  durability: 'disk',
  because: {
    isolation:
      'A writer holds the lock of the file from BEGIN IMMEDIATE on, and readers see one commit: nothing weaker is on offer.',
    writers: 'One lock for the whole file; who writes waits for it before the body begins.',
    commit:
      'In WAL mode, a COMMIT whose sync failed leaves whole frames in the log, and a later recovery may take them for committed.',
    resolvesUnkeyed: 'A transaction has no number by which its outcome could be asked for.',
    rowLock: 'There are no locks on rows; the writer has the whole file.',
    lockReport: 'The lock is one of the operating system, which does not say who holds it in the terms of SQLite.',
    refuse: 'That somebody writes can be seen at the lock of the file, not with which key.',
    reach: 'The index of the log lies in shared memory of one machine; a network file system breaks it.',
    durability: 'synchronous = FULL syncs the log at every COMMIT; the disk is the only copy.',
  },
}
