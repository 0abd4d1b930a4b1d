// What identifies a transaction on its server, taken with BEGIN, at the price of no round trip.
//
// The transaction's number and the backend are taken every time. When the backend was started, and which system, life and timeline of it it belongs to, costs as much
// again, and does not change while the backend is the same one and can write: a timeline begins where recovery ends, and in recovery no transaction has a number.
// Behind a pooler it may be another backend each time, and then all of it is taken each time.

import type { Trace } from '../../../atomicity/index.js'
import { lastOf } from '../handle.js'
import type { PostgresPoolClient } from '../options.js'

/** What is known of the servers behind the connections. */
export interface Traces {
  /** What to ask in the same message as BEGIN; undefined: nothing. */
  statement(client: PostgresPoolClient, traced: boolean): string | undefined
  /** The trace of the transaction that was begun, out of the answer. */
  take(client: PostgresPoolClient, row: Readonly<Record<string, unknown>>): Trace | Promise<Trace>
  /** The backend of a connection, where it is known and was never seen to change. */
  pidOf(client: PostgresPoolClient): string | undefined
}

interface Known {
  readonly pid: string
  readonly start: string
  readonly system: string
  readonly life: string
  readonly timeline: string
  /** Whether the backend of this connection was seen to change. */
  readonly changes: boolean
}

// Without casts, which cost the server more than the driver's reading of a number.
const each = 'SELECT pg_current_xact_id() AS xid, pg_backend_pid() AS pid'

/**
 * The server's life between two crashes, told by its statistics, which a crash throws away: after a crash the number of a transaction that had written nothing
 * to disk is handed out again, on the same timeline.
 */
export const life: string = `(extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()) * 1000000)::bigint::text`

const once = `(SELECT (extract(epoch FROM backend_start) * 1000000)::bigint::text FROM pg_stat_get_activity(pg_backend_pid())) AS start,
  (SELECT system_identifier::text FROM pg_control_system()) AS system, ${life} AS life,
  left(pg_walfile_name(pg_current_wal_lsn()), 8) AS timeline`

/** The traces of a store. */
export function tracesOf(): Traces {
  const known = new WeakMap<object, Known>()
  return {
    statement(client, traced) {
      const before = known.get(client)
      // The first transaction of a connection is always traced, so that its backend is known.
      if (before === undefined || (traced && before.changes)) return `${each}, ${once}`
      return traced ? each : undefined
    },
    pidOf(client) {
      const before = known.get(client)
      return before?.changes === false ? before.pid : undefined
    },
    take(client, row) {
      const xid = String(row['xid'])
      const pid = String(row['pid'])
      const before = known.get(client)
      if (before?.pid === pid && !before.changes) {
        const { start, system, life, timeline } = before
        return { xid, pid, timeline, start, system, life }
      }
      return takeAll(client, xid, pid, row)
    },
  }

  async function takeAll(
    client: PostgresPoolClient,
    xid: string,
    pid: string,
    row: Readonly<Record<string, unknown>>,
  ): Promise<Trace> {
    // Another backend than the last time, so there is a pooler in between: asked once more, and from now on each time.
    const full = row['start'] === undefined ? lastOf(await client.query(`SELECT ${once}`)).rows[0] : row
    const start = String(full?.['start'])
    const system = String(full?.['system'])
    const life = String(full?.['life'])
    const timeline = String(full?.['timeline'])
    known.set(client, { pid, start, system, life, timeline, changes: known.has(client) })
    return { xid, pid, timeline, start, system, life }
  }
}
