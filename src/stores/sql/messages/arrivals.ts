// Messages from brokers: what one that arrives is, and where one that failed waits. Each step is a statement of the
// handler's transaction. Whoever has the lock of a lane reads after it what it decides by, so that of two who bring the
// same message at once the second one sees what the first one wrote.

import { isBehind, type MessagePlace } from '../../../atomicity/index.js'
import { type Arrival, type Arrived, arrivalOf, type LaneEnd, placeBehind } from '../../../messaging/index.js'
import type { Procedure } from '../records/procedures.js'
import { storableMs } from '../records/rows.js'
import type { Query } from '../records/statements.js'
import type { Values } from '../values.js'
import { cellsOf, contentNames, placeIn, type Row, textIn } from './content.js'
import { parking } from './ends.js'
import { asking, behind, counting, laneStates, type MessageSql, once } from './statements.js'

// A lane whose lock this transaction has.
interface LockedLane {
  readonly state: number
  readonly done: MessagePlace | undefined
  readonly known: MessagePlace | undefined
}

// What is known of the message itself, and of what waits in its lane.
interface Facts {
  readonly processed: string | undefined
  readonly stored: string | undefined
  readonly isTaken: boolean
  readonly follows: boolean
  readonly first: MessagePlace | undefined
}

/** Says what a message is, and writes what follows from that. */
export function* arriving(sql: MessageSql, arrival: Arrival, gapMs: number): Procedure<Arrived> {
  if (arrival.order === 'none') return yield* arrivingAlone(sql, arrival)
  const byArrival = placeOf(arrival) === undefined
  const { lane, isMine } = byArrival
    ? yield* lockedOrProcessed(sql, arrival)
    : { lane: yield* lockedLane(sql, arrival) }
  if (isMine === true) return { is: 'new' }
  const facts = yield* factsOf(sql, arrival, lane)
  const step = arrivalOf(arrival, { ...lane, first: facts.first }, facts)
  if (step.is === 'new') {
    yield* processing(sql, arrival)
    if (step.done !== undefined) yield advancing(sql, arrival, lane, step.done)
  } else if (step.is === 'gap' || (step.is === 'stored' && step.place !== undefined)) {
    yield* storing(sql, arrival, lane, step.place as MessagePlace)
    if (lane.state === laneStates.idle) {
      yield laneWrite(sql, arrival, (values) => [
        `state = ${laneStates.ready}`,
        `due_at_ms = ${once(sql.dialect)} + ${values.number(storableMs(gapMs))}`,
      ])
    }
  }
  if (step.is === 'gap') return { is: 'gap', expected: step.expected }
  return step.is === 'outdated' ? step : { is: step.is }
}

// The primary key of its processed row decides among those who bring it at once. The inbox is read after it: somebody
// who could not handle it held that row too until the message was in the inbox.
function* arrivingAlone(sql: MessageSql, arrival: Arrival): Procedure<Arrived> {
  const isMine = yield* processing(sql, arrival)
  const facts = yield* factsOf(sql, arrival, undefined)
  // What this transaction has just written proves nothing.
  const before = isMine ? { ...facts, processed: undefined } : facts
  const step = arrivalOf(arrival, { done: undefined, known: undefined, first: undefined }, before)
  if (isMine && step.is !== 'new') yield unprocessing(sql, arrival)
  return { is: step.is as 'new' | 'duplicate' | 'mismatch' | 'stored' }
}

/** Puts a message that could not be handled into the inbox. */
export function* keeping(
  sql: MessageSql,
  arrival: Arrival,
  then: Extract<LaneEnd['then'], { readonly is: 'rest' | 'park' }>,
): Procedure<void> {
  const lane = yield* lockedLane(sql, arrival)
  const isAlone = arrival.order === 'none'
  // Whoever is about to handle it has its processed row, and is waited for.
  if (isAlone && !(yield* processing(sql, arrival))) return
  const facts = yield* factsOf(sql, arrival, lane)
  if (isAlone) yield unprocessing(sql, arrival)
  if (!isAlone && facts.processed !== undefined) return
  if (facts.stored !== undefined || facts.isTaken) return
  const place = placeOf(arrival) ?? placeBehind(lane.known)
  yield* storing(sql, arrival, lane, place)
  // Behind another one it waits for its turn, and fails then.
  if (facts.first !== undefined && isBehind(facts.first, place)) return
  const { reader } = arrival
  if (then.is === 'park') {
    yield* parking(sql, [{ reader, letter: { ...then.letter, message: { ...then.letter.message, place } } }])
    yield laneWrite(sql, arrival, () => [`state = ${laneStates.parked}`, unclaimed, forgotten])
  } else {
    yield laneWrite(sql, arrival, (values) => [
      `state = ${laneStates.ready}`,
      unclaimed,
      `due_at_ms = ${once(sql.dialect)} + ${values.number(storableMs(then.forMs))}`,
      `failures = ${values.number(then.failures)}, history = ${values.text(then.history)}`,
    ])
  }
}

// Whoever has a claim on the lane loses it: its first message is another one now.
const unclaimed = 'owner = NULL, attempt = attempt + 1, claims = 0'
const forgotten = "failures = 0, history = ''"

function* lockedLane(sql: MessageSql, arrival: Arrival): Procedure<LockedLane> {
  const { rows } = yield asking(sql.dialect, (values) => lockLane(sql, arrival, values))
  return laneIn(rows[0])
}

// The lane, and whether the processed row is written by this transaction. Nothing waits in a lane that is idle, so that
// the index of processed rows alone decides there; in one that is not nothing is written. Where the engine can write
// inside WITH it is one statement, in which the second part waits for the lock of the first one.
function* lockedOrProcessed(
  sql: MessageSql,
  arrival: Arrival,
): Procedure<{ readonly lane: LockedLane; readonly isMine: boolean }> {
  if (!sql.dialect.writesInWith) {
    const lane = yield* lockedLane(sql, arrival)
    return { lane, isMine: lane.state === laneStates.idle && (yield* processing(sql, arrival)) }
  }
  const asked = asking(sql.dialect, (values) => {
    const lane = `lane AS (${lockLane(sql, arrival, values)})`
    const mine = `mine AS (${insertProcessed(sql, arrival, values, ` FROM lane WHERE lane.state = ${laneStates.idle}`)})`
    return `WITH ${lane}, ${mine} SELECT lane.*, (SELECT count(*) FROM mine) AS mine FROM lane`
  })
  const { rows } = yield { ...asked, keepsPlan: true }
  return { lane: laneIn(rows[0]), isMine: Number(rows[0]?.['mine']) === 1 }
}

function lockLane({ dialect, tables }: MessageSql, { reader, message }: Arrival, values: Values): string {
  const source = `VALUES (${values.text(reader.name)}, ${values.text(message.key)})`
  // An update that changes nothing: it locks the row, and answers with it as it is now.
  const insert = dialect.insertOrSet(tables.lane, 'reader, key', source, 'reader, key', ['key'])
  return insert + dialect.returning('state, epoch, number, known_epoch, known_number')
}

function laneIn(row: Row = {}): LockedLane {
  return {
    state: Number(row['state']),
    done: placeIn(row['epoch'], row['number']),
    known: placeIn(row['known_epoch'], row['known_number']),
  }
}

function* factsOf(sql: MessageSql, arrival: Arrival, lane: LockedLane | undefined): Procedure<Facts> {
  const { dialect, tables } = sql
  const { reader, message } = arrival
  const own = placeOf(arrival)
  const { rows } = yield asking(dialect, (values) => {
    const who = (): string => `reader = ${values.text(reader.name)} AND ${identity(values, arrival)}`
    const fingerprint = (table: string): string => `(SELECT fingerprint FROM ${table} WHERE ${who()})`
    const at = (number: number): string =>
      `(SELECT count(*) FROM ${tables.inbox} WHERE reader = ${values.text(reader.name)} AND key = ${values.text(message.key)} AND epoch = ${values.number(own?.epoch ?? 0)} AND number = ${values.number(number)})`
    const cells = [`${fingerprint(tables.processed)} AS processed`, `${fingerprint(tables.inbox)} AS stored`]
    if (own !== undefined) cells.push(`${at(own.number)} AS taken`, `${at(own.number - 1)} AS before`)
    return `SELECT ${cells.join(', ')}`
  })
  const [row = {}] = rows
  return {
    processed: textIn(row['processed']),
    stored: textIn(row['stored']),
    isTaken: Number(row['taken'] ?? 0) > 0,
    follows: Number(row['before'] ?? 0) > 0,
    first: lane === undefined || lane.state === laneStates.idle ? undefined : yield* firstWaiting(sql, arrival),
  }
}

function* firstWaiting(
  { dialect, tables }: MessageSql,
  { reader, message }: Arrival,
): Procedure<MessagePlace | undefined> {
  const { from, where } = behind(tables, 'inbox', 'l')
  const { rows } = yield asking(dialect, (values) => {
    const mine = `l.reader = ${values.text(reader.name)} AND l.key = ${values.text(message.key)}`
    return `SELECT m.epoch, m.number FROM ${tables.lane} AS l, ${from} WHERE ${mine} AND ${where} ORDER BY m.epoch, m.number LIMIT 1`
  })
  const [row] = rows
  return row && placeIn(row['epoch'], row['number'])
}

// Whether the processed row is written by this transaction.
function* processing(sql: MessageSql, arrival: Arrival): Procedure<boolean> {
  const asked = asking(sql.dialect, (values) => insertProcessed(sql, arrival, values, ' WHERE TRUE'))
  const { rows } = yield { ...asked, keepsPlan: true }
  return rows.length === 1
}

// Writes the processed row where there is none, under a condition.
function insertProcessed({ dialect, tables }: MessageSql, arrival: Arrival, values: Values, where: string): string {
  const { reader, message, fingerprint } = arrival
  const cells = [reader.name, message.source, message.id, fingerprint].map((cell) => values.text(cell))
  const source = `SELECT ${cells.join(', ')}, ${dialect.nowMs}${where}`
  const columns = 'reader, source, id, fingerprint, at_ms'
  return dialect.insertNew(tables.processed, columns, source, 'reader, source, id') + dialect.returning('id')
}

function unprocessing({ dialect, tables }: MessageSql, arrival: Arrival): Query {
  return counting(dialect, (values) => {
    const mine = `reader = ${values.text(arrival.reader.name)} AND ${identity(values, arrival)}`
    return `DELETE FROM ${tables.processed} WHERE ${mine}`
  })
}

function* storing(sql: MessageSql, arrival: Arrival, lane: LockedLane, place: MessagePlace): Procedure<void> {
  const { dialect, tables } = sql
  const { reader, message, stored, fingerprint } = arrival
  yield counting(dialect, (values) => {
    const cells = [reader.name, fingerprint, ...cellsOf({ ...message, ...stored, place })]
    const places = cells.map((cell) => (typeof cell === 'number' ? values.number(cell) : values.place(cell)))
    return `INSERT INTO ${tables.inbox} (reader, fingerprint, ${contentNames}) VALUES (${places.join(', ')})`
  })
  if (lane.known === undefined || isBehind(lane.known, place)) {
    yield laneWrite(sql, arrival, (values) => [knows(values, place)])
    return
  }
  // It fills a hole. Whoever has claimed the lane does not know of it, and would wait for what is there: the claim is
  // over, not because its owner died, and the lane is due.
  yield counting(dialect, (values) => {
    const due = `due_at_ms = ${once(dialect)}`
    const mine = `reader = ${values.text(reader.name)} AND key = ${values.text(message.key)} AND owner IS NOT NULL`
    return `UPDATE ${tables.lane} SET ${unclaimed}, ${due} WHERE ${mine}`
  })
}

function advancing(sql: MessageSql, arrival: Arrival, lane: LockedLane, done: MessagePlace): Query {
  return laneWrite(sql, arrival, (values) => [
    `epoch = ${values.number(done.epoch)}, number = ${values.number(done.number)}`,
    knows(values, lane.known !== undefined && isBehind(done, lane.known) ? lane.known : done),
    // Of a lane that stays idle it is when it came this far.
    `due_at_ms = ${once(sql.dialect)}`,
    ...(lane.state === laneStates.ready ? [unclaimed, forgotten] : []),
  ])
}

function laneWrite(
  { dialect, tables }: MessageSql,
  { reader, message }: Arrival,
  set: (values: Values) => readonly string[],
): Query {
  return counting(dialect, (values) => {
    const assignments = set(values).join(', ')
    const mine = `reader = ${values.text(reader.name)} AND key = ${values.text(message.key)}`
    return `UPDATE ${tables.lane} SET ${assignments} WHERE ${mine}`
  })
}

function knows(values: Values, { epoch, number }: MessagePlace): string {
  return `known_epoch = ${values.number(epoch)}, known_number = ${values.number(number)}`
}

function identity(values: Values, { message }: Arrival): string {
  return `source = ${values.text(message.source)} AND id = ${values.text(message.id)}`
}

// Its own place, where these are checked.
function placeOf({ order, message }: Arrival): MessagePlace | undefined {
  return order === 'gapless' ? message.place : undefined
}
