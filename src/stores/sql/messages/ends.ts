// Ends claims: how far a lane has come, what it does next, and what follows from that for dead letters and the inbox.
// Where the engine can write inside WITH, all of it is one statement.

import type { LaneEnd, LetterDraft, Reader } from '../../../messaging/index.js'
import type { Procedure } from '../records/procedures.js'
import { storableMs } from '../records/rows.js'
import type { Query } from '../records/statements.js'
import type { Values } from '../values.js'
import { type Cell, cellsOf, content, contentColumns, contentNames, type Row } from './content.js'
import { asking, counting, laneStates, type MessageSql, once, rowsOf } from './statements.js'

// None has the name of a column of a lane, so that both can be named without an alias.
const endColumns = {
  of_reader: 'text',
  of_key: 'text',
  of_owner: 'text',
  of_attempt: 'number',
  done_epoch: 'number',
  done_number: 'number',
  next: 'text',
  for_ms: 'number',
  failed: 'number',
  told: 'text',
} as const

// A lane that was ended, and how far it has come.
const endedColumns = { reader: 'text', key: 'text', epoch: 'number', number: 'number' } as const

const letterColumns = {
  reader: 'text',
  kind: 'text',
  ...content,
  code: 'text',
  reason: 'text',
  history: 'text',
} as const

/** A letter with the reader that it is for. */
export interface LetterFor {
  readonly reader: Reader
  readonly letter: LetterDraft
}

/**
 * Ends claims; each in its place, whether it was written.
 *
 * @param emitted The keys to which the transaction around it has emitted; by default none.
 */
export function* ending(
  sql: MessageSql,
  ends: readonly LaneEnd[],
  emitted: readonly string[] = [],
): Procedure<readonly boolean[]> {
  if (ends.length === 0) return []
  const rows = sql.dialect.writesInWith
    ? (yield { ...endedAtOnce(sql, ends, emitted), plansAnew: true }).rows
    : yield* endedByStep(sql, ends)
  const written = new Set(rows.map(({ reader, key }) => JSON.stringify([reader, key])))
  return ends.map(({ reader, key }) => written.has(JSON.stringify([reader.name, key])))
}

/** Makes a claim longer. */
export function* extending(
  { dialect, tables }: MessageSql,
  { reader, key, owner, attempt }: Pick<LaneEnd, 'reader' | 'key' | 'owner' | 'attempt'>,
  leaseMs: number,
): Procedure<boolean> {
  const { rowCount } = yield counting(dialect, (values) => {
    const due = `due_at_ms = ${once(dialect)} + ${values.number(storableMs(leaseMs))}`
    const mine = `reader = ${values.text(reader.name)} AND key = ${values.text(key)}`
    const claimed = `owner = ${values.text(owner)} AND attempt = ${values.number(attempt)}`
    return `UPDATE ${tables.lane} SET ${due} WHERE ${mine} AND ${claimed}`
  })
  return rowCount === 1
}

// One lane is written as it is found. Several are locked before, in the order of their keys, as everybody does who
// locks several.
function endedAtOnce(sql: MessageSql, ends: readonly LaneEnd[], emitted: readonly string[]): Query {
  const { dialect, tables } = sql
  const letters = lettersOf(ends)
  return asking(dialect, (values) => {
    const parts: string[] = []
    const [only] = ends
    let from = 'locked'
    if (ends.length === 1 && only !== undefined && emitted.length === 0) from = oneRow(only, values)
    else {
      const given = rowsOf(dialect, endColumns, ends.map(cellsOfEnd), values)
      parts.push(`given AS MATERIALIZED (SELECT * FROM ${given} AS g)`)
      const own = `locked AS MATERIALIZED (SELECT g.* FROM given AS g JOIN ${tables.lane} AS l ON ${isOwned} ORDER BY l.key, l.reader FOR UPDATE OF l)`
      parts.push(emitted.length === 0 ? own : lockedWithEmitted(sql, emitted, values))
    }
    parts.push(`ended AS (${update(sql, from)} RETURNING l.reader, l.key, l.epoch, l.number)`)
    if (letters.length > 0) {
      const ofEnded = `SELECT d.* FROM (${draftsOf(sql, letters, values)}) AS d JOIN ended AS e ON e.reader = d.reader AND e.key = d.key`
      parts.push(`parked AS (${writeLetters(sql, ofEnded, 1)})`)
    }
    parts.push(`closed AS (${closeLetters(sql, 'ended')})`)
    if (ends.some(({ reader }) => reader.reads === 'inbox')) {
      const gone = `DELETE FROM ${tables.inbox} AS i USING ended AS e WHERE ${isDone} RETURNING i.reader, i.source, i.id, i.fingerprint`
      parts.push(`gone AS (${gone})`, `noted AS (${noteProcessed(sql, 'SELECT * FROM gone')})`)
    }
    return `WITH ${parts.join(', ')} SELECT reader, key FROM ended`
  })
}

// A planner reads a row of values as if they stood in the statement itself.
function oneRow(end: LaneEnd, values: Values): string {
  const cells = cellsOfEnd(end)
  const named = Object.entries(endColumns).map(([name, type], place) => {
    const cell = cells[place] ?? null
    return `${type === 'number' ? values.number(cell as number | null) : values.text(cell as string | null)} AS ${name}`
  })
  return `(SELECT ${named.join(', ')})`
}

// What the transaction has emitted is written by its last statement, which needs the heads of those keys and the lanes
// of all who read them. All are locked here, heads before lanes as an emit does it: two handlers that emit to the keys
// of each other would each have its own lane first, and then wait for that of the other one.
function lockedWithEmitted({ dialect, tables }: MessageSql, emitted: readonly string[], values: Values): string {
  const rows = emitted.map((key) => [key])
  const told = `SELECT r.name, w.key FROM ${tables.reader} AS r CROSS JOIN wanted AS w WHERE r.reads = 'outbox'`
  // Each row is looked up and locked by itself, in the order of those that are wanted: no plan reads all of a table.
  const head = `SELECT h.key FROM ${tables.head} AS h WHERE h.key = w.key FOR UPDATE`
  const lane = `SELECT l.reader, l.key, l.owner, l.attempt FROM ${tables.lane} AS l WHERE l.reader = n.name AND l.key = n.key FOR UPDATE`
  return [
    `wanted AS MATERIALIZED (SELECT * FROM ${rowsOf(dialect, { key: 'text' }, rows, values)} AS k ORDER BY key)`,
    `heads AS MATERIALIZED (SELECT h.key FROM wanted AS w CROSS JOIN LATERAL (${head}) AS h)`,
    // The count is asked for before the first lane is looked at.
    `needed AS MATERIALIZED (SELECT n.* FROM (${told} UNION SELECT of_reader, of_key FROM given) AS n WHERE (SELECT count(*) FROM heads) >= 0 ORDER BY n.key, n.name)`,
    `lanes AS MATERIALIZED (SELECT l.* FROM needed AS n CROSS JOIN LATERAL (${lane}) AS l)`,
    `locked AS MATERIALIZED (SELECT g.* FROM given AS g JOIN lanes AS l ON ${isOwned})`,
  ].join(', ')
}

function* endedByStep(sql: MessageSql, ends: readonly LaneEnd[]): Procedure<readonly Row[]> {
  const { dialect, tables } = sql
  const { rows } = yield asking(
    dialect,
    (values) =>
      update(sql, rowsOf(dialect, endColumns, ends.map(cellsOfEnd), values)) +
      dialect.returning('reader, key, epoch, number'),
  )
  if (rows.length === 0) return rows
  const cells = rows.map(({ reader, key, epoch, number }) => [reader, key, epoch, number] as Cell[])
  const ended = (values: Values): string => rowsOf(dialect, endedColumns, cells, values)
  const written = new Set(cells.map(([reader, key]) => JSON.stringify([reader, key])))
  const letters = lettersOf(ends).filter(({ reader, letter }) =>
    written.has(JSON.stringify([reader.name, letter.message.key])),
  )
  yield counting(dialect, (values) => closeLetters(sql, ended(values)))
  yield* parking(sql, letters)
  if (!ends.some(({ reader }) => reader.reads === 'inbox')) return rows
  yield counting(dialect, (values) => {
    const done = `SELECT i.reader, i.source, i.id, i.fingerprint FROM ${ended(values)} AS e JOIN ${tables.inbox} AS i ON ${isDone}`
    return noteProcessed(sql, done)
  })
  yield counting(dialect, (values) => {
    const done = `SELECT i.rowid FROM ${ended(values)} AS e JOIN ${tables.inbox} AS i ON ${isDone}`
    return `DELETE FROM ${tables.inbox} WHERE rowid IN (${done})`
  })
  return rows
}

/** Writes letters that lanes are parked behind, as a statement of its own. */
export function* parking(sql: MessageSql, letters: readonly LetterFor[]): Procedure<void> {
  if (letters.length === 0) return
  yield counting(sql.dialect, (values) => writeLetters(sql, draftsOf(sql, letters, values), 1))
}

/** Writes a letter that no lane waits for. A key may wait for one that is there already: that one stays. */
export function* burying(sql: MessageSql, letter: LetterFor): Procedure<void> {
  const { dead_letter } = sql.tables
  yield counting(sql.dialect, (values) => {
    const free = `${dead_letter}.parks = 0 OR ${dead_letter}.state = 'closed'`
    return `${writeLetters(sql, draftsOf(sql, [letter], values), 0)} WHERE ${free}`
  })
}

function draftsOf({ dialect }: MessageSql, letters: readonly LetterFor[], values: Values): string {
  return `SELECT * FROM ${rowsOf(dialect, letterColumns, letters.map(cellsOfLetter), values)} AS g`
}

/** The end of a lane's rest, lease or turn, as assignments; what depends on the lane is as it was before. */
function update({ dialect, tables }: MessageSql, given: string): string {
  const now = once(dialect)
  // What is done stays done, also where an end says less.
  const further = (column: 'epoch' | 'number'): string =>
    `CASE WHEN (g.done_epoch, g.done_number) > (l.epoch, l.number) THEN g.done_${column} ELSE l.${column} END`
  const [epoch, number] = [further('epoch'), further('number')]
  const more = `(${epoch}, ${number}) < (l.known_epoch, l.known_number)`
  const free = `CASE WHEN ${more} THEN ${laneStates.ready} ELSE ${laneStates.idle} END`
  const set = [
    `epoch = ${epoch}, number = ${number}`,
    `state = CASE g.next WHEN 'park' THEN ${laneStates.parked} WHEN 'free' THEN ${free} ELSE ${laneStates.ready} END`,
    // A claim that goes on is a new one of its next message, so that it is counted if its owner dies.
    "owner = CASE g.next WHEN 'hold' THEN l.owner END, claims = CASE g.next WHEN 'hold' THEN 1 ELSE 0 END",
    `due_at_ms = ${now} + g.for_ms, failures = g.failed, history = g.told`,
  ]
  return `UPDATE ${tables.lane} AS l SET ${set.join(', ')} FROM ${given} AS g WHERE ${isOwned}`
}

const isOwned = 'l.reader = g.of_reader AND l.key = g.of_key AND l.owner = g.of_owner AND l.attempt = g.of_attempt'

const isDone = 'i.reader = e.reader AND i.key = e.key AND (i.epoch, i.number) <= (e.epoch, e.number)'

// A letter that came back is open again: what was decided about it has been carried out in vain.
function writeLetters({ dialect, tables }: MessageSql, drafts: string, parks: 0 | 1): string {
  const now = once(dialect)
  const columns = `reader, kind, ${contentNames}, code, reason, history, state, parks, first_at_ms, last_at_ms`
  const source =
    `SELECT d.reader, d.kind, ${contentColumns('d.')}, d.code, d.reason, d.history, 'open', ${parks}, ${now}, ${now} ` +
    `FROM (${drafts}) AS d WHERE TRUE`
  const set = [...Object.keys(content), 'code', 'reason', 'history', 'state', 'parks', 'last_at_ms', 'decision']
  // `decision` is not among what is inserted, so that it becomes its default, which is none.
  return dialect.insertOrSet(tables.dead_letter, columns, source, 'reader, source, id', set)
}

// A letter that parked its lane is over when the lane is past it.
function closeLetters({ dialect, tables }: MessageSql, ended: string): string {
  const parked = "d.state <> 'closed' AND d.parks = 1"
  const past = '(d.epoch, d.number) <= (e.epoch, e.number)'
  return (
    `UPDATE ${tables.dead_letter} AS d SET state = 'closed', decision = NULL, last_at_ms = ${once(dialect)} ` +
    `FROM ${ended} AS e WHERE d.reader = e.reader AND d.key = e.key AND ${parked} AND ${past}`
  )
}

/** Writes processed rows, of a SELECT of reader, source, id and fingerprint; those that are there become new. */
export function noteProcessed({ dialect, tables }: MessageSql, done: string): string {
  const source = `SELECT x.reader, x.source, x.id, x.fingerprint, ${once(dialect)} FROM (${done}) AS x WHERE TRUE`
  const columns = 'reader, source, id, fingerprint, at_ms'
  return dialect.insertOrSet(tables.processed, columns, source, 'reader, source, id', ['at_ms'])
}

function lettersOf(ends: readonly LaneEnd[]): readonly LetterFor[] {
  return ends.flatMap(({ reader, then }) => (then.is === 'park' ? [{ reader, letter: then.letter }] : []))
}

function cellsOfEnd({ reader, key, owner, attempt, done, then }: LaneEnd): Cell[] {
  const isOpen = then.is === 'rest' || then.is === 'hold'
  const next = isOpen ? [then.is, storableMs(then.forMs), then.failures, then.history] : [then.is, 0, 0, '']
  return [reader.name, key, owner, attempt, done?.epoch ?? null, done?.number ?? null, ...next]
}

function cellsOfLetter({ reader, letter }: LetterFor): Cell[] {
  const { message, code, reason, history } = letter
  return [reader.name, reader.kind, ...cellsOf(message), code, reason, history]
}
