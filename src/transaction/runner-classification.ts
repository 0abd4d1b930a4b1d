// What the runner rules on its own, whatever the store, as data: failures that no engine sees.

import type { ClassificationRow } from '../atomicity/index.js'

/** The classification table of the runner; it stands above those of the stores. */
export const runnerClassification: readonly ClassificationRow[] = [
  {
    sign: 'body-threw',
    name: 'the body threw, and no error of the engine came before it',
    body: 'surface',
    why: 'It is the caller’s own: the transaction is rolled back, and the error handed out.',
    evidence: { triggered: 'rolls back and hands out an error of the body itself, once' },
  },
  {
    sign: 'body-cut-off',
    name: 'the body’s time was over, or the caller gave up',
    body: 'surface',
    connection: 'discard',
    why: 'A statement of it may still be under way, so the connection cannot be used again.',
    evidence: { triggered: 'ends a body that takes too long, and its handle can do nothing more' },
  },
  {
    sign: 'TRANSACTION_ABORTED',
    name: 'the body went on after an error of the engine',
    body: 'surface',
    first: true,
    why: 'COMMIT is not sent. The error that was swallowed decides, by the table of its store.',
    evidence: { triggered: 'an error that the body swallowed ends the transaction, and the caller is told' },
  },
  {
    sign: 'commit-timeout',
    name: 'COMMIT was not answered before the reserve',
    committing: 'resolve',
    why: 'It is on its way, and may still happen: the connection is destroyed, and the reserve spent on finding out.',
    evidence: {
      triggered: 'parked beyond the deadline: an honest unknown, and the next call with the key settles it',
    },
  },
  {
    sign: 'read-only-commit',
    name: 'an unknown end of COMMIT, of a transaction that only read',
    committing: 'reconnect',
    why: 'Nothing can have happened, so nothing has to be found out. The sign stays that of the failure.',
    evidence: { triggered: 'is repeated when the answer to its COMMIT is lost: nothing can have happened' },
  },
]
