// The statements on records that every SQL store shares, as text. Times are the store's: one look at its clock for each
// statement. What a change means is stated by the pure functions of the atomicity module; here it is said in SQL, so
// that a write needs no read before it and nobody can come in between.

import {
  type DueQuery,
  type Expected,
  lookDelayMs,
  type PurgeQuery,
  type RecentQuery,
  type RecordChange,
  type RecordDraft,
  type RecordOutcome,
  type RecordQuery,
  recordFormat,
} from '../../../atomicity/index.js'
import type { Pepper, StoredKey } from '../../../identity/index.js'
import { defined } from '../../../kernel/index.js'
import type { SqlDialect } from '../dialect.js'
import { type Binding, Values } from '../values.js'
import { hasDue, hasEnd } from './migration.js'
import { auditSelection, checkRows, isOurFormat, isOver, mostNotes, selection, storableMs } from './rows.js'

/** One statement with its values. */
export interface Query {
  readonly text: string
  readonly values: readonly unknown[]
  /** True: only the number of rows that it wrote is asked for. */
  readonly counts?: boolean
  /** True: it gives the time and one record, in the order of their columns, and may be answered with lists of cells. */
  readonly single?: boolean
  /**
   * True: it is planned each time. Its tables grow from nothing to millions of rows and back within minutes, and a plan
   * that was made for few of them reads the whole table for each row when there are many.
   */
  readonly plansAnew?: boolean
  /**
   * True: inside of transactions too its plan may be kept, where the driver can. It finds each row by the index of a
   * conflict, so that a plan that was made for few rows is as good for many.
   */
  readonly keepsPlan?: boolean
}

/** Where a store keeps its records. */
export interface RecordTables {
  /** The table of records, quoted. */
  readonly marker: string
  /** The table of audit notes, quoted. */
  readonly audit: string
  /** The table of dedupe windows, quoted. */
  readonly window: string
  /** The table of what they have accepted, quoted. */
  readonly seen: string
  /** The next number of the fence, as an expression. */
  readonly nextFence: string
  /** The statement that has to run before `nextFence`; undefined: none. */
  readonly advanceFence?: string | undefined
}

/** The name of the table of records: another one under each pepper, so that whoever has another finds no table. */
export function markerName(pepper: string | undefined): string {
  return pepper === undefined ? 'marker' : `marker_${pepper}`
}

/** The tables of a store, by the quoted names of what is in them. */
export function recordTables({ fence }: SqlDialect, named: (name: string) => string, pepper?: Pepper): RecordTables {
  const table = named('fence')
  return {
    marker: named(markerName(pepper?.id)),
    audit: named('audit'),
    window: named('window'),
    seen: named('seen'),
    nextFence: fence.next(table),
    advanceFence: fence.advance?.(table),
  }
}

/** Values of a claim as SQL expressions; what is not given is left to the column's default. */
export type ClaimCells = Readonly<Record<'id' | 'mode' | 'token', string>> &
  Readonly<Partial<Record<'operation' | 'scope' | 'fingerprint' | 'input' | 'leaseMs', string>>>

/** The values of a claim, put into a statement. */
export function claimCells(id: StoredKey, draft: RecordDraft, bind: Binding): ClaimCells {
  const { mode, token, operation, scope, fingerprint, input, leaseMs } = draft
  const given = (value: string | undefined) => (value === undefined ? undefined : bind.text(value))
  return defined({
    id: bind.text(id),
    mode: bind.text(mode),
    token: bind.text(token),
    operation: given(operation),
    scope: given(scope),
    fingerprint: given(fingerprint),
    input: given(input),
    leaseMs: leaseMs === undefined ? undefined : bind.number(storableMs(leaseMs)),
  })
}

/** How a clock gets into a statement: the expression for its time, and what has to stand in FROM for it. */
export interface ClockSource {
  readonly ms: string
  readonly from: string
}

/** The statements on the records of one store. */
export class RecordStatements {
  readonly dialect: SqlDialect
  readonly tables: RecordTables
  /** The clock of a statement that stands alone. */
  readonly clock: ClockSource
  readonly #read: string
  readonly #claim: string
  readonly #leasedClaim: string
  readonly #outcome: string

  constructor(dialect: SqlDialect, tables: RecordTables) {
    this.dialect = dialect
    this.tables = tables
    this.clock = dialect.nowIsStable
      ? { ms: dialect.nowMs, from: '' }
      : { ms: 'clock.ms', from: `(SELECT ${dialect.nowMs} AS ms) AS clock` }
    this.#read = this.readText(dialect.placeholder(1))
    const claim = (names: readonly string[]): string => {
      const cell = (name: string, place: number): [string, string] => {
        return [name, dialect.placeholder(place + 1, name === 'leaseMs' ? 'number' : 'text')]
      }
      return this.claimText(Object.fromEntries(names.map(cell)) as ClaimCells)
    }
    const at = dialect.placeholder
    const { ms } = this.clock
    this.#outcome = this.#update(
      `state = ${at(1)}, codec = ${at(2)}, value = ${at(3)}, completed_at_ms = ${ms}, expires_at_ms = ${ms} + ${at(4, 'number')}`,
      `id = ${at(5)} AND token = ${at(6)} AND state = 'claimed'`,
    )
    this.#claim = claim(claimNames)
    this.#leasedClaim = claim([...claimNames, 'leaseMs'])
  }

  /** Reads a record, and the time also where there is none. */
  read(id: StoredKey): Query {
    return { text: this.#read, values: [id], single: true }
  }

  /**
   * The same for an expression, in as few columns as the dialect allows.
   *
   * @param more What else is selected, each with a comma behind it. Default: nothing.
   */
  readText(id: string, more: string = ''): string {
    const { nowMs } = this.dialect
    const { marker } = this.tables
    return `SELECT ${nowMs} AS now_ms, ${more}${selection(this.dialect, 'm.')} FROM (SELECT 1) AS one LEFT JOIN ${marker} AS m ON m.id = ${id}`
  }

  /** Inserts a claim where there is none. One with a lease takes a fence: `tables.advanceFence` runs before it. */
  claim(id: StoredKey, draft: RecordDraft): Query {
    const { mode, token, operation = null, scope = null, fingerprint = null, input = null, leaseMs } = draft
    const values = [id, mode, token, operation, scope, fingerprint, input]
    if (leaseMs === undefined) return { text: this.#claim, values, counts: true }
    return { text: this.#leasedClaim, values: [...values, storableMs(leaseMs)], counts: true }
  }

  /**
   * The claim as text. Columns that it leaves out have the value of a new claim by themselves. Without a lease there is
   * one time alone, and an engine is spared the look at a clock that several could share.
   */
  claimText({ leaseMs, ...given }: ClaimCells, shared?: ClockSource): string {
    const { dialect, tables } = this
    const { ms, from } = shared ?? (leaseMs === undefined ? { ms: dialect.nowMs, from: '' } : this.clock)
    const row: [string, string][] = Object.entries(given)
    row.push(['format', String(recordFormat)], ['state', "'claimed'"], ['claimed_at_ms', ms])
    if (leaseMs !== undefined) row.push(['fence', tables.nextFence], ['due_at_ms', `${ms} + ${leaseMs}`])
    const columns = row.map(([name]) => name).join(', ')
    const values = row.map(([, value]) => value).join(', ')
    return dialect.insertNew(
      tables.marker,
      columns,
      from === '' ? `VALUES (${values})` : `SELECT ${values} FROM ${from}`,
      'id',
    )
  }

  /** Puts a new claim in the place of a record that was read. */
  reclaim(id: StoredKey, over: Expected, draft: RecordDraft): Query {
    const bind = new Values(this.dialect)
    return { text: this.reclaimText(id, over, draft, bind), values: bind.list, counts: true }
  }

  /** The same as text. */
  reclaimText(id: StoredKey, over: Expected, draft: RecordDraft, bind: Binding): string {
    const given = (value: string | undefined): string => (value === undefined ? 'NULL' : bind.text(value))
    const { mode, token, operation, scope, fingerprint, input, leaseMs } = draft
    const { ms } = this.clock
    const set = [
      `format = ${recordFormat}, version = version + 1, mode = ${bind.text(mode)}, state = 'claimed'`,
      `token = ${bind.text(token)}, operation = ${given(operation)}, scope = ${given(scope)}`,
      `fingerprint = ${given(fingerprint)}, input = ${given(input)}`,
      `fence = ${leaseMs === undefined ? 'NULL' : this.tables.nextFence}`,
      `due_at_ms = ${leaseMs === undefined ? 'NULL' : `${ms} + ${bind.number(storableMs(leaseMs))}`}`,
      `first_claimed_at_ms = ${ms}, claimed_at_ms = ${ms}, completed_at_ms = NULL, expires_at_ms = NULL`,
      'claims = 1, looks = 0, codec = NULL, value = NULL, because = NULL',
    ]
    return this.#update(set.join(', '), isThatOne(id, over, bind))
  }

  /**
   * Writes the outcome into a claim of this transaction, and into no row where that is gone. One transaction is one
   * write to whoever comes after it, so the version stays.
   *
   * @param also A further condition, whose places come after the {@link outcomePlaces} of the statement.
   */
  outcome(id: StoredKey, token: string, outcome: RecordOutcome, also?: Condition): Query {
    const { state, codec = null, value = null, rememberedMs } = outcome
    const expiresInMs = rememberedMs === Number.POSITIVE_INFINITY ? null : storableMs(rememberedMs)
    const values = [state, codec, value, expiresInMs, id, token]
    if (also === undefined) return { text: this.#outcome, values, counts: true }
    return { text: `${this.#outcome} AND ${also.condition}`, values: [...values, ...also.values], counts: true }
  }

  /** Changes a record that was read. */
  changeText(
    id: StoredKey,
    over: Expected,
    change: RecordChange,
    bind: Binding,
    clock: ClockSource = this.clock,
  ): string {
    return this.#update(assignments(this.tables, change, bind, clock.ms), isThatOne(id, over, bind), clock)
  }

  /** Removes a record that was read. */
  removeText(id: StoredKey, over: Expected, bind: Binding): string {
    return `DELETE FROM ${this.tables.marker} WHERE ${isThatOne(id, over, bind)}`
  }

  /** The ids of leased records that are due, oldest first, as `id` and `due_at_ms`. */
  due({ operations, limit, marginMs }: DueQuery, bind: Binding, { ms }: ClockSource): string {
    const isDue = `${hasDue} AND due_at_ms <= ${ms} AND state IN ('claimed', 'unknown')`
    const isPastMargin = `due_at_ms <= ${ms} - CASE state WHEN 'claimed' THEN ${bind.number(Math.ceil(marginMs))} ELSE 0 END`
    const names = operations.map((name) => bind.text(name)).join(', ')
    return (
      `SELECT id, due_at_ms FROM ${this.tables.marker} WHERE ${isDue} AND ${isPastMargin} AND mode = 'leased' ` +
      `AND operation IN (${names}) AND ${isOurFormat} ORDER BY due_at_ms, id ` +
      `LIMIT ${checkRows(limit, 1_000)}${this.dialect.skipLocked}`
    )
  }

  /**
   * What a look does to the columns: the meaning of `lookedAt`. What depends on a column comes before it is set, since
   * not every engine computes all from the row as it was.
   */
  lookedAt(query: DueQuery, ms: string): string {
    const delays: string[] = []
    let looks = 0
    for (; looks < 60 && lookDelayMs(looks, query) < query.capMs; looks += 1) {
      delays.push(`WHEN ${looks} THEN ${storableMs(lookDelayMs(looks, query))}`)
    }
    const longest = storableMs(lookDelayMs(looks, query))
    const delay = delays.length === 0 ? longest : `CASE looks ${delays.join(' ')} ELSE ${longest} END`
    return [
      `due_at_ms = ${ms} + ${delay}`,
      'looks = looks + 1',
      "token = CASE state WHEN 'claimed' THEN NULL ELSE token END",
      "because = CASE state WHEN 'claimed' THEN 'lease-expired' ELSE because END",
      `state = 'unknown', format = ${recordFormat}, version = version + 1`,
    ].join(', ')
  }

  /** Forgets the records of one kind that are older than a time; answers with their ids. */
  forget({ since, where }: Forgettable, before: string, limit: number): string {
    const { dialect, tables } = this
    const old = `SELECT id FROM ${tables.marker} WHERE ${since} <= ${before} AND ${where} AND ${isOurFormat} LIMIT ${limit}${dialect.skipLocked}`
    return `DELETE FROM ${tables.marker} WHERE id ${dialect.among(old)}${dialect.returning('id')}`
  }

  /** Forgets audit notes that are older than a time. */
  forgetNotes(before: string, limit: number): string {
    const { dialect, tables } = this
    const old = `SELECT number FROM ${tables.audit} WHERE at_ms <= ${before} ORDER BY at_ms LIMIT ${limit}${dialect.skipLocked}`
    return `DELETE FROM ${tables.audit} WHERE number ${dialect.among(old)}${dialect.returning('number')}`
  }

  /** Stores an audit note whose cells are a SELECT or VALUES, in the order of its columns. */
  note(source: string): string {
    return `INSERT INTO ${this.tables.audit} (${auditSelection}) ${source}`
  }

  /** Lists records in the order of their names. */
  list({ state, operation, limit, after }: RecordQuery): Query {
    const values = new Values(this.dialect)
    const wanted = ['1 = 1']
    if (state !== undefined) wanted.push(`m.state = ${values.place(state)}`)
    if (operation !== undefined) wanted.push(`m.operation = ${values.place(operation)}`)
    if (after !== undefined) wanted.push(`m.id > ${values.place(after)}`)
    const text = `SELECT m.id, ${selection(this.dialect, 'm.')} FROM ${this.tables.marker} AS m WHERE ${wanted.join(' AND ')} ORDER BY m.id LIMIT ${checkRows(limit, 1_000)}`
    return { text, values: values.list }
  }

  /**
   * Lists the newest records among those that the indexes of what expires, of what is due and of names give without
   * reading the whole table.
   */
  recent({ state, operation, scope, limit }: RecentQuery): Query {
    const { dialect, tables } = this
    const values = new Values(dialect)
    const last = (column: string, has: string): string =>
      `SELECT id FROM (SELECT id FROM ${tables.marker} WHERE ${has} ORDER BY ${column} DESC LIMIT ${mostLookedAt}) AS ${column}_last`
    // What waits for a person is in neither index: found among the first by name, so that a small table shows it.
    const first = `SELECT id, expires_at_ms, due_at_ms FROM ${tables.marker} ORDER BY id LIMIT ${mostByName}`
    const timeless = `SELECT id FROM (${first}) AS first_named WHERE NOT (${hasEnd}) AND NOT (${hasDue})`
    const looked = [last('expires_at_ms', hasEnd), last('due_at_ms', hasDue), timeless]
    const wanted = [`m.id IN (${looked.join(' UNION ALL ')})`]
    if (state !== undefined) wanted.push(`m.state = ${values.place(state)}`)
    if (operation !== undefined) wanted.push(`m.operation = ${values.place(operation)}`)
    if (scope !== undefined) wanted.push(`m.scope = ${values.place(scope)}`)
    const text = `SELECT m.id, ${selection(dialect, 'm.')} FROM ${tables.marker} AS m WHERE ${wanted.join(' AND ')} ORDER BY coalesce(m.completed_at_ms, m.claimed_at_ms) DESC, m.id LIMIT ${checkRows(limit, 1_000)}`
    return { text, values: values.list }
  }

  /** How many records of a scope are remembered, as `live`, counted up to a limit. */
  live(scope: string, most: number): Query {
    const { dialect, tables } = this
    // One look at the clock, not one for each row.
    const isLive = `(expires_at_ms IS NULL OR expires_at_ms > (SELECT ${dialect.nowMs}) OR NOT ${isOver})`
    const found = `SELECT 1 FROM ${tables.marker} WHERE scope = ${dialect.placeholder(1)} AND ${isLive} LIMIT ${checkRows(most, 1_000_000)}`
    return { text: `SELECT count(*) AS live FROM (${found}) AS found`, values: [scope] }
  }

  /** The audit notes of a record, oldest first. */
  notes(id: StoredKey): Query {
    const { dialect, tables } = this
    const text = `SELECT ${auditSelection} FROM ${tables.audit} WHERE id = ${dialect.placeholder(1)} ORDER BY number LIMIT ${mostNotes}`
    return { text, values: [id] }
  }

  #update(set: string, where: string, { from } = this.clock): string {
    return `UPDATE ${this.tables.marker} SET ${set}${from === '' ? '' : ` FROM ${from}`} WHERE ${where}`
  }
}

// Of either index, and by name, in `recent`.
const mostLookedAt = 1_000
const mostByName = 10_000

/** How many places the statement of an outcome has. */
export const outcomePlaces = 6

/** A condition with the values of its places. */
export interface Condition {
  readonly condition: string
  readonly values: readonly unknown[]
}

const claimNames = ['id', 'mode', 'token', 'operation', 'scope', 'fingerprint', 'input'] as const

/** Rows that are forgotten by their age. */
export interface Forgettable {
  /** The time that their age is counted from, in ms since 1970, as an SQL expression. */
  readonly since: string
  /** Which rows they are. */
  readonly where: string
  /** How old they have to be, in ms; undefined: they are not to be forgotten. */
  readonly afterMs: (query: PurgeQuery) => number | undefined
}

/** What a purge forgets, each kind by its own age. */
export const forgettable: Readonly<Record<'finished' | 'markers' | 'unknown', Forgettable>> = {
  /** Outcomes past their window. */
  finished: { since: 'expires_at_ms', where: isOver, afterMs: () => 0 },
  /**
   * Keys of transactions: they have no window. An index on `claimed_at_ms` of those without `operation` and
   * `expires_at_ms` serves it, where there are many.
   */
  markers: {
    since: 'claimed_at_ms',
    where: `${isOver} AND operation IS NULL AND expires_at_ms IS NULL`,
    afterMs: ({ markersAfterMs }) => markersAfterMs,
  },
  /** Outcomes that nobody has found out. */
  unknown: {
    since: 'coalesce(first_claimed_at_ms, claimed_at_ms)',
    where: "state = 'unknown'",
    afterMs: ({ unknownAfterMs }) => unknownAfterMs,
  },
}

/**
 * That a row is the one that was read, and of a format that may be written to. The version alone would not tell it from
 * one that was removed and inserted again.
 */
function isThatOne(id: StoredKey, { version, token, fence }: Expected, bind: Binding): string {
  const name = `id = ${bind.text(id)} AND version = ${bind.number(version)}`
  const sameToken = token === undefined ? 'token IS NULL' : `token = ${bind.text(token)}`
  const sameFence = fence === undefined ? 'fence IS NULL' : `fence = ${bind.number(fence)}`
  return `${name} AND ${sameToken} AND ${sameFence} AND ${isOurFormat}`
}

/**
 * What a change does to the columns: the meaning of `changedRecord`. What depends on a column comes before it is set.
 */
function assignments({ nextFence }: RecordTables, change: RecordChange, bind: Binding, ms: string): string {
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
    set('first_claimed_at_ms', anew ? ms : 'coalesce(first_claimed_at_ms, claimed_at_ms)')
    set('claimed_at_ms', ms)
    set('claims', anew ? '1' : 'claims + 1')
    if (anew) set('looks', '0')
  }
  if (dueInMs !== undefined) set('due_at_ms', dueInMs === null ? 'NULL' : `${ms} + ${bind.number(storableMs(dueInMs))}`)
  if (remembered !== undefined) {
    set('completed_at_ms', ms)
    const ever = remembered === Number.POSITIVE_INFINITY
    set('expires_at_ms', ever ? 'NULL' : `${ms} + ${bind.number(storableMs(remembered))}`)
  } else if (claimed !== undefined) {
    set('completed_at_ms', 'NULL')
    set('expires_at_ms', 'NULL')
  }
  return cells.join(', ')
}
