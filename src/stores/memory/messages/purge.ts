// What a store in memory forgets of messages.

import type { Row } from '../../../atomicity/index.js'
import type { MessagePurgeQuery, MessagesPurged } from '../../../messaging/index.js'
import type { Views } from '../tables.js'
import { allOf, comparePlaces, laneOf, laneState, messageOf, oneOf, placeOf } from './rows.js'
import { messageTables } from './tables.js'

const { head, message, reader, lane, processed, deadLetter } = messageTables
const leastHeadMs = 60_000

/** Forgets what is past its time, in one small batch. */
export function purge(views: Views, query: MessagePurgeQuery, nowMs: number): MessagesPurged {
  const { sentAfterMs, processedAfterMs, headsAfterMs, lettersAfterMs, limit } = query
  const untilMs = (afterMs: number | undefined): number => (afterMs === undefined ? -Infinity : nowMs - afterMs)
  const names = allOf(views.view(reader), { reads: 'outbox' }).map((row) => String(row['name']))
  // Where nobody reads, nobody has done anything.
  const isDone = (row: Row): boolean =>
    names.length > 0 &&
    names.every((name) => {
      const done = laneOf(views, name, String(row['key']))?.done
      return done !== undefined && comparePlaces(placeOf(row), done) <= 0
    })
  const old = (table: string, column: string, afterMs: number | undefined, also: (row: Row) => boolean = () => true) =>
    afterMs === undefined
      ? []
      : allOf(views.view(table), {})
          .filter((row) => Number(row[column]) < untilMs(afterMs) && also(row))
          .slice(0, limit)
  const sent = old(message, 'at_ms', sentAfterMs, isDone)
  for (const row of sent) {
    rememberVersion(views, row)
    views.view(message).remove(row.rowId)
  }
  // What a reader counts on is never forgotten.
  const memoryMs = allOf(views.view(reader), {}).reduce((most, row) => Math.max(most, Number(row['memory_ms'] ?? 0)), 0)
  const known = old(
    processed,
    'at_ms',
    processedAfterMs === undefined ? undefined : Math.max(processedAfterMs, memoryMs),
  )
  for (const row of known) views.view(processed).remove(row.rowId)
  const idleMs = headsAfterMs === undefined ? undefined : Math.max(headsAfterMs, leastHeadMs)
  const idle = old(head, 'at_ms', idleMs, (row) => isForgettable(views, row))
  for (const row of idle) {
    for (const at of allOf(views.view(lane), { key: String(row['key']) })) {
      if (names.includes(String(at['reader']))) views.view(lane).remove(at.rowId)
    }
    views.view(head).remove(row.rowId)
  }
  const lanes = idleMs === undefined ? [] : inboxLanes(views, nowMs - Math.max(idleMs, memoryMs)).slice(0, limit)
  for (const row of lanes) views.view(lane).remove(row.rowId)
  const closed = old(deadLetter, 'last_at_ms', lettersAfterMs, (row) => row['state'] === 'closed')
  for (const row of closed) views.view(deadLetter).remove(row.rowId)
  return { messages: sent.length, processed: known.length, heads: idle.length + lanes.length, letters: closed.length }
}

// Lanes of keys from brokers in which nothing waits. One without numbers holds nothing; one with numbers tells which
// message is late, and stays for its time.
function inboxLanes(views: Views, untilMs: number): readonly (Row & { readonly rowId: number })[] {
  return allOf(views.view(reader), { reads: 'inbox' }).flatMap((row) =>
    allOf(views.view(lane), { reader: String(row['name']), state: laneState.idle }).filter(
      (at) => at['epoch'] === 0 || (Number(at['due_at_ms']) > 0 && Number(at['due_at_ms']) < untilMs),
    ),
  )
}

function rememberVersion(views: Views, row: Row): void {
  const { version, key } = messageOf(row)
  const at = oneOf(views.view(head), { key })
  if (version === undefined || at === undefined) return
  views.view(head).update(at.rowId, { purged_version: Math.max(version, Number(at['purged_version'] ?? 0)) })
}

function isForgettable(views: Views, row: Row): boolean {
  const key = String(row['key'])
  if (row['purged_version'] !== null || views.view(message).find({ key }).length > 0) return false
  return allOf(views.view(lane), { key }).every((at) => at['state'] === laneState.idle)
}
