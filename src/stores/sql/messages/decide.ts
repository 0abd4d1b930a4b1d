// What a person decides about a dead letter, and what follows from it for its lane.

import type { Decided, WhichLetter } from '../../../messaging/index.js'
import type { Procedure } from '../records/procedures.js'
import { storableMs } from '../records/rows.js'
import type { Values } from '../values.js'
import { type Cell, content, contentNames } from './content.js'
import { noteProcessed } from './ends.js'
import { isThat } from './letters.js'
import { asking, counting, laneStates, type MessageSql, once, rowsOf } from './statements.js'

const letterColumns = { reader: 'text', kind: 'text', parks: 'number', ...content } as const
const letterNames = Object.keys(letterColumns).join(', ')

// One statement that follows from a decision. `letter` is what was decided about, for FROM; it is asked for once, when
// its place in the text has come.
type Step = (sql: MessageSql, decided: Decided, letter: (values: Values) => string, values: Values) => string

/** Writes a decision about an open letter, and lets its lane go on with it. */
export function* deciding(sql: MessageSql, which: WhichLetter, decided: Decided): Procedure<boolean> {
  const { dialect } = sql
  const steps = decided.decision.is === 'discard' ? [goOn, passBy, noteDiscarded, removeDiscarded] : [goOn, bringBack]
  if (dialect.writesInWith) {
    const { rows } = yield asking(dialect, (values) => {
      const letter = `letter AS (${decideLetter(sql, which, decided, values)} RETURNING ${letterNames})`
      const parts = steps.map((step, place) => `step_${place} AS (${step(sql, decided, () => 'letter', values)})`)
      return `WITH ${[letter, ...parts].join(', ')} SELECT count(*) AS letters FROM letter`
    })
    return Number(rows[0]?.['letters']) === 1
  }
  const { rows } = yield asking(
    dialect,
    (values) => decideLetter(sql, which, decided, values) + dialect.returning(letterNames),
  )
  if (rows.length === 0) return false
  const cells = rows.map((row) => Object.keys(letterColumns).map((name) => row[name] as Cell))
  const letter = (values: Values): string => rowsOf(dialect, letterColumns, cells, values)
  for (const step of steps) yield counting(dialect, (values) => step(sql, decided, letter, values))
  return true
}

// A consumer's discard is over with this. What parked nobody is in no lane any more: where it is to be handled once
// more it comes back in a lane of its own, and holds nobody there either.
function decideLetter({ dialect, tables }: MessageSql, which: WhichLetter, decided: Decided, values: Values): string {
  const { decision, actor, reason } = decided
  const set = [`note = ${values.text(JSON.stringify({ actor, reason, decision: decision.is }))}`]
  const stored = values.text(JSON.stringify(decision))
  if (decision.is === 'discard') {
    set.push(
      `decision = CASE kind WHEN 'consumer' THEN NULL ELSE ${stored} END`,
      "state = CASE kind WHEN 'consumer' THEN 'closed' ELSE 'discarding' END",
    )
  } else {
    set.push(
      `decision = ${stored}, state = 'redriving', parks = 1`,
      "key = CASE parks WHEN 1 THEN key ELSE key || '#' || id END",
      'epoch = CASE parks WHEN 1 THEN epoch ELSE 0 END, number = CASE parks WHEN 1 THEN number ELSE 1 END',
    )
  }
  set.push(`last_at_ms = ${once(dialect)}`)
  return `UPDATE ${tables.dead_letter} SET ${set.join(', ')} WHERE ${isThat(which, values)} AND state = 'open'`
}

// The lane that was parked is due, or the one of its own is made.
const goOn: Step = ({ dialect, tables }, { decision, inMs }, letter, values) => {
  const due = `${once(dialect)} + ${values.number(storableMs(inMs))}`
  const mine = decision.is === 'discard' ? "x.kind <> 'consumer'" : 'TRUE'
  const source = `SELECT x.reader, x.key, x.epoch, x.number, ${laneStates.ready}, ${due} FROM ${letter(values)} AS x WHERE ${mine}`
  const set = 'state = excluded.state, due_at_ms = excluded.due_at_ms, owner = NULL, claims = 0'
  return (
    `INSERT INTO ${tables.lane} AS l (reader, key, known_epoch, known_number, state, due_at_ms) ${source} ` +
    `ON CONFLICT (reader, key) DO UPDATE SET ${set}, failures = 0, history = '' WHERE l.state = ${laneStates.parked}`
  )
}

// Into the inbox, where it is not there yet. Where a consumer reads is not known while it is forgotten: if it reads the
// outbox when it comes back, it finds the message there, and never looks into the inbox.
const bringBack: Step = ({ dialect, tables }, _decided, letter, values) => {
  const known = `SELECT p.fingerprint FROM ${tables.processed} AS p WHERE p.reader = x.reader AND p.source = x.source AND p.id = x.id`
  const cells = Object.keys(content).map((name) => `x.${name}`)
  const source =
    `SELECT x.reader, coalesce((${known}), ''), ${cells.join(', ')} FROM ${letter(values)} AS x ` +
    `LEFT JOIN ${tables.reader} AS r ON r.name = x.reader WHERE x.kind = 'consumer' AND coalesce(r.reads, 'inbox') = 'inbox'`
  return dialect.insertNew(tables.inbox, `reader, fingerprint, ${contentNames}`, source, 'reader, source, id')
}

// A consumer's lane goes on behind what was discarded.
const passBy: Step = ({ dialect, tables }, _decided, letter, values) => {
  const more = '(x.epoch, x.number) < (l.known_epoch, l.known_number)'
  const state = `CASE WHEN ${more} THEN ${laneStates.ready} ELSE ${laneStates.idle} END`
  const set = `epoch = x.epoch, number = x.number, state = ${state}, due_at_ms = ${once(dialect)}, owner = NULL, claims = 0`
  const mine = "l.reader = x.reader AND l.key = x.key AND x.parks = 1 AND x.kind = 'consumer'"
  return `UPDATE ${tables.lane} AS l SET ${set} FROM ${letter(values)} AS x WHERE ${mine} AND l.state = ${laneStates.parked}`
}

const noteDiscarded: Step = (sql, _decided, letter, values) => {
  const stored = `SELECT i.fingerprint FROM ${sql.tables.inbox} AS i WHERE i.reader = x.reader AND i.source = x.source AND i.id = x.id`
  const done = `SELECT x.reader, x.source, x.id, coalesce((${stored}), '') AS fingerprint FROM ${letter(values)} AS x WHERE x.kind = 'consumer'`
  return noteProcessed(sql, done)
}

const removeDiscarded: Step = ({ tables }, _decided, letter, values) => {
  const discarded = `SELECT x.reader, x.source, x.id FROM ${letter(values)} AS x WHERE x.kind = 'consumer'`
  return `DELETE FROM ${tables.inbox} WHERE (reader, source, id) IN (${discarded})`
}
