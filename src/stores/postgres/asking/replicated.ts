// Whether what was committed is where COMMIT promised it to be: with the synchronous standbys too, where there are any.
//
// A server that waits for its standbys has the commit on its own disk already. Whoever ends that wait makes it visible
// there alone, and a failover would lose it.

import type { PostgresNotice, PostgresPoolClient } from '../options.js'

/**
 * Whether a notice says that the wait for standbys was cancelled. By the function's name: a trigger of the user's may
 * warn with the same code, and messages are translated.
 */
export function isUnreplicated({ routine }: PostgresNotice): boolean {
  return routine === 'SyncRepWaitForLSN'
}

/** Calls the listener with each notice of a connection, until the function that is returned is called. */
export function heedNotices(client: PostgresPoolClient, listener: (notice: PostgresNotice) => void): () => void {
  const source = client as unknown as NoticeSource
  source.on('notice', listener)
  return () => void source.removeListener('notice', listener)
}

/** A connection, as far as it tells of notices. */
export interface NoticeSource {
  on(event: 'notice', listener: (notice: PostgresNotice) => void): unknown
  removeListener(event: 'notice', listener: (notice: PostgresNotice) => void): unknown
}

/**
 * Waits until everything that was committed before is with the synchronous standbys: it writes something of no meaning
 * into the log, which comes after all of that, and its own commit waits for them. False: that wait was cancelled too.
 * Where there are none to wait for, nothing is written.
 */
export async function untilReplicated(client: PostgresPoolClient): Promise<boolean> {
  let replicated = true
  const stop = heedNotices(client, (notice) => {
    if (isUnreplicated(notice)) replicated = false
  })
  try {
    await client.query(barrier)
    return replicated
  } finally {
    stop()
  }
}

const barrier = `SELECT pg_logical_emit_message(true, 'reprise', '') FROM pg_settings
  WHERE name = 'synchronous_standby_names' AND setting <> ''`
