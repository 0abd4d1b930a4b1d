// Who stands before a session that waits for a lock. It has to be asked while it waits, from another connection:
// afterwards nobody blocks it.

import type { Blocker } from '../../../atomicity/index.js'
import type { Connections } from '../connection/connections.js'

/** How long the report itself may take, in ms; it is worth less than the answer it delays. */
const reportLimitMs = 500

/**
 * Asks who blocks a backend. Best effort: an empty list where no connection is to spare, or the answer takes too long.
 * Never throws.
 */
export async function blockersOf(connections: Connections, pid: string): Promise<readonly Blocker[]> {
  let client: Awaited<ReturnType<Connections['spare']>>
  try {
    client = await connections.spare({ waitMs: reportLimitMs })
    if (client === undefined) return []
    const { rows } = await client.query(statement, [pid])
    client.release()
    return rows.map(blockerOf)
  } catch {
    client?.release(true)
    return []
  }
}

// One simple round trip; the statement ends itself where the server is too busy to answer.
const statement = `SELECT a.pid::text AS session, coalesce(a.state, '') AS state, coalesce(a.application_name, '') AS application,
  greatest(0, extract(epoch FROM clock_timestamp() - coalesce(a.xact_start, a.backend_start)) * 1000)::bigint::text AS open_ms,
  (extract(epoch FROM coalesce(a.xact_start, a.backend_start)) * 1000)::bigint::text AS since_ms
  FROM unnest(pg_blocking_pids($1::integer)) AS b(pid) JOIN pg_stat_activity a ON a.pid = b.pid ORDER BY a.xact_start NULLS LAST LIMIT 20`

function blockerOf(row: Readonly<Record<string, unknown>>): Blocker {
  return {
    session: String(row['session']),
    openMs: Number(row['open_ms']),
    ...(row['since_ms'] === null ? {} : { openSinceMs: Number(row['since_ms']) }),
    state: String(row['state']),
    application: String(row['application']),
  }
}
