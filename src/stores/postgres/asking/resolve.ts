// What became of a transaction without a key: pg_xact_status, within the limits in which it tells the truth.

import type { Trace } from '../../../atomicity/index.js'
import { type Clock, inTime, RepriseError, sleep } from '../../../kernel/index.js'
import { signsOf } from '../classification.js'
import type { PostgresPoolClient } from '../options.js'
import { untilReplicated } from './replicated.js'
import { life } from './trace.js'

/** What was found out. */
export type ResolvedTrace = 'committed' | 'aborted' | 'unknown'

/**
 * How long a transaction may stay in progress before its backend is ended: its COMMIT may still be on the way through a
 * buffer, in ms.
 */
const graceMs = 500

/** The longest wait between two looks, in ms. */
const longestPauseMs = 100

/**
 * Asks until the transaction has ended. `unknown` where the server cannot know: it is in recovery, it is another one or
 * on another timeline (after a failover the same number may be another transaction), the number lies in its future, or
 * its past is forgotten. After a crash a number that committed may be another transaction's too. A transaction that
 * stays in progress is ended, and only while its backend still has it; one whose COMMIT waits for a synchronous standby
 * is left to wait. It counts as committed when the standbys have it. Throws DEADLINE_EXCEEDED where that cannot be seen
 * in time; the connection cannot be used again then.
 */
export async function resolveTrace(
  client: PostgresPoolClient,
  trace: Trace,
  limitMs: number,
  clock: Clock,
): Promise<ResolvedTrace> {
  const known = ['xid', 'pid', 'start', 'system', 'timeline', 'life']
  // Empty where the role may not ask for it.
  if (known.some((part) => (trace[part] ?? '') === '')) return 'unknown'
  const beganMs = clock.monotonicMs()
  let ended = false
  for (let pauseMs = 5; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    const seen = await look(client, trace)
    const passedMs = clock.monotonicMs() - beganMs
    if (seen === 'committed') {
      const limits = { clock, limitMs: limitMs - passedMs, expired: standbyMissing }
      // Somebody may have ended its wait.
      return (await inTime(limits, untilReplicated(client))) ? seen : 'unknown'
    }
    if (seen !== 'in progress') return seen
    if (passedMs >= limitMs) return 'unknown'
    if (!ended && passedMs >= Math.min(graceMs, limitMs / 2)) {
      ended = await endBackend(client, trace)
    }
    await sleep(Math.min(pauseMs, Math.max(1, limitMs - passedMs)), { clock })
  }
}

async function look(client: PostgresPoolClient, trace: Trace): Promise<ResolvedTrace | 'in progress'> {
  try {
    // One statement, so that behind a pooler all of it comes from one server.
    const { rows } = await client.query(lookStatement, [trace['xid']])
    const [row] = rows
    if (row === undefined || row['system'] !== trace['system'] || row['timeline'] !== trace['timeline'])
      return 'unknown'
    const status = row['status']
    // What a crash left of our transaction may be nothing, not even its number; had it committed, nobody else could
    // have it.
    if (status === 'committed' && row['life'] !== trace['life']) return 'unknown'
    return status === 'committed' || status === 'aborted' || status === 'in progress' ? status : 'unknown'
  } catch (error) {
    // "Transaction ID is in the future": this server never had it.
    if (signsOf(error).includes('22023')) return 'unknown'
    throw error
  }
}

const lookStatement = `SELECT (SELECT system_identifier::text FROM pg_control_system()) AS system, ${life} AS life,
  CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline,
  CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_xact_status($1::xid8) END AS status`

// One that waits for a standby has committed already. To end it would only make that visible before the standby has it.
async function endBackend(client: PostgresPoolClient, { pid, start, xid }: Trace): Promise<boolean> {
  const { rows } = await client.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE pid = $1::integer AND (extract(epoch FROM backend_start) * 1000000)::bigint::text = $2
       AND backend_xid::text = ($3::numeric % 4294967296)::text AND wait_event IS DISTINCT FROM 'SyncRep'`,
    [pid, start, xid],
  )
  return rows.length > 0
}

function standbyMissing(): RepriseError {
  const message = 'The transaction is committed on the primary, and no synchronous standby confirmed it in time.'
  return new RepriseError('DEADLINE_EXCEEDED', message)
}
