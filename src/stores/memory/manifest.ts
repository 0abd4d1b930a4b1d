// What memory can and cannot do.

import type { Manifest } from '../../atomicity/index.js'

/** The manifest of a store in memory. */
export const memoryManifest: Manifest = {
  engine: 'memory',
  isolation: ['serializable'],
  writers: 'one',
  readOnly: true,
  savepoints: true,
  commit: 'certain',
  resolvesUnkeyed: false,
  rowLock: 'store',
  lockReport: false,
  refuse: 'exact',
  reach: 'process',
  durability: 'process',
  because: {
    writers: 'Transactions that write take turns, so that a body that awaits sees no other one half done.',
    isolation: 'Writers take turns and readers see the state of one commit: nothing weaker is on offer.',
    resolvesUnkeyed: 'A commit in memory has no answer that could be lost, so nothing is ever to be resolved.',
    rowLock: 'The writer has the whole store to itself.',
    lockReport: 'Nobody but the writer whose turn it is holds a lock.',
    refuse:
      'Every claim is made in this process, where the queue of duplicates knows each key that is being worked on.',
    reach: 'The tables live in this process.',
    durability: 'The tables end with the process.',
  },
}
