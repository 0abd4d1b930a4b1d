// Claims lanes that are due.
//
// The messages of a lane are handed out without a hole, though nobody waits for transactions that are still open:
// whoever emits under a key has the lock of its head until the commit, so that a number is visible only where all
// before it are. And each of them has told the lanes of its readers in the same commit, so that a lane is ready from
// the moment on in which its message can be seen.

import type { MessagePlace } from '../../../atomicity/index.js'
import type { ClaimedLane, ClaimedLanes, LaneQuery, LetterDecision } from '../../../messaging/index.js'
import type { Procedure } from '../records/procedures.js'
import { checkRows, storableMs } from '../records/rows.js'
import type { Query } from '../records/statements.js'
import type { Values } from '../values.js'
import { contentColumns, messageOf, placeIn, type Row } from './content.js'
import { asking, behind, counting, laneStates, type MessageSql, once, rowsOf } from './statements.js'

const mostLanes = 10_000
const mostMessages = 10_000

const laneColumns = ['epoch', 'number', 'known_epoch', 'known_number', 'attempt', 'claims', 'failures']

/** So often a claim that took nothing is made again, where others wrote to the lanes that it had found. */
const mostRounds = 3

// A lane that was claimed, as far as its rows have been read.
interface Taken extends Omit<ClaimedLane, 'messages' | 'decision'> {
  readonly known: MessagePlace
  readonly messages: ClaimedLane['messages'][number][]
  decision: LetterDecision | undefined
}

/** Claims lanes as a query says. */
export function* claiming(sql: MessageSql, query: LaneQuery): Procedure<ClaimedLanes> {
  checkRows(query.lanes, mostLanes)
  checkRows(query.perLane, mostMessages)
  let rows: readonly Row[] = []
  // What somebody wrote to while it was being locked is passed over, but not said to be at rest.
  for (let round = 1; round <= mostRounds; round += 1) {
    rows = sql.dialect.writesInWith ? yield* claimedAtOnce(sql, query) : yield* claimedByStep(sql, query)
    if (rows.some(({ lane_key }) => lane_key !== null) || !rows.some(({ passed_over }) => Number(passed_over) === 1))
      break
  }
  const lanes = lanesIn(rows)
  const empty = lanes.filter(({ messages }) => messages.length === 0)
  if (empty.length > 0) yield givingUp(sql, query, empty)
  const next = rows[0]?.['next_in_ms']
  return {
    lanes: lanes.filter(({ messages }) => messages.length > 0).map(({ known: _, ...lane }) => lane),
    nextDueMs: next === null || next === undefined ? undefined : Math.max(0, Number(next)),
  }
}

// All parts see the rows as they were when the statement began. A lane that was written meanwhile is locked as it is
// now, and not written: no part of the statement sees that row.
//
// The lanes are written by where they were found: a plan that reads all lanes of the reader cannot be chosen for it,
// however wrong the statistics are. Nor can one that reads and sorts all that waits under a key: the messages are a
// range of numbers behind the first one, all of one epoch. A full join is never made by comparing all with all.
function* claimedAtOnce(sql: MessageSql, query: LaneQuery): Procedure<readonly Row[]> {
  const { dialect, tables } = sql
  const { reader, perLane } = query
  const { from, where } = behind(tables, reader.reads, 't')
  const asked = asking(dialect, (values) => {
    const due = `due AS MATERIALIZED (${dueLanes(sql, query, values)}${dialect.skipLocked})`
    const found = `${dialect.rowAddress} ${dialect.among('SELECT row_address FROM due')}`
    const taken = `taken AS (${taking(sql, query, () => found, values)} RETURNING reader, key, history, ${laneColumns.join(', ')})`
    const next = nextDue(sql, query, '(SELECT count(*) FROM due)', values)
    const first = (columns: string): string =>
      `SELECT ${columns} FROM ${from} WHERE ${where} ORDER BY m.epoch, m.number LIMIT 1`
    const page = (): string =>
      `m.epoch = f.epoch AND m.number >= f.number AND m.number < f.number + ${values.number(perLane)}`
    const messages =
      perLane === 1
        ? `LEFT JOIN LATERAL (${first(contentColumns('m.'))}) AS n ON TRUE`
        : `LEFT JOIN LATERAL (${first('m.epoch, m.number')}) AS f ON TRUE ` +
          `LEFT JOIN LATERAL (SELECT ${contentColumns('m.')} FROM ${from} WHERE ${where} AND ${page()}) AS n ON TRUE`
    return `WITH ${due}, ${taken}
      SELECT (${next}) AS next_in_ms, CASE WHEN t.key IS NULL AND due.key IS NOT NULL THEN 1 END AS passed_over,
        ${laneSelection('t')}, ${contentColumns('n.')}, d.decision
      FROM (SELECT 1) AS one LEFT JOIN (taken AS t FULL JOIN due ON due.key = t.key) ON TRUE
      ${messages}
      LEFT JOIN ${tables.dead_letter} AS d ON ${isDecided('t', 'n')}
      ORDER BY due.due_at_ms, t.key, n.epoch, n.number`
  })
  return (yield { ...asked, plansAnew: true }).rows
}

function* claimedByStep(sql: MessageSql, query: LaneQuery): Procedure<readonly Row[]> {
  const { dialect, tables } = sql
  const { reader, perLane } = query
  const { rows: due } = yield asking(dialect, (values) => dueLanes(sql, query, values))
  const [next] = (yield asking(
    dialect,
    (values) => `SELECT (${nextDue(sql, query, String(due.length), values)}) AS next_in_ms`,
  )).rows
  const keys = due.map(({ key }) => [String(key)])
  if (keys.length === 0) return [{ ...next, lane_key: null }]
  yield counting(dialect, (values) =>
    taking(
      sql,
      query,
      (named) => `key ${dialect.among(`SELECT key FROM ${rowsOf(dialect, { key: 'text' }, keys, named)}`)}`,
      values,
    ),
  )
  const { from, where } = behind(tables, reader.reads, 't')
  const found: Row[] = []
  for (const [key] of keys) {
    const { rows } = yield asking(dialect, (values) => {
      const messages =
        `SELECT m.rowid FROM ${from} WHERE ${where} ORDER BY m.epoch, m.number ` + `LIMIT ${values.number(perLane)}`
      const source = reader.reads === 'outbox' ? tables.message : tables.inbox
      return `SELECT ${laneSelection('t')}, ${contentColumns('n.')}, d.decision FROM ${tables.lane} AS t
        LEFT JOIN ${source} AS n ON n.rowid IN (${messages})
        LEFT JOIN ${tables.dead_letter} AS d ON ${isDecided('t', 'n')}
        WHERE t.reader = ${values.text(reader.name)} AND t.key = ${values.text(key as string)} ORDER BY n.epoch, n.number`
    })
    for (const row of rows) found.push({ ...next, ...row })
  }
  return found
}

function dueLanes({ dialect, tables }: MessageSql, { reader, lanes, key }: LaneQuery, values: Values): string {
  const mine = `reader = ${values.text(reader.name)} AND state = ${laneStates.ready} AND due_at_ms <= ${once(dialect)}`
  const only = key === undefined ? '' : ` AND key = ${values.text(key)}`
  const columns = `key, due_at_ms, ${dialect.rowAddress} AS row_address`
  return `SELECT ${columns} FROM ${tables.lane} WHERE ${mine}${only} ORDER BY due_at_ms LIMIT ${values.number(lanes)}`
}

function taking(
  { dialect, tables }: MessageSql,
  { reader, owner, leaseMs }: LaneQuery,
  which: (values: Values) => string,
  values: Values,
): string {
  const set =
    `owner = ${values.text(owner)}, attempt = attempt + 1, claims = claims + 1, ` +
    `due_at_ms = ${once(dialect)} + ${values.number(storableMs(leaseMs))}`
  const mine = `reader = ${values.text(reader.name)}`
  return `UPDATE ${tables.lane} SET ${set} WHERE ${mine} AND ${which(values)}`
}

// Where as many were taken as were wanted, the one behind them; otherwise one that is not due yet, so that a lane that
// somebody else holds on to does not look as if it could be had now.
function nextDue(
  { dialect, tables }: MessageSql,
  { reader, lanes, key }: LaneQuery,
  taken: string,
  values: Values,
): string {
  const isFull = (): string => (key === undefined ? `${taken} = ${values.number(lanes)}` : '1 = 0')
  const mine = `reader = ${values.text(reader.name)} AND state = ${laneStates.ready}`
  const later = `due_at_ms > CASE WHEN ${isFull()} THEN 0 ELSE ${once(dialect)} END`
  const offset = `CASE WHEN ${isFull()} THEN ${taken} ELSE 0 END`
  return `SELECT due_at_ms - ${once(dialect)} FROM ${tables.lane} WHERE ${mine} AND ${later} ORDER BY due_at_ms LIMIT 1 OFFSET ${offset}`
}

// What nothing was found behind is idle: its messages are gone, or it was told of more than there is. But where it was
// told of another one since, or where the message came after the claim had begun, it is due at once. What the lane knew
// when it was claimed was committed before this statement, which therefore sees it.
function givingUp({ dialect, tables }: MessageSql, { reader, owner }: LaneQuery, empty: readonly Taken[]): Query {
  const columns = { of_key: 'text', of_attempt: 'number', told_epoch: 'number', told_number: 'number' } as const
  const rows = empty.map(({ key, attempt, known }) => [key, attempt, known.epoch, known.number])
  const { from, where } = behind(tables, reader.reads, 'l')
  return counting(dialect, (values) => {
    const there = `EXISTS (SELECT 1 FROM ${from} WHERE ${where})`
    const told = '(l.known_epoch, l.known_number) > (g.told_epoch, g.told_number)'
    const state = `CASE WHEN ${told} OR ${there} THEN ${laneStates.ready} ELSE ${laneStates.idle} END`
    const mine = (): string =>
      `l.reader = ${values.text(reader.name)} AND l.key = g.of_key AND l.owner = ${values.text(owner)}`
    return (
      `UPDATE ${tables.lane} AS l SET owner = NULL, claims = 0, state = ${state}, due_at_ms = ${once(dialect)} ` +
      `FROM ${rowsOf(dialect, columns, rows, values)} AS g WHERE ${mine()} AND l.attempt = g.of_attempt`
    )
  })
}

function laneSelection(alias: string): string {
  const cells = laneColumns.map((name) => `${alias}.${name} AS lane_${name}`)
  return [`${alias}.key AS lane_key`, `${alias}.history AS lane_history`, ...cells].join(', ')
}

function isDecided(lane: string, message: string): string {
  const same = `d.reader = ${lane}.reader AND d.source = ${message}.source AND d.id = ${message}.id`
  return `${same} AND d.state IN ('redriving', 'discarding')`
}

function lanesIn(rows: readonly Row[]): readonly Taken[] {
  const lanes = new Map<string, Taken>()
  for (const row of rows) {
    if (row['lane_key'] === null) continue
    const key = String(row['lane_key'])
    const lane = lanes.get(key) ?? laneOf(key, row)
    lanes.set(key, lane)
    if (row['id'] === null) continue
    if (lane.messages.length === 0) lane.decision = decisionOf(row['decision'])
    lane.messages.push(messageOf(row))
  }
  return [...lanes.values()]
}

function laneOf(key: string, row: Row): Taken {
  const count = (name: string): number => Number(row[`lane_${name}`])
  return {
    key,
    attempt: count('attempt'),
    claims: count('claims'),
    failures: count('failures'),
    history: String(row['lane_history']),
    done: placeIn(row['lane_epoch'], row['lane_number']),
    known: { epoch: count('known_epoch'), number: count('known_number') },
    messages: [],
    decision: undefined,
  }
}

/** A decision, as it is stored. */
function decisionOf(cell: unknown): LetterDecision | undefined {
  if (typeof cell !== 'string') return undefined
  const decision = JSON.parse(cell) as LetterDecision
  return decision.is === 'edit' ? { ...decision, codec: decision.codec ?? undefined } : decision
}
