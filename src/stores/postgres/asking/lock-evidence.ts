// What speaks for each of the usual causes of lock time-outs, as the server shows it in the middle of a wait. Numbers
// of sessions and rows, and names of tables; no statement and no value of one is read.

import type { LockEvidence } from '../../../atomicity/index.js'

/** What the server tells about a wait for a lock. */
export interface LockFacts {
  /** All that stand before the session that waits, directly or behind one another. */
  readonly sessions: readonly SessionFacts[]
  /** The tables that they hold locks for writing on, and that are read in full, the most read first. */
  readonly scans: readonly ScanFacts[]
  /** How many connections the server has. */
  readonly clients: number
  /** How many it takes of those who are no superusers. */
  readonly places: number
}

interface SessionFacts {
  readonly session: string
  /** What it is doing; null where the role may not see it. */
  readonly state: string | null
  /** How long its transaction has been open, in ms; null where the role may not see it. */
  readonly openMs: number | null
  /** For how long it has been in its state, in ms; null as above. */
  readonly stateMs: number | null
  /** Whether it waits for a lock that the session that waits for it has. */
  readonly waitsForUs: boolean
  /** How many different rows others wait for until it ends. */
  readonly rows: number
  /** The table that is waited for as a whole, and how it is locked; null where it is not. */
  readonly table: string | null
  readonly mode: string | null
}

interface ScanFacts {
  readonly table: string
  /** How often it was read in full, and by an index, since its statistics began. */
  readonly scans: number
  readonly indexScans: number
  /** How many rows each of those reads went through. */
  readonly rows: number
}

/** What is known without the server. */
export interface LockWaitFacts {
  readonly pid: string
  /** How long the wait may take in all, in ms. */
  readonly waitMs: number
  /** How many deadlocks of the domain the server has cut lately. */
  readonly deadlocks: number
  /** The most connections that the pool makes. */
  readonly poolMax: number
}

/** A transaction that is open for less, in ms, is not long, however short the wait was. */
const leastLongMs = 1_000
/** A transaction that others wait for on fewer rows is like any other. */
const leastBatchRows = 3
/** The share of the server's connections from which on it is nearly full. */
const fullShare = 0.8

/** What the facts say of each cause, in the order of the causes. Pure. */
export function evidenceIn({ sessions, scans, clients, places }: LockFacts, wait: LockWaitFacts): LockEvidence[] {
  const { pid, waitMs, deadlocks, poolMax } = wait
  const found: LockEvidence[] = []
  const say = (cause: LockEvidence['cause'], sentence: string): void => void found.push({ cause, sentence })
  for (const { session, openMs, state, stateMs } of sessions) {
    if (openMs === null || openMs < Math.max(leastLongMs, waitMs)) continue
    const idle = state?.startsWith('idle in transaction') && stateMs !== null ? `, idle for ${stateMs} ms of it` : ''
    say('long-transaction', `The transaction of session ${session} has been open for ${openMs} ms${idle}.`)
  }
  for (const { table, scans: times, indexScans, rows } of scans) {
    const how = `${times} times in full, ${rows} rows each, and ${indexScans} times by an index`
    say('missing-index', `Table ${table}, which they hold locks on, was read ${how}.`)
  }
  for (const { session, waitsForUs } of sessions) {
    if (waitsForUs) say('lock-order', `Session ${session} waits for a lock of session ${pid}, which waits behind it.`)
  }
  if (deadlocks > 0) say('lock-order', `The server cut ${deadlocks} deadlock(s) of this domain within a minute.`)
  for (const { session, rows, table, mode } of sessions) {
    if (rows >= leastBatchRows) say('batch', `Others wait for ${rows} different rows until session ${session} ends.`)
    if (table !== null) say('batch', `Session ${session} has the whole table ${table} locked (${mode}).`)
  }
  if (poolMax > places || clients >= places * fullShare) {
    say('pool', `This pool may make ${poolMax} connections; the server takes ${places} in all, and has ${clients}.`)
  }
  return found
}

// Locks on a table: of those who lock or write some of its rows, and of those who keep all other writers out.
const writing = `'RowShareLock', 'RowExclusiveLock'`
const whole = `'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'`

/**
 * The statement that asks for the facts, as one column `facts`. The locks are read once; `pg_blocking_pids` holds up
 * the lock manager, so a chain of sessions is followed for four steps, and for twenty sessions. A table counts as read
 * in full from three reads of 1,000 rows on; where the server knows when (PostgreSQL 16), one within ten minutes.
 *
 * @param pid The backend that waits.
 */
export function lockFactsText(pid: string): string {
  const us = Math.trunc(Number(pid))
  return `WITH RECURSIVE chain(pid, behind, depth) AS (
    SELECT b.pid, ${us}, 1 FROM unnest(pg_blocking_pids(${us})) AS b(pid)
    UNION SELECT b.pid, c.pid, c.depth + 1 FROM chain c, unnest(pg_blocking_pids(c.pid)) AS b(pid)
    WHERE c.depth < 4 AND c.pid <> ${us}
  ), before AS (
    SELECT pid, min(depth) AS depth FROM chain WHERE pid <> ${us} GROUP BY pid ORDER BY 2, 1 LIMIT 20
  ), locks AS MATERIALIZED (
    SELECT * FROM pg_locks
  ), sessions AS (
    SELECT b.pid::text AS session, a.state,
      (extract(epoch FROM clock_timestamp() - a.xact_start) * 1000)::bigint AS "openMs",
      (extract(epoch FROM clock_timestamp() - a.state_change) * 1000)::bigint AS "stateMs",
      EXISTS (SELECT FROM chain c WHERE c.pid = ${us} AND c.behind = b.pid) AS "waitsForUs",
      (SELECT count(DISTINCT (t.relation, t.page, t.tuple)) FROM locks h
        JOIN locks w ON w.locktype = 'transactionid' AND NOT w.granted AND w.transactionid = h.transactionid
        JOIN locks t ON t.locktype = 'tuple' AND t.granted AND t.pid = w.pid
        WHERE h.pid = b.pid AND h.locktype = 'transactionid' AND h.granted) AS rows,
      held.name AS "table", held.mode
    FROM before b JOIN pg_stat_activity a ON a.pid = b.pid LEFT JOIN LATERAL (
      SELECT h.relation::regclass::text AS name, h.mode FROM locks w
      JOIN locks h ON h.locktype = 'relation' AND h.granted AND h.database = w.database AND h.relation = w.relation
      WHERE w.pid = ${us} AND w.locktype = 'relation' AND NOT w.granted AND h.pid = b.pid AND h.mode IN (${whole}) LIMIT 1
    ) held ON true ORDER BY b.depth, b.pid
  ), scans AS (
    SELECT s.relid::regclass::text AS "table", s.seq_scan AS scans, coalesce(s.idx_scan, 0) AS "indexScans",
      s.seq_tup_read / s.seq_scan AS rows
    FROM pg_stat_user_tables s WHERE s.seq_scan >= 3 AND s.seq_tup_read / s.seq_scan >= 1000
      AND coalesce((to_jsonb(s)->>'last_seq_scan')::timestamptz > clock_timestamp() - interval '10 minutes', true)
      AND s.relid IN (SELECT l.relation FROM locks l JOIN before b ON b.pid = l.pid WHERE l.locktype = 'relation'
        AND l.granted AND l.mode IN (${writing}, ${whole})
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()))
    ORDER BY s.seq_tup_read DESC LIMIT 5
  ) SELECT json_build_object(
    'sessions', coalesce((SELECT json_agg(s) FROM sessions s), '[]'),
    'scans', coalesce((SELECT json_agg(s) FROM scans s), '[]'),
    'clients', (SELECT count(*) FROM pg_stat_activity
      WHERE coalesce(backend_type = 'client backend', datid IS NOT NULL)),
    'places', current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
      - coalesce(current_setting('reserved_connections', true), '0')::integer
  ) AS facts`
}
