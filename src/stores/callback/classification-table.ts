// The classification table of errors that come through an ORM. Short: what it does not list is the body's own, or is
// resolved while committing.

import type { ClassificationRow } from '../../atomicity/index.js'
import { again, lost, never, type PhaseWords } from '../sql/index.js'

/** A row that the test `triggers <sign> through a callback` produces. */
function row(sign: string, name: string, words: PhaseWords, why: string): ClassificationRow {
  return { sign, name, ...words, why, evidence: { triggered: `triggers ${sign} through a callback` } }
}

const prisma = 'Prisma’s own code, thrown by the test in its shape: '

/** What each error means that an ORM hands through or makes of its own. */
export const callbackTable: readonly ClassificationRow[] = [
  row('40001', 'serialization_failure', again, 'A definite abort; comes at COMMIT too.'),
  row('40P01', 'deadlock_detected', again, 'A definite abort.'),
  row('P2034', 'write conflict or deadlock (Prisma)', again, `${prisma}what the engine says under 40001 and 40P01.`),
  {
    ...row('55P03', 'lock_not_available', again, 'The lock time-out that was set for the transaction, or NOWAIT.'),
    blocked: true,
  },
  {
    ...row(
      'SQLITE_BUSY*',
      'somebody else writes (SQLite)',
      { connecting: 'repeat', body: 'repeat' },
      'The lock of the file was not granted within the busy time-out of the ORM’s connection.',
    ),
    blocked: true,
  },
  row('23*', 'integrity_constraint_violation', never, 'The same input meets it again; deferred ones come at COMMIT.'),
  row('SQLITE_CONSTRAINT*', 'a constraint (SQLite)', never, 'The same input meets it again.'),
  row('P2002', 'unique constraint (Prisma)', never, `${prisma}the same input meets it again.`),
  row('25P02', 'in_failed_sql_transaction', { body: 'surface' }, 'Follows another error that the body swallowed.'),
  row('25P03', 'idle_in_transaction_session_timeout', { body: 'surface' }, 'The body was idle for too long.'),
  row('57014', 'query_canceled', { body: 'surface' }, 'Our own limit of a statement, or an operator.'),
  row('57P*', 'operator_intervention', lost, 'The server ended the connection.'),
  row('08*', 'connection_exception', lost, 'The connection is gone, or a pooler says so.'),
  row('53300', 'too_many_connections', lost, 'Another time there may be a place.'),
  row('connection-lost', 'the connection ended, or cannot be made', lost, 'The same for all outcomes.'),
  row('P1017', 'the server closed the connection (Prisma)', lost, `${prisma}the same for all outcomes.`),
  row('P2024', 'no connection in time (Prisma)', { connecting: 'surface' }, `${prisma}more tries lengthen the queue.`),
  row('P2028', 'transaction API error (Prisma)', { body: 'surface' }, `${prisma}its own limits ended the transaction.`),
  row('POOL_EXHAUSTED', 'no transaction in time', { connecting: 'surface' }, 'More tries would lengthen the queue.'),
  row('QUEUE_FULL', 'too many wait', { connecting: 'surface' }, 'A bounded queue refuses instead of growing.'),
  row('STORE_CLOSED', 'the store was closed', { connecting: 'surface' }, 'Somebody called close().'),
  {
    ...row(
      'TRANSACTION_ABORTED',
      'an error came before the work was allowed to return',
      never,
      'The work did not return, so nothing was committed; the first error says whether another try would help.',
    ),
    first: true,
  },
  row('MARKER_INVALID', 'the claim is gone', never, 'The work was not allowed to return.'),
  row(
    'TRANSACTION_ENDED_ELSEWHERE',
    'the transaction ended under its body',
    { body: 'halt', committing: 'halt' },
    'The body, or the transaction function, ended it before it was told to.',
  ),
]
