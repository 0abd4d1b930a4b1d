// The rows of dead letters in memory: opened when a lane parks, closed when it has come past them.

import type { MessagePlace, Row, StoredMessage } from '../../../atomicity/index.js'
import type { DeadLetter, LetterDecision, LetterDraft, Reader } from '../../../messaging/index.js'
import type { Views } from '../tables.js'
import { allOf, comparePlaces, contentRow, messageOf, oneOf, placeOf, textIn } from './rows.js'
import { messageTables } from './tables.js'

const { deadLetter } = messageTables

/** Writes a dead letter, or opens it again. */
export function openLetter(views: Views, reader: Reader, draft: LetterDraft, parks: boolean, nowMs: number): void {
  const { message, code, reason, history } = draft
  const table = views.view(deadLetter)
  const { source, id } = message
  const there = oneOf(table, { reader: reader.name, source, id })
  const open = { state: 'open', parks: parks ? 1 : 0, code, reason, history, decision: null, last_at_ms: nowMs }
  // A key waits for the letter that is there: it is not to be taken from it.
  if (!parks && there?.['parks'] === 1 && there['state'] !== 'closed') return
  if (there !== undefined) table.update(there.rowId, { ...contentRow(message), ...open })
  else {
    const { name, kind } = reader
    table.insert({ reader: name, kind, ...contentRow(message), ...open, note: null, first_at_ms: nowMs })
  }
}

/** Closes the letters that a lane was parked behind, up to a place. */
export function closeLetters(views: Views, reader: string, key: string, done: MessagePlace, nowMs: number): void {
  const table = views.view(deadLetter)
  for (const row of allOf(table, { reader, key })) {
    if (row['state'] === 'closed' || row['parks'] !== 1 || comparePlaces(placeOf(row), done) > 0) continue
    closeLetter(views, row.rowId, nowMs)
  }
}

/** Closes a letter. */
export function closeLetter(views: Views, rowId: number, nowMs: number): void {
  views.view(deadLetter).update(rowId, { state: 'closed', decision: null, last_at_ms: nowMs })
}

/** What a person has decided about a message. */
export function decisionAbout(
  views: Views,
  reader: string,
  { source, id }: Pick<StoredMessage, 'source' | 'id'>,
): LetterDecision | undefined {
  const letter: Row | undefined = oneOf(views.view(deadLetter), { reader, source, id })
  const decision = textIn(letter?.['decision'])
  return decision === undefined ? undefined : (JSON.parse(decision) as LetterDecision)
}

/** A letter, by its row. */
export function letterIn(row: Row): DeadLetter {
  return {
    reader: String(row['reader']),
    kind: row['kind'] as Reader['kind'],
    message: messageOf(row),
    state: row['state'] as DeadLetter['state'],
    parks: row['parks'] === 1,
    code: String(row['code']),
    reason: String(row['reason']),
    history: String(row['history']),
    firstAtMs: Number(row['first_at_ms']),
    lastAtMs: Number(row['last_at_ms']),
    note: textIn(row['note']),
  }
}
