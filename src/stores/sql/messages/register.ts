// Makes a reader known, and tells it of what had been emitted before.

import { RepriseError } from '../../../kernel/index.js'
import type { Reader } from '../../../messaging/index.js'
import type { Procedure } from '../records/procedures.js'
import { storableMs } from '../records/rows.js'
import { asking, counting, laneStates, type MessageSql, once } from './statements.js'

/** As many keys a reader is told of with one call. */
const keysToldOf = 2_000

/** Registers a reader; whether it has been told of all that was there. */
export function* registering(sql: MessageSql, reader: Reader): Procedure<boolean> {
  const { dialect, tables } = sql
  const stored = asking(
    dialect,
    (values) => `SELECT kind, reads, told_to, memory_ms FROM ${tables.reader} WHERE name = ${values.text(reader.name)}`,
  )
  let [row] = (yield stored).rows
  if (row === undefined) {
    yield counting(dialect, (values) => {
      const cells = [reader.name, reader.kind, reader.reads, reader.reads === 'outbox' ? '' : null]
      const source = `VALUES (${cells.map((cell) => values.text(cell)).join(', ')}, ${dialect.nowMs})`
      return dialect.insertNew(tables.reader, 'name, kind, reads, told_to, at_ms', source, 'name')
    })
    row = (yield stored).rows[0]
  }
  if (row === undefined) throw new RepriseError('ROW_UNSETTLED', `The row of the reader ${reader.name} came and went.`)
  if (row['kind'] !== reader.kind || row['reads'] !== reader.reads) {
    const [kind, reads] = [String(row['kind']), String(row['reads'])]
    const message = `The reader ${reader.name} is registered as a ${kind} that reads the ${reads}. Give this ${reader.kind} another name, or have that reader forgotten first.`
    throw new RepriseError('ARGUMENT_INVALID', message, { details: { reader: reader.name, kind, reads } })
  }
  if (reader.reads === 'inbox') {
    yield* rememberingMemory(sql, reader, row['memory_ms'])
    return true
  }
  // Told of all: it goes round once more, since a transaction that did not see the reader may have committed since.
  return yield* tellingPage(sql, reader.name, String(row['told_to'] ?? ''))
}

// Written where it is another one than before: of two that differ, the one that came last holds.
function* rememberingMemory({ dialect, tables }: MessageSql, reader: Reader, stored: unknown): Procedure<void> {
  const { name, memoryMs } = reader
  if (memoryMs === undefined || Number(stored ?? 0) === memoryMs) return
  yield counting(
    dialect,
    (values) =>
      `UPDATE ${tables.reader} SET memory_ms = ${values.number(storableMs(memoryMs))} WHERE name = ${values.text(name)}`,
  )
}

// The next page of keys, in their order. A lane that knows as much as the head is left alone.
function* tellingPage(sql: MessageSql, reader: string, from: string): Procedure<boolean> {
  const { dialect, tables } = sql
  const page = `SELECT key, epoch, number, at_ms FROM ${tables.head} WHERE key > `
  const order = ` ORDER BY key LIMIT ${keysToldOf}`
  if (dialect.writesInWith) {
    const { rows } = yield asking(dialect, (values) => {
      const told = `told AS (${tell(sql, 'page', values.text(reader), values.text(reader))})`
      const noted = `noted AS (${note(sql, 'page')} WHERE name = ${values.text(reader)})`
      return `WITH page AS MATERIALIZED (${page}${values.text(from)}${order}), ${told}, ${noted} SELECT count(*) AS keys FROM page`
    })
    return Number(rows[0]?.['keys']) < keysToldOf
  }
  const { rows } = yield asking(
    dialect,
    (values) => `SELECT count(*) AS keys FROM (${page}${values.text(from)}${order})`,
  )
  yield counting(dialect, (values) => {
    const first = values.text(reader)
    const source = `(${page}${values.text(from)}${order})`
    return tell(sql, source, first, values.text(reader))
  })
  yield counting(dialect, (values) => {
    const heads = () => `(${page}${values.text(from)}${order})`
    return `${note(sql, heads(), heads())} WHERE name = ${values.text(reader)}`
  })
  return Number(rows[0]?.['keys']) < keysToldOf
}

// A head whose time is yet to come is that of a delayed message, which is due at that time.
function tell({ dialect, tables }: MessageSql, page: string, reader: string, same: string): string {
  const now = once(dialect)
  const due = `CASE WHEN p.at_ms > ${now} THEN p.at_ms ELSE ${now} END`
  // As a value, so that each is looked up by the index: a join may read all lanes of the reader for each page.
  const knows = `SELECT CASE WHEN (k.known_epoch, k.known_number) < (p.epoch, p.number) THEN 0 ELSE 1 END FROM ${tables.lane} AS k WHERE k.reader = ${same} AND k.key = p.key`
  const source =
    `SELECT ${reader}, p.key, p.epoch, p.number, ${laneStates.ready}, ${due} FROM ${page} AS p ` +
    `WHERE coalesce((${knows}), 0) = 0 ORDER BY p.key`
  const was = (idle: string, else_: string): string =>
    `CASE l.state WHEN ${laneStates.idle} THEN ${idle} ELSE ${else_} END`
  const set = [
    'known_epoch = excluded.known_epoch, known_number = excluded.known_number',
    `state = ${was('excluded.state', 'l.state')}, due_at_ms = ${was('excluded.due_at_ms', 'l.due_at_ms')}`,
  ]
  return (
    `INSERT INTO ${tables.lane} AS l (reader, key, known_epoch, known_number, state, due_at_ms) ${source} ` +
    `ON CONFLICT (reader, key) DO UPDATE SET ${set.join(', ')} ` +
    'WHERE (l.known_epoch, l.known_number) < (excluded.known_epoch, excluded.known_number)'
  )
}

// Up to which key it was told; a page that is not full was the last one.
function note({ tables }: MessageSql, page: string, same: string = page): string {
  const keys = `(SELECT count(*) FROM ${page} AS a)`
  const last = `(SELECT max(key) FROM ${same} AS b)`
  return `UPDATE ${tables.reader} SET told_to = CASE WHEN ${keys} < ${keysToldOf} THEN NULL ELSE ${last} END`
}
