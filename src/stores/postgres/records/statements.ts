// The statements of records in PostgreSQL, as text. Values come in by a function, as parameters or as literals; times are one look at the server's clock for each statement.

import {
  type AuditNote,
  droppedNote,
  type Expected,
  type PurgeQuery,
  type RecordChange,
  type RecordDraft,
  type RecordOutcome,
  recordFormat,
} from '../../../atomicity/index.js'
import type { StoredKey } from '../../../identity/index.js'
import {
  auditSelection,
  type Forgettable,
  finishedRecords,
  hasDue,
  isOurFormat,
  oldMarkers,
  recordSelection,
  unknownRecords,
  wholeMs,
} from '../../sql/index.js'
import { nowMs, type PostgresSchema } from '../migrations.js'
import { literal } from './literal.js'
import { packedSelection } from './packed.js'

/** How a value gets into a statement; the answer is an SQL expression. */
export interface Binding {
  /** A text. */
  text(value: string): string
  /** A whole number. */
  number(value: number): string
}

/** The names of tables and sequences that statements use. */
export type RecordTables = Pick<PostgresSchema, 'marker' | 'audit' | 'nextFence'>

/** Values as part of the text. */
export const literals: Binding = { text: literal, number: (value) => `${value}::bigint` }

/** Values as parameters of one statement, collected in order. */
export function parameters(): Binding & { readonly values: (string | number)[] } {
  const values: (string | number)[] = []
  return {
    values,
    text: (value) => `$${values.push(value)}::text`,
    number: (value) => `$${values.push(value)}::bigint`,
  }
}

// clock_timestamp() is volatile, so the subquery is computed once, and all times of a statement are one.
const clock = `(SELECT ${nowMs} AS ms) AS clock`
const clockTable = `clock AS MATERIALIZED (SELECT ${nowMs} AS ms)`

/** Reads a record, and the time also where there is none. */
export function readText({ marker }: RecordTables, id: string): string {
  return `SELECT ${nowMs} AS now_ms, ${recordSelection('m')} FROM (SELECT 1) AS one LEFT JOIN ${marker} AS m ON m.id = ${id}`
}

/** The same in few columns. */
export function packedReadText({ marker }: RecordTables, id: string): string {
  return `SELECT ${nowMs} AS now_ms, ${packedSelection('m')} FROM (SELECT 1) AS one LEFT JOIN ${marker} AS m ON m.id = ${id}`
}

/**
 * Inserts a claim where there is none. Columns that it leaves out have the value of a new claim by themselves: without a lease there is one time alone, and the server
 * is spared the look at a clock that several could share.
 */
export function claimText(tables: RecordTables, id: StoredKey, draft: RecordDraft, bind: Binding): string {
  return draft.leaseMs === undefined
    ? claimFrom(tables, id, draft, bind, nowMs, (values) => `VALUES (${values})`)
    : claimFrom(tables, id, draft, bind, 'clock.ms', (values) => `SELECT ${values} FROM ${clock}`)
}

function claimFrom(
  { marker, nextFence }: RecordTables,
  id: StoredKey,
  draft: RecordDraft,
  bind: Binding,
  ms: string,
  source: (values: string) => string,
): string {
  const cells: [string, string][] = [
    ['id', bind.text(id)],
    ['format', String(recordFormat)],
    ['mode', bind.text(draft.mode)],
    ['state', "'claimed'"],
    ['token', bind.text(draft.token)],
    ['claimed_at_ms', ms],
  ]
  for (const name of ['operation', 'scope', 'fingerprint', 'input'] as const) {
    const value = draft[name]
    if (value !== undefined) cells.push([name, bind.text(value)])
  }
  const { leaseMs } = draft
  if (leaseMs !== undefined) cells.push(['fence', nextFence], ['due_at_ms', `${ms} + ${bind.number(wholeMs(leaseMs))}`])
  const columns = cells.map(([name]) => name).join(', ')
  const values = source(cells.map(([, value]) => value).join(', '))
  return `INSERT INTO ${marker} (${columns}) ${values} ON CONFLICT (id) DO NOTHING`
}

/** Puts a new claim in the place of a record that was read. */
export function reclaimText(
  tables: RecordTables,
  id: StoredKey,
  over: Expected,
  draft: RecordDraft,
  bind: Binding,
): string {
  const given = (value: string | undefined): string => (value === undefined ? 'NULL' : bind.text(value))
  const { leaseMs } = draft
  const cells = [
    `format = ${recordFormat}, version = version + 1, mode = ${bind.text(draft.mode)}, state = 'claimed'`,
    `token = ${bind.text(draft.token)}, operation = ${given(draft.operation)}, scope = ${given(draft.scope)}`,
    `fingerprint = ${given(draft.fingerprint)}, input = ${given(draft.input)}`,
    `fence = ${leaseMs === undefined ? 'NULL' : tables.nextFence}`,
    `due_at_ms = ${leaseMs === undefined ? 'NULL' : `clock.ms + ${bind.number(wholeMs(leaseMs))}`}`,
    'first_claimed_at_ms = clock.ms, claimed_at_ms = clock.ms, completed_at_ms = NULL, expires_at_ms = NULL',
    'claims = 1, looks = 0, codec = NULL, value = NULL, because = NULL',
  ]
  return `UPDATE ${tables.marker} SET ${cells.join(', ')} FROM ${clock} WHERE ${isThatOne(id, over, bind)}`
}

/** What the error of {@link outcomeText} shows when the claim is not there. */
export const goneSign = 'reprise marker'

/** The values of {@link outcomeText}, as SQL expressions. */
export type OutcomeCells = Readonly<Record<'id' | 'token' | 'state' | 'codec' | 'value' | 'rememberedMs', string>>

/** The values of an outcome as literals. */
export function outcomeCells(id: StoredKey, token: string, outcome: RecordOutcome): OutcomeCells {
  const { state, codec, value, rememberedMs } = outcome
  const cell = (text: string | undefined): string => (text === undefined ? 'NULL' : literal(text))
  return {
    id: literal(id),
    token: literal(token),
    state: literal(state),
    codec: cell(codec),
    value: cell(value),
    rememberedMs: rememberedMs === Number.POSITIVE_INFINITY ? 'NULL::bigint' : literals.number(wholeMs(rememberedMs)),
  }
}

/**
 * Writes an outcome into a claim of this transaction, and fails where that is not there: what follows in the same message is not reached then. The row is met by its unique index, as a
 * claim meets it, so there is nothing to plan; one that had to be inserted, or is somebody else's, is the failure.
 */
export function outcomeText({ marker }: RecordTables, cells: OutcomeCells): string {
  const { id, token, state, codec, value, rememberedMs } = cells
  // Made of a column, or it would be computed, and fail, when the statement is planned.
  const gone = `(m.looks::text || ' ${goneSign}')::integer`
  return `INSERT INTO ${marker} AS m (id, claimed_at_ms, looks) VALUES (${id}, ${nowMs}, -1)
    ON CONFLICT (id) DO UPDATE SET state = CASE WHEN m.token = ${token} AND m.state = 'claimed' THEN ${state} ELSE ${gone}::text END,
    codec = ${codec}, value = ${value}, completed_at_ms = excluded.claimed_at_ms, expires_at_ms = excluded.claimed_at_ms + ${rememberedMs}
    RETURNING CASE WHEN m.looks < 0 THEN ${gone} ELSE 1 END`
}

/** Inserts a claim, or reads what is there; the row says which in `written`. A row that came meanwhile is not seen: then there is none in the answer. */
export function insertText(tables: RecordTables, id: StoredKey, draft: RecordDraft, bind: Binding): string {
  const insert = claimFrom(tables, id, draft, bind, 'clock.ms', (values) => `SELECT ${values} FROM clock`)
  return withAnswer(tables, `done AS (${insert} RETURNING *)`, 'd.id IS NOT NULL', bind.text(id))
}

/** Changes a record that was read, or reads what is there. */
export function changeText(
  tables: RecordTables,
  id: StoredKey,
  over: Expected,
  change: RecordChange,
  note: AuditNote | undefined,
  bind: Binding,
): string {
  const { marker } = tables
  const update = `UPDATE ${marker} SET ${assignments(tables, change, bind)} FROM clock WHERE ${isThatOne(id, over, bind)} RETURNING ${marker}.*`
  const was = (): string => `(SELECT state FROM ${marker} WHERE ${isThatOne(id, over, bind)})`
  const noted = note === undefined ? '' : `, ${noteTable(tables, note, was(), bind.text(change.state), bind)}`
  return withAnswer(tables, `done AS (${update})${noted}`, 'd.id IS NOT NULL', bind.text(id))
}

/** Removes a record that was read, or reads what is there. */
export function removeText(
  tables: RecordTables,
  id: StoredKey,
  over: Expected,
  note: AuditNote | undefined,
  bind: Binding,
): string {
  const { marker } = tables
  const done = `done AS (DELETE FROM ${marker} WHERE ${isThatOne(id, over, bind)} RETURNING id, state)`
  const noted = note === undefined ? '' : `, ${noteTable(tables, note, 'done.state', "'absent'", bind)}`
  return `WITH ${clockTable}, ${done}${noted}
    SELECT clock.ms AS now_ms, EXISTS (SELECT FROM done) AS written, ${recordSelection('m')}
    FROM clock LEFT JOIN ${marker} AS m ON m.id = ${bind.text(id)} AND NOT EXISTS (SELECT FROM done)`
}

/** Takes what is due and puts it off. */
export function dueText({ marker }: RecordTables): string {
  const due = `SELECT m.id, m.due_at_ms FROM clock, ${marker} AS m
    WHERE m.${hasDue} AND m.due_at_ms <= clock.ms AND m.state IN ('claimed', 'unknown') AND m.mode = 'leased' AND m.operation = ANY($1::text[]) AND m.${isOurFormat}
    AND m.due_at_ms <= clock.ms - CASE m.state WHEN 'claimed' THEN $2::bigint ELSE 0 END
    ORDER BY m.due_at_ms LIMIT $3::bigint FOR UPDATE OF m SKIP LOCKED`
  const update = `UPDATE ${marker} AS m SET format = ${recordFormat}, version = m.version + 1, state = 'unknown', looks = m.looks + 1,
    due_at_ms = clock.ms + least($5::double precision, $4::double precision * power(2, least(m.looks, 60)))::bigint,
    token = CASE m.state WHEN 'claimed' THEN NULL ELSE m.token END,
    because = CASE m.state WHEN 'claimed' THEN 'lease-expired' ELSE m.because END
    FROM taken, clock WHERE m.id = taken.id RETURNING m.*, taken.due_at_ms AS was_due_at_ms`
  return `WITH ${clockTable}, taken AS MATERIALIZED (${due}), done AS (${update})
    SELECT d.id, ${recordSelection('d')} FROM done AS d ORDER BY d.was_due_at_ms, d.id`
}

/** Forgets what is past its time; each kind that is asked for is a column with its count. */
export function purgeText(tables: RecordTables, query: PurgeQuery, bind: Binding): string {
  const { marker, audit } = tables
  const { unknownAfterMs, markersAfterMs, auditAfterMs } = query
  const limit = bind.number(query.limit)
  const before = (afterMs: number): string => `<= (SELECT ms FROM clock) - ${bind.number(wholeMs(afterMs))}`
  const gone = ({ since, where }: Forgettable, afterMs: number): string =>
    `DELETE FROM ${marker} AS m WHERE m.id = ANY (ARRAY (SELECT id FROM ${marker} WHERE ${since} ${before(afterMs)} AND ${where} AND ${isOurFormat} LIMIT ${limit} FOR UPDATE SKIP LOCKED)) RETURNING m.id`
  const tablesOf: string[] = [clockTable, `finished AS (${gone(finishedRecords, 0)})`]
  if (markersAfterMs !== undefined) tablesOf.push(`markers AS (${gone(oldMarkers, markersAfterMs)})`)
  if (unknownAfterMs !== undefined) {
    const { action, actor, reason } = droppedNote
    tablesOf.push(
      `unknowns AS (${gone(unknownRecords, unknownAfterMs)})`,
      `noted AS (INSERT INTO ${audit} (${auditSelection})
        SELECT unknowns.id, clock.ms, '${action}', '${actor}', ${bind.text(reason)}, 'unknown', 'absent' FROM unknowns, clock)`,
    )
  }
  if (auditAfterMs !== undefined) {
    tablesOf.push(
      `notes AS (DELETE FROM ${audit} WHERE number = ANY (ARRAY (SELECT number FROM ${audit} WHERE at_ms ${before(auditAfterMs)} ORDER BY at_ms LIMIT ${limit} FOR UPDATE SKIP LOCKED)) RETURNING 1)`,
    )
  }
  const count = (name: string, asked: unknown): string => (asked === undefined ? '0' : `(SELECT count(*) FROM ${name})`)
  return `WITH ${tablesOf.join(', ')} SELECT (SELECT count(*) FROM finished) AS finished, ${count('markers', markersAfterMs)} AS markers,
    ${count('unknowns', unknownAfterMs)} AS unknown, ${count('notes', auditAfterMs)} AS audit`
}

// The version alone would not tell a row from one that was removed and inserted again.
function isThatOne(id: StoredKey, { version, token, fence }: Expected, bind: Binding): string {
  const sameToken = token === undefined ? 'token IS NULL' : `token = ${bind.text(token)}`
  const sameFence = fence === undefined ? 'fence IS NULL' : `fence = ${bind.number(fence)}`
  return `id = ${bind.text(id)} AND version = ${bind.number(version)} AND ${sameToken} AND ${sameFence} AND ${isOurFormat}`
}

/** What a change does to the columns: the meaning of `changedRecord`, as SQL. */
function assignments({ nextFence }: RecordTables, change: RecordChange, bind: Binding): string {
  const { claimed, remembered, dueInMs } = change
  const anew = claimed === 'first'
  const cells = [`format = ${recordFormat}`, 'version = version + 1', `state = ${bind.text(change.state)}`]
  const set = (name: string, expression: string): void => {
    cells.push(`${name} = ${expression}`)
  }
  if (change.mode !== undefined) set('mode', bind.text(change.mode))
  for (const name of ['token', 'fingerprint', 'codec', 'value', 'input', 'because'] as const) {
    const value = change[name]
    if (value !== undefined) set(name, value === null ? 'NULL' : bind.text(value))
  }
  if (change.fence === 'next') set('fence', nextFence)
  else if (anew) set('fence', 'NULL')
  if (claimed !== undefined) {
    set('first_claimed_at_ms', anew ? 'clock.ms' : 'coalesce(first_claimed_at_ms, claimed_at_ms)')
    set('claimed_at_ms', 'clock.ms')
    set('claims', anew ? '1' : 'claims + 1')
    if (anew) set('looks', '0')
  }
  if (dueInMs !== undefined) set('due_at_ms', dueInMs === null ? 'NULL' : `clock.ms + ${bind.number(wholeMs(dueInMs))}`)
  if (remembered !== undefined) {
    set('completed_at_ms', 'clock.ms')
    const ever = remembered === Number.POSITIVE_INFINITY
    set('expires_at_ms', ever ? 'NULL' : `clock.ms + ${bind.number(wholeMs(remembered))}`)
  } else if (claimed !== undefined) {
    set('completed_at_ms', 'NULL')
    set('expires_at_ms', 'NULL')
  }
  return cells.join(', ')
}

// All parts of a statement see the rows as they were before it, so the state of the version that is changed can be read beside the change.
function noteTable({ audit }: RecordTables, note: AuditNote, from: string, to: string, bind: Binding): string {
  const words = [bind.text(note.action), bind.text(note.actor), bind.text(note.reason)].join(', ')
  return `noted AS (INSERT INTO ${audit} (id, at_ms, action, actor, reason, from_state, to_state)
    SELECT done.id, clock.ms, ${words}, ${from}, ${to} FROM done, clock)`
}

/** What was written, or else what is there. */
function withAnswer({ marker }: RecordTables, work: string, written: string, id: string): string {
  return `WITH ${clockTable}, ${work}, answer AS (SELECT * FROM done UNION ALL SELECT * FROM ${marker} WHERE id = ${id} AND NOT EXISTS (SELECT FROM done))
    SELECT clock.ms AS now_ms, EXISTS (SELECT FROM done) AS written, ${recordSelection('d')} FROM clock LEFT JOIN answer AS d ON ${written}`
}
