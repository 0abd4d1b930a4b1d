// Dead letters, and where messages are, as they are read.

import type { MessagePlace, StoredMessage } from '../../../atomicity/index.js'
import {
  type CausedQuery,
  type DeadLetter,
  type LetterGroup,
  type LetterQuery,
  type Reader,
  type ReaderTrace,
  traceOf,
  type WhichLetter,
} from '../../../messaging/index.js'
import { checkRows, storableMs } from '../records/rows.js'
import type { Query } from '../records/statements.js'
import type { Values } from '../values.js'
import { contentNames, messageOf, placeIn, type Row, textIn } from './content.js'
import { asking, laneStates, type MessageSql } from './statements.js'

const letterNames = `reader, kind, ${contentNames}, state, parks, code, reason, history, note, first_at_ms, last_at_ms`

// What the index of letters that are not over is for.
const isNotClosed = "state <> 'closed'"

/** The letters of a query, the oldest first. */
export function lettersOf({ dialect, tables }: MessageSql, query: LetterQuery): Query {
  const { reader, key, code, state, limit } = query
  return asking(dialect, (values) => {
    const wanted: string[] = []
    if (reader !== undefined) wanted.push(`reader = ${values.text(reader)}`)
    if (key !== undefined) wanted.push(`key = ${values.text(key)}`)
    if (code !== undefined) wanted.push(`code = ${values.text(code)}`)
    wanted.push(state === undefined ? isNotClosed : `state = ${values.text(state)}`)
    return `SELECT ${letterNames} FROM ${tables.dead_letter} WHERE ${wanted.join(' AND ')} ORDER BY first_at_ms, epoch, number LIMIT ${checkRows(limit, 1_000)}`
  })
}

/** One letter. */
export function letterOf({ dialect, tables }: MessageSql, which: WhichLetter): Query {
  return asking(dialect, (values) => `SELECT ${letterNames} FROM ${tables.dead_letter} WHERE ${isThat(which, values)}`)
}

/** How many letters that are not closed have the same cause, the most first. */
export function groupsOf({ dialect, tables }: MessageSql): Query {
  const cells = 'count(*) AS letters, min(first_at_ms) AS oldest_ms, max(first_at_ms) AS newest_ms'
  return asking(
    dialect,
    () =>
      `SELECT reader, code, ${cells} FROM ${tables.dead_letter} WHERE ${isNotClosed} GROUP BY reader, code ORDER BY count(*) DESC, reader, code`,
  )
}

/** A letter, by its row. */
export function letterIn(row: Row): DeadLetter {
  return {
    reader: String(row['reader']),
    kind: row['kind'] as Reader['kind'],
    message: messageOf(row),
    state: row['state'] as DeadLetter['state'],
    parks: Number(row['parks']) === 1,
    code: String(row['code']),
    reason: String(row['reason']),
    history: String(row['history']),
    firstAtMs: Number(row['first_at_ms']),
    lastAtMs: Number(row['last_at_ms']),
    note: textIn(row['note']),
  }
}

/** A group, by its row. */
export function groupIn(row: Row): LetterGroup {
  return {
    reader: String(row['reader']),
    code: String(row['code']),
    letters: Number(row['letters']),
    oldestMs: Number(row['oldest_ms']),
    newestMs: Number(row['newest_ms']),
  }
}

/** That a letter is the one. */
export function isThat({ reader, source, id }: WhichLetter, values: Values): string {
  return `reader = ${values.text(reader)} AND source = ${values.text(source)} AND id = ${values.text(id)}`
}

/** The messages of intents, the oldest first; one that is in several tables comes several times. */
export function causedBy({ dialect, tables }: MessageSql, { intents, sinceMs, limit }: CausedQuery): Query {
  return asking(dialect, (values) => {
    const among = (): string => `intent IN (${intents.map((intent) => values.text(intent)).join(', ')})`
    const from = (table: string, first = ''): string => `SELECT ${contentNames} FROM ${table} WHERE ${first}${among()}`
    const parts = [
      // The index of times keeps the rest of a large outbox from being read. Values stand in the order of their places.
      from(tables.message, `at_ms >= ${values.number(storableMs(sinceMs))} AND `),
      from(tables.inbox),
      from(tables.dead_letter),
    ]
    return `SELECT ${contentNames} FROM (${parts.join(' UNION ALL ')}) AS m ORDER BY at_ms, epoch, number, id LIMIT ${checkRows(limit, 1_000)}`
  })
}

type Where = Pick<StoredMessage, 'source' | 'id' | 'key'>

/** What the readers of a store know of a message. */
export function readersOf({ dialect, tables }: MessageSql, { source, id, key }: Where): Query {
  const { reader, lane, processed, inbox } = tables
  return asking(dialect, (values) => {
    const isIt = (row: string): string =>
      `${row}.reader = r.name AND ${row}.source = ${values.text(source)} AND ${row}.id = ${values.text(id)}`
    const cells =
      'r.name, r.kind, r.reads, l.reader AS lane, l.epoch, l.number, l.state, p.at_ms AS processed_at_ms, i.id AS kept'
    return (
      `SELECT ${cells} FROM ${reader} AS r LEFT JOIN ${lane} AS l ON l.reader = r.name AND l.key = ${values.text(key)} ` +
      `LEFT JOIN ${processed} AS p ON ${isIt('p')} LEFT JOIN ${inbox} AS i ON ${isIt('i')} ORDER BY r.name`
    )
  })
}

/** The dead letters of a message. */
export function lettersAbout({ dialect, tables }: MessageSql, { source, id }: Where): Query {
  return asking(
    dialect,
    (values) =>
      `SELECT ${letterNames} FROM ${tables.dead_letter} WHERE source = ${values.text(source)} AND id = ${values.text(id)} ORDER BY reader`,
  )
}

/** What a row says of a reader and a message at a place. */
export function traceIn(row: Row, place: MessagePlace): ReaderTrace | undefined {
  const isThere = (cell: unknown): boolean => cell !== null && cell !== undefined
  const lane = isThere(row['lane'])
    ? { done: placeIn(row['epoch'], row['number']), isParked: Number(row['state']) === laneStates.parked }
    : undefined
  const facts = {
    reader: String(row['name']),
    kind: row['kind'] as Reader['kind'],
    reads: row['reads'] as Reader['reads'],
    handledAtMs: isThere(row['processed_at_ms']) ? Number(row['processed_at_ms']) : undefined,
    lane,
    isKept: isThere(row['kept']),
  }
  return traceOf(facts, place)
}
