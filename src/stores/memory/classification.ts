// What a failure of a store in memory means. There is little that can fail.

import type { ClassificationRow } from '../../atomicity/index.js'

/** The classification table of a store in memory. */
export const memoryClassification: readonly ClassificationRow[] = [
  {
    sign: 'UNIQUE_VIOLATION',
    name: 'a unique key is taken',
    body: 'surface',
    why: 'The row that is there stays there.',
    evidence: { triggered: 'refuses a row whose unique key is taken, and poisons the transaction' },
  },
  {
    sign: 'POOL_EXHAUSTED',
    name: 'no turn within the wait',
    connecting: 'surface',
    why: 'Waiting again would only lengthen the queue.',
    evidence: { triggered: 'gives up after its wait, and leaves the queue in order' },
  },
  {
    sign: 'QUEUE_FULL',
    name: 'too many wait',
    connecting: 'surface',
    why: 'A bounded queue refuses instead of growing.',
    evidence: { triggered: 'refuses one more than may wait' },
  },
  {
    sign: 'SAVEPOINT_ORDER',
    name: 'a savepoint was not awaited',
    committing: 'surface',
    why: 'COMMIT was not sent: half of what the savepoint does would have been stored.',
    evidence: { triggered: 'does not commit while a savepoint is open that the body did not await' },
  },
  {
    sign: 'TRANSACTION_ABORTED',
    name: 'the record of the key was changed past the transaction',
    committing: 'repeat',
    why: 'COMMIT looks before it writes, so nothing was stored; the next attempt meets the record that is there now.',
    evidence: { triggered: 'does not commit over a record that came past it, and meets that one in the next attempt' },
  },
  {
    sign: 'TRANSACTION_ENDED_ELSEWHERE',
    name: 'commit of a transaction that is over',
    committing: 'halt',
    why: 'Only the runner ends a transaction, once.',
    evidence: { triggered: 'does not commit what was rolled back' },
  },
]
