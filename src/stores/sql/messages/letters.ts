// Dead letters, as they are read.

import type { DeadLetter, LetterGroup, LetterQuery, Reader, WhichLetter } from '../../../messaging/index.js'
import { checkRows } from '../records/rows.js'
import type { Query } from '../records/statements.js'
import type { Values } from '../values.js'
import { contentNames, messageOf, type Row, textIn } from './content.js'
import { asking, type MessageSql } from './statements.js'

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
