// What identifies a transaction on its server, taken with BEGIN, at the price of no round trip.
//
// The transaction's number and the backend are taken every time. When the backend was started, and to which system,
// life and timeline it belongs, costs as much again, and does not change while the backend is the same one and can
// write: a timeline begins where recovery ends, and in recovery no transaction has a number. Behind a pooler it may be
// another backend each time, and then all of it is taken each time.

import type { Trace } from '../../../atomicity/index.js'
import { signsOf } from '../classification.js'
import { type Backend, knownConnection } from '../connection/connections.js'
import { lastOf } from '../handle.js'
import type { PostgresPoolClient } from '../options.js'

/**
 * Asks for the number of a transaction whose backend is known. Without casts, which cost the server more than the
 * driver.
 */
export const askNumber: string = 'SELECT pg_current_xact_id() AS xid, pg_backend_pid() AS pid'

/**
 * The server's life between two crashes, told by its statistics, which a crash throws away: after a crash the number of
 * a transaction that had written nothing to disk is handed out again, on the same timeline.
 */
export const life: string = `(extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()) * 1000000)::bigint::text`

/** The answers to {@link askNumber} and {@link askAll}, in their order. */
const answers = ['xid', 'pid', 'start', 'system', 'life', 'timeline'] as const

/** The same as a row, out of cells that have no names. */
export function rowOfTrace(cells: readonly (string | null)[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(cells.map((cell, place) => [answers[place], cell]))
}

const ofBackend = `(SELECT (extract(epoch FROM backend_start) * 1000000)::bigint::text FROM pg_stat_get_activity(pg_backend_pid())) AS start,
  (SELECT system_identifier::text FROM pg_control_system()) AS system, ${life} AS life,
  CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline`

/** Asks for everything. */
export const askAll: string = `${askNumber}, ${ofBackend}`

/** The trace of the transaction that was begun, out of the answer to {@link askNumber} or {@link askAll}. */
export async function takeTrace(
  client: PostgresPoolClient,
  row: Readonly<Record<string, unknown>> = {},
): Promise<Trace> {
  const known = knownConnection(client)
  const before = known.backend
  const xid = String(row['xid'])
  const pid = String(row['pid'])
  if (before !== undefined && before.pid === pid && !before.changes) {
    const { start, system, life, timeline } = before
    return { xid, pid, timeline, start, system, life }
  }
  // Another backend than the last time, so there is a pooler in between: asked once more, and from now on each time.
  const full = row['start'] === undefined ? lastOf(await client.query(`SELECT ${ofBackend}`)).rows[0] : row
  const start = String(full?.['start'])
  const system = String(full?.['system'])
  const life = String(full?.['life'])
  const timeline = String(full?.['timeline'])
  known.backend = { pid, start, system, life, timeline, changes: before !== undefined }
  return { xid, pid, timeline, start, system, life }
}

/** Asks once for what does not change while the backend is the same one; empty where the role may not ask. */
export async function learnBackend(client: PostgresPoolClient): Promise<Backend> {
  const known = knownConnection(client)
  if (known.backend === undefined) {
    try {
      await takeTrace(
        client,
        lastOf(await client.query(`SELECT '' AS xid, pg_backend_pid() AS pid, ${ofBackend}`)).rows[0],
      )
    } catch (error) {
      if (!signsOf(error).includes('42501')) throw error
    }
  }
  known.backend ??= unreadableBackend(client)
  return known.backend
}

/** What stands for a backend of which the role may not ask where it stands: its transactions cannot be resolved. */
export function unreadableBackend(client: PostgresPoolClient): Backend {
  const pid = String((client as { readonly processID?: unknown }).processID)
  return { pid, start: '', system: '', life: '', timeline: '', changes: false }
}
