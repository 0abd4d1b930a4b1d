// The classification table of PostgreSQL. Each row says why, and which test triggers it.

import type { ClassificationRow } from '../../atomicity/index.js'
import { again, lost, never, type PhaseWords } from '../sql/index.js'

const alarming: PhaseWords = { connecting: 'halt', body: 'halt', committing: 'resolve' }

/** A row that the test `triggers <sign>` produces. */
function row(sign: string, name: string, words: PhaseWords, why: string): ClassificationRow {
  return { sign, name, ...words, why, evidence: { triggered: `triggers ${sign}` } }
}

/** A row whose cause cannot be had on demand; the test has a function of the server raise it. */
function raised(sign: string, name: string, words: PhaseWords, why: string): ClassificationRow {
  return { sign, name, ...words, why, evidence: { triggered: `triggers ${sign}, raised by a function` } }
}

/** A row that a test of another file meets. */
function elsewhere(sign: string, name: string, words: PhaseWords, why: string, triggered: string): ClassificationRow {
  return { sign, name, ...words, why, evidence: { triggered } }
}

function unproducible(
  sign: string,
  name: string,
  words: PhaseWords,
  why: string,
  notProducible: string,
): ClassificationRow {
  return { sign, name, ...words, why, evidence: { notProducible } }
}

/** What each SQLSTATE, and each sign of the driver, means for the transaction it happened in. */
export const postgresTable: readonly ClassificationRow[] = [
  row(
    '40001',
    'serialization_failure',
    again,
    'A definite abort; the manual says to retry the whole transaction. Comes at COMMIT too.',
  ),
  row('40P01', 'deadlock_detected', again, 'A definite abort. Without jitter the same two collide again.'),
  raised('40000', 'transaction_rollback', again, 'Rolled back.'),
  raised(
    '40002',
    'transaction_integrity_constraint_violation',
    never,
    'A definite abort that the same input meets again.',
  ),
  raised(
    '40003',
    'statement_completion_unknown',
    { body: 'resolve', committing: 'resolve' },
    'Its name says it; CockroachDB and poolers send it.',
  ),
  row(
    '23*',
    'integrity_constraint_violation',
    never,
    'A definite abort that the same input meets again; deferred constraints raise it at COMMIT.',
  ),
  {
    ...row(
      '55P03',
      'lock_not_available',
      again,
      'lock_timeout or NOWAIT; the transaction is aborted, and the lock may be free next time.',
    ),
    blocked: true,
  },
  row('57014', 'query_canceled', never, 'Our own deadline or an operator; as an ERROR a definite abort.'),
  row(
    '57P01',
    'admin_shutdown',
    lost,
    'Before the commit record it aborts, while waiting for replicas it is committed: only asking tells.',
  ),
  elsewhere(
    '57P02',
    'crash_shutdown',
    lost,
    'Its text claims a rollback also where the transaction is committed. It comes as a notice, then the connection ends, and connection-lost is what decides.',
    'a sibling killed -9 after the record, with a key: committed',
  ),
  row('57P03', 'cannot_connect_now', lost, 'Starting, stopping or recovering.'),
  raised('57P04', 'database_dropped', alarming, 'The database is gone.'),
  elsewhere(
    '57P05',
    'idle_session_timeout',
    lost,
    'The server closed an idle connection, before the first statement of a body.',
    'that ends idle sessions may end it before the first statement: it is repeated on another connection',
  ),
  row('3D000', 'invalid_catalog_name', alarming, 'There is no such database.'),
  row('28*', 'invalid_authorization_specification', alarming, 'The server refuses us.'),
  row('25P01', 'no_active_sql_transaction', { body: 'halt', committing: 'halt' }, 'The transaction ended elsewhere.'),
  row('25P02', 'in_failed_sql_transaction', never, 'Follows another error, and that one decides.'),
  {
    ...row(
      '25P03',
      'idle_in_transaction_session_timeout',
      { body: 'surface', committing: 'resolve' },
      'The body was idle for longer than the whole call may take: the limit is the call’s own, and callers see DEADLINE_EXCEEDED.',
    ),
    expired: true,
  },
  raised(
    '25P04',
    'transaction_timeout',
    never,
    'Switched off just before the commit record, so a definite abort. PostgreSQL 17.',
  ),
  row(
    '25006',
    'read_only_sql_transaction',
    { connecting: 'reconnect', body: 'reconnect', committing: 'surface' },
    'A standby, after a failover; another connection may find the primary.',
  ),
  row('53300', 'too_many_connections', lost, 'Another time there may be a place.'),
  raised('53200', 'out_of_memory', lost, 'Another time there may be room.'),
  raised('53100', 'disk_full', alarming, 'Somebody must make room.'),
  raised('58030', 'io_error', alarming, 'Somebody must look at the disk.'),
  raised('08*', 'connection_exception', lost, 'The connection, or a pooler’s connection behind it, is gone.'),
  row(
    '08P01',
    'protocol_violation',
    lost,
    'PgBouncer answers with it, as FATAL, whatever went wrong between it and the server; the test ends the server’s session behind a real one. In answer to COMMIT it is fatal-at-commit.',
  ),
  row(
    'values-mismatch',
    'protocol_violation of a statement whose values are too many or too few',
    { body: 'surface' },
    'The same code as that of a pooler whose server is gone, and here the body’s own mistake: the connection is sound, and the same statement meets it again.',
  ),
  raised('08007', 'transaction_resolution_unknown', { body: 'resolve', committing: 'resolve' }, 'Its name says it.'),
  raised(
    'XX*',
    'internal_error',
    { connecting: 'halt', body: 'surface', committing: 'resolve' },
    'Some poolers use it as well.',
  ),
  row(
    'cached-plan-changed',
    'cached plan must not change result type',
    { body: 'reconnect' },
    'A prepared statement from before a change of the schema; another connection has none.',
  ),
  row(
    '26000',
    'invalid_sql_statement_name',
    { body: 'reconnect', committing: 'reconnect' },
    'A prepared statement that this backend does not know: a pooler changed it. Before COMMIT, in its message, it means that COMMIT was not reached.',
  ),
  row(
    '42P05',
    'duplicate_prepared_statement',
    { body: 'reconnect' },
    'A prepared statement of somebody else: a pooler changed the backend.',
  ),
  row(
    'fatal-at-commit',
    'any FATAL or PANIC in answer to COMMIT',
    { committing: 'resolve' },
    'The connection ends at a point that the code does not tell.',
  ),
  row('fatal', 'any other FATAL or PANIC', { connecting: 'reconnect', body: 'reconnect' }, 'The connection is gone.'),
  row(
    'error-at-commit',
    'any other ERROR in answer to COMMIT',
    { committing: 'surface' },
    'After the commit record an error would be a PANIC.',
  ),
  row(
    'connection-lost',
    'the connection ended, or cannot be used',
    lost,
    'The same error stands for aborted, still running and committed.',
  ),
  row('connection-refused', 'nobody answers at that address', lost, 'The server is not up, or not there.'),
  row(
    'query-timeout',
    'the driver’s query_timeout',
    { body: 'reconnect', committing: 'resolve' },
    'The server goes on, and may commit later.',
  ),
  row(
    'CONNECT_TIMEOUT',
    'a connection took too long to make, or to answer BEGIN',
    { connecting: 'reconnect' },
    'Nothing was begun.',
  ),
  row(
    'POOL_EXHAUSTED',
    'all connections are taken',
    { connecting: 'surface' },
    'More tries would only lengthen the queue.',
  ),
  elsewhere(
    'COMMITS_UNANSWERED',
    'connections that were given up still keep their places on the server',
    { connecting: 'surface' },
    'Each new connection would be one more that waits for the same standby.',
    'leaves no more backends behind than the pool has places, and says so fast',
  ),
  elsewhere(
    'TIMELINE_PASSED',
    'an old primary, after another server was promoted',
    { connecting: 'reconnect', body: 'reconnect' },
    'What it commits is on no server that counts; another connection may find the new primary.',
    'does not write to an old primary that came back',
  ),
  row(
    'POOLING_UNSUPPORTED',
    'a pooler that hands out connections by the statement',
    { connecting: 'halt' },
    'No transaction can hold behind it.',
  ),
  {
    ...row(
      'COMMIT_ROLLED_BACK',
      'COMMIT answered with ROLLBACK',
      { committing: 'surface' },
      'A statement had failed before; the driver takes it for a success. The first error says whether another try would help.',
    ),
    first: true,
  },
  {
    ...row(
      'TRANSACTION_ABORTED',
      'a statement failed before COMMIT was sent',
      never,
      'COMMIT was not sent. The first error says whether another try would help.',
    ),
    first: true,
  },
  unproducible(
    'COMMIT_UNCLEAR',
    'COMMIT answered with neither COMMIT nor ROLLBACK',
    { committing: 'resolve' },
    'Somebody else answered in the place of the server.',
    'no server or pooler at hand answers COMMIT with another tag',
  ),
  elsewhere(
    'committed-locally',
    'COMMIT answered, its wait for replicas cancelled',
    { committing: 'done' },
    'The commit record is on this server, and no replica has confirmed it: a success, and an event on `reprise.transaction.local`.',
    'and is cancelled has happened, here alone',
  ),
  row(
    'SAVEPOINT_ORDER',
    'a savepoint was not awaited',
    never,
    'COMMIT was not sent: half of what the savepoint does would have been stored.',
  ),
  row('pool-ended', 'the pool was ended', { connecting: 'surface' }, 'Somebody called pool.end().'),
  row('STORE_CLOSED', 'the store was closed', { connecting: 'surface' }, 'Somebody called close().'),
  row(
    'TRANSACTION_ENDED_ELSEWHERE',
    'no transaction was open at COMMIT',
    { body: 'halt', committing: 'halt' },
    'COMMIT outside of a transaction is answered with COMMIT and a mere warning.',
  ),
  row(
    'TRANSACTION_READ_ONLY',
    'a write in a transaction that was declared read-only',
    never,
    'The same 25006 that a standby answers, but asked for with `readOnly`; another server would refuse it too.',
  ),
]
