// What is known of readers as a whole, and what is forgotten: readers, messages that everybody has done, and what is
// old.

import type { MessagePurgeQuery, MessagesPurged, ReaderState } from '../../../messaging/index.js'
import type { Procedure } from '../records/procedures.js'
import { checkRows, storableMs } from '../records/rows.js'
import type { Query } from '../records/statements.js'
import type { Row } from './content.js'
import { asking, behind, counting, laneStates, type MessageSql, once } from './statements.js'

/** An idle head is kept for so long at least, in ms. */
const leastHeadMs = 60_000

/**
 * The state of all readers. Only lanes with work are looked at, by their index and by that of open letters, and of each
 * its first message: numbers have no gap, so that what is done and the last number tell how many there are. Only where
 * a lane has messages of several epochs, and in the inbox, they are counted.
 */
export function readerStates({ dialect, tables }: MessageSql): Query {
  const { reader, lane, dead_letter } = tables
  const parked = `SELECT DISTINCT d.reader, d.key FROM ${dead_letter} AS d WHERE d.state <> 'closed' AND d.parks = 1`
  const columns = 'l.reader, l.key, l.epoch, l.number, l.known_epoch, l.known_number, l.state'
  const busy =
    `SELECT ${columns} FROM ${lane} AS l WHERE l.state = ${laneStates.ready} UNION ALL ` +
    `SELECT ${columns} FROM (${parked}) AS o JOIN ${lane} AS l ON l.reader = o.reader AND l.key = o.key WHERE l.state = ${laneStates.parked}`
  const lanes = (reads: 'outbox' | 'inbox'): string => {
    const { from, where } = behind(tables, reads, 'b')
    const first = (column: string): string =>
      `(SELECT m.${column} FROM ${from} WHERE ${where} ORDER BY m.epoch, m.number LIMIT 1)`
    const all = `(SELECT count(*) FROM ${from} WHERE ${where})`
    const depth =
      reads === 'inbox'
        ? all
        : `CASE WHEN b.epoch = b.known_epoch THEN b.known_number - b.number WHEN ${first('epoch')} = b.known_epoch THEN b.known_number + 1 - ${first('number')} ELSE ${all} END`
    return `SELECT b.reader, b.state, ${first('at_ms')} AS first_at_ms, ${depth} AS depth FROM (${busy}) AS b JOIN ${reader} AS r ON r.name = b.reader WHERE r.reads = '${reads}'`
  }
  const sums = [
    'count(w.first_at_ms) AS behind',
    'coalesce(sum(CASE WHEN w.first_at_ms IS NULL THEN 0 ELSE w.depth END), 0) AS depth',
    `${once(dialect)} - min(w.first_at_ms) AS oldest_ms`,
    `coalesce(sum(CASE w.state WHEN ${laneStates.parked} THEN 1 ELSE 0 END), 0) AS parked`,
    `(SELECT count(*) FROM ${dead_letter} AS d WHERE d.reader = r.name AND d.state <> 'closed' AND d.state = 'open') AS letters`,
  ]
  const work = `${lanes('outbox')} UNION ALL ${lanes('inbox')}`
  return asking(
    dialect,
    () =>
      `SELECT r.name, r.kind, ${sums.join(', ')} FROM ${reader} AS r LEFT JOIN (${work}) AS w ON w.reader = r.name GROUP BY r.name, r.kind ORDER BY r.name`,
  )
}

/** The state of a reader, by its row. */
export function readerStateIn(row: Row): ReaderState {
  const oldest = row['oldest_ms']
  return {
    name: String(row['name']),
    kind: row['kind'] as ReaderState['kind'],
    behind: Number(row['behind']),
    depth: Number(row['depth']),
    oldestMs: oldest === null ? undefined : Number(oldest),
    parked: Number(row['parked']),
    letters: Number(row['letters']),
  }
}

/**
 * Forgets a reader with its lanes, its inbox and its processed rows, in one commit. Its letters stay, and those that
 * were decided are open again: what was decided cannot be carried out any more.
 */
export function* forgetting(sql: MessageSql, name: string): Procedure<boolean> {
  const { dialect, tables } = sql
  const owned = [tables.lane, tables.inbox, tables.processed]
  const reopen = `UPDATE ${tables.dead_letter} SET state = 'open', decision = NULL WHERE state <> 'closed' AND state <> 'open' AND reader = `
  if (dialect.writesInWith) {
    const { rows } = yield asking(dialect, (values) => {
      const reader = values.text(name)
      const parts = owned.map((table, place) => `part_${place} AS (DELETE FROM ${table} WHERE reader = ${reader})`)
      const gone = `gone AS (DELETE FROM ${tables.reader} WHERE name = ${reader} RETURNING name)`
      const reopened = `reopened AS (${reopen}${reader})`
      return `WITH ${[gone, ...parts, reopened].join(', ')} SELECT count(*) AS readers FROM gone`
    })
    return Number(rows[0]?.['readers']) === 1
  }
  for (const table of owned)
    yield counting(dialect, (values) => `DELETE FROM ${table} WHERE reader = ${values.text(name)}`)
  yield counting(dialect, (values) => reopen + values.text(name))
  const { rowCount } = yield counting(
    dialect,
    (values) => `DELETE FROM ${tables.reader} WHERE name = ${values.text(name)}`,
  )
  return rowCount === 1
}

/** Begins a new epoch under each key; how many keys there are. */
export function* beginningEpochs({ dialect, tables }: MessageSql): Procedure<number> {
  const { fence, writesInWith } = dialect
  const advance = fence.advance?.(tables.fence)
  if (advance !== undefined) yield { text: advance, values: [], counts: true }
  if (!writesInWith) {
    const text = `UPDATE ${tables.head} SET epoch = ${fence.next(tables.fence)}, number = 0`
    return (yield { text, values: [], counts: true }).rowCount
  }
  // In the order of keys, as everybody locks heads. One that is of a newer epoch than this has begun it since.
  const next = `next AS MATERIALIZED (SELECT ${fence.next(tables.fence)} AS epoch)`
  const locked = `locked AS MATERIALIZED (SELECT key FROM ${tables.head} ORDER BY key FOR UPDATE)`
  const raised = `raised AS (UPDATE ${tables.head} AS h SET epoch = n.epoch, number = 0 FROM locked AS k, next AS n WHERE h.key = k.key AND h.epoch < n.epoch RETURNING h.key)`
  const text = `WITH ${next}, ${locked}, ${raised} SELECT count(*) AS heads FROM raised`
  return Number((yield { text, values: [] }).rows[0]?.['heads'])
}

/** Forgets what is past its time, in one small batch. */
export function* purging(sql: MessageSql, query: MessagePurgeQuery): Procedure<MessagesPurged> {
  const limit = checkRows(query.limit, 10_000)
  const { sentAfterMs, processedAfterMs, headsAfterMs, lettersAfterMs } = query
  const { tables } = sql
  const identity = 'reader, source, id'
  const closed = { table: tables.dead_letter, identity, column: 'last_at_ms', also: "state = 'closed'" }
  const processed = { table: tables.processed, identity, column: 'at_ms', also: isForgettable(sql, 'at_ms') }
  return {
    messages: sentAfterMs === undefined ? 0 : yield* forgettingMessages(sql, sentAfterMs, limit),
    processed: processedAfterMs === undefined ? 0 : yield* forgettingRows(sql, processed, processedAfterMs, limit),
    heads: headsAfterMs === undefined ? 0 : yield* forgettingKeys(sql, Math.max(headsAfterMs, leastHeadMs), limit),
    letters: lettersAfterMs === undefined ? 0 : yield* forgettingRows(sql, closed, lettersAfterMs, limit),
  }
}

// Whether something is older than the longest memory of all readers: what one of them counts on is never forgotten.
function isForgettable({ dialect, tables }: MessageSql, column: string): string {
  return `${column} <= ${once(dialect)} - (SELECT coalesce(max(memory_ms), 0) FROM ${tables.reader})`
}

function* forgettingKeys(sql: MessageSql, afterMs: number, limit: number): Procedure<number> {
  return (yield* forgettingHeads(sql, afterMs, limit)) + (yield* forgettingInboxLanes(sql, afterMs, limit))
}

// The lanes of keys from brokers in which nothing waits. One without numbers holds nothing: processed rows alone tell
// duplicates, and the next message makes it anew. One with numbers tells which message is late, and stays as long as
// the memory of its consumer.
function* forgettingInboxLanes(sql: MessageSql, afterMs: number, limit: number): Procedure<number> {
  const { dialect, tables } = sql
  const { rows } = yield asking(dialect, (values) => {
    const isOld = `l.due_at_ms > 0 AND l.due_at_ms <= ${once(dialect)} - ${values.number(storableMs(afterMs))} AND ${isForgettable(sql, 'l.due_at_ms')}`
    const readers = `SELECT r.name FROM ${tables.reader} AS r WHERE r.reads = 'inbox'`
    const idle = `SELECT l.reader, l.key FROM ${tables.lane} AS l WHERE l.reader IN (${readers}) AND l.state = ${laneStates.idle} AND (l.epoch = 0 OR (${isOld})) LIMIT ${limit}${dialect.skipLocked}`
    return `WITH idle AS MATERIALIZED (${idle}) DELETE FROM ${tables.lane} WHERE (reader, key) IN (SELECT reader, key FROM idle)${dialect.returning('key')}`
  })
  return rows.length
}

function* forgettingRows(
  { dialect }: MessageSql,
  { table, identity, column, also }: Readonly<Record<'table' | 'identity' | 'column' | 'also', string>>,
  afterMs: number,
  limit: number,
): Procedure<number> {
  const { rows } = yield asking(dialect, (values) => {
    const old = `SELECT ${identity} FROM ${table} WHERE ${column} <= ${once(dialect)} - ${values.number(storableMs(afterMs))} AND ${also} LIMIT ${limit}${dialect.skipLocked}`
    return `WITH old AS MATERIALIZED (${old}) DELETE FROM ${table} WHERE (${identity}) IN (SELECT ${identity} FROM old)${dialect.returning('id')}`
  })
  return rows.length
}

// A reader that was never told of a key has not done it. Where a message had a version, the head of its key remembers
// it, and is locked for that before the message is deleted: whoever emits locks the head first, too.
function* forgettingMessages(sql: MessageSql, afterMs: number, limit: number): Procedure<number> {
  const { dialect, tables } = sql
  const { head, message, reader, lane } = tables
  const undone = `l.key IS NULL OR (l.epoch, l.number) < (m.epoch, m.number)`
  const waits = `SELECT 1 FROM ${reader} AS r LEFT JOIN ${lane} AS l ON l.reader = r.name AND l.key = m.key WHERE r.reads = 'outbox' AND (${undone})`
  const anybody = `SELECT 1 FROM ${reader} AS a WHERE a.reads = 'outbox'`
  const old = asking(dialect, (values) => {
    const isOld = `m.at_ms <= ${once(dialect)} - ${values.number(storableMs(afterMs))}`
    return `SELECT m.key, m.epoch, m.number, m.version FROM ${message} AS m WHERE ${isOld} AND EXISTS (${anybody}) AND NOT EXISTS (${waits}) ORDER BY m.at_ms LIMIT ${limit}${dialect.skipLocked}`
  })
  const remember = (gone: string): string =>
    `UPDATE ${head} AS h SET purged_version = v.version FROM (SELECT key, max(version) AS version FROM ${gone} AS g WHERE version IS NOT NULL GROUP BY key) AS v ` +
    'WHERE h.key = v.key AND (h.purged_version IS NULL OR h.purged_version < v.version)'
  const isOne = '(key, epoch, number) IN'
  if (dialect.writesInWith) {
    const versioned = 'SELECT key FROM old WHERE version IS NOT NULL'
    const heads = `heads AS MATERIALIZED (SELECT key FROM ${head} WHERE key IN (${versioned}) ORDER BY key${dialect.skipLocked})`
    const mine = 'SELECT key, epoch, number FROM old WHERE version IS NULL OR key IN (SELECT key FROM heads)'
    const gone = `gone AS (DELETE FROM ${message} WHERE ${isOne} (${mine}) RETURNING key, version)`
    const text = `WITH old AS MATERIALIZED (${old.text}), ${heads}, ${gone}, noted AS (${remember('gone')}) SELECT count(*) AS messages FROM gone`
    return Number((yield { text, values: old.values }).rows[0]?.['messages'])
  }
  const { rows } = yield old
  if (rows.length === 0) return 0
  const cells = JSON.stringify(rows.map(({ key, epoch, number, version }) => [key, epoch, number, version]))
  const columns = { key: 'text', epoch: 'number', number: 'number', version: 'number' } as const
  yield counting(dialect, (values) => remember(dialect.rowsIn(values.text(cells), columns)))
  yield counting(
    dialect,
    (values) =>
      `DELETE FROM ${message} WHERE ${isOne} (SELECT key, epoch, number FROM ${dialect.rowsIn(values.text(cells), columns)})`,
  )
  return rows.length
}

// The heads of keys that are drained, with their lanes. What is emitted under such a key later begins a new epoch,
// which is higher than all that readers have seen.
function* forgettingHeads({ dialect, tables }: MessageSql, afterMs: number, limit: number): Procedure<number> {
  const { head, message, reader, lane } = tables
  const readers = `SELECT r.name FROM ${reader} AS r WHERE r.reads = 'outbox'`
  const idle = asking(dialect, (values) => {
    const isOld = `h.at_ms <= ${once(dialect)} - ${values.number(storableMs(afterMs))} AND h.purged_version IS NULL`
    const drained = `NOT EXISTS (SELECT 1 FROM ${message} AS m WHERE m.key = h.key)`
    const busy = `SELECT 1 FROM ${reader} AS r JOIN ${lane} AS l ON l.reader = r.name AND l.key = h.key WHERE r.reads = 'outbox' AND l.state <> ${laneStates.idle}`
    return `SELECT h.key FROM ${head} AS h WHERE ${isOld} AND ${drained} AND NOT EXISTS (${busy}) LIMIT ${limit}${dialect.skipLocked}`
  })
  const lanes = (keys: string): string => `DELETE FROM ${lane} WHERE reader IN (${readers}) AND key IN (${keys})`
  const heads = (keys: string): string => `DELETE FROM ${head} WHERE key IN (${keys})`
  if (dialect.writesInWith) {
    const keys = 'SELECT key FROM idle'
    const text = `WITH idle AS MATERIALIZED (${idle.text}), lanes AS (${lanes(keys)}), heads AS (${heads(keys)}) SELECT count(*) AS heads FROM idle`
    return Number((yield { text, values: idle.values }).rows[0]?.['heads'])
  }
  const { rows } = yield idle
  const cells = JSON.stringify(rows.map(({ key }) => [key]))
  for (const remove of [lanes, heads]) {
    yield counting(dialect, (values) =>
      remove(`SELECT key FROM ${dialect.rowsIn(values.text(cells), { key: 'text' })}`),
    )
  }
  return rows.length
}
