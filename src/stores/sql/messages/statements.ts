// What the statements on messages have in common.

import type { Reader } from '../../../messaging/index.js'
import type { SqlDialect } from '../dialect.js'
import type { Query } from '../records/statements.js'
import { Values } from '../values.js'
import type { Cell } from './content.js'
import type { MessageTables } from './migration.js'

/** Where the messages of a store are, and how its SQL is written. */
export interface MessageSql {
  readonly dialect: SqlDialect
  readonly tables: MessageTables
}

/** The states of a lane, as they are stored. */
export const laneStates = { idle: 0, ready: 1, parked: 2 } as const

/** A statement whose rows are asked for. The values stand in the list in the order of their places in the text. */
export function asking(dialect: SqlDialect, write: (values: Values) => string): Query {
  const values = new Values(dialect)
  const text = write(values)
  return { text, values: values.list }
}

/** A statement of which the number of rows is asked for. */
export function counting(dialect: SqlDialect, write: (values: Values) => string): Query {
  return { ...asking(dialect, write), counts: true }
}

/** The store's clock, looked at once for a whole statement. */
export function once(dialect: SqlDialect): string {
  return `(SELECT ${dialect.nowMs})`
}

/** Any number of rows as one value, for FROM. */
export function rowsOf(
  dialect: SqlDialect,
  columns: Readonly<Record<string, 'text' | 'number'>>,
  rows: readonly (readonly Cell[])[],
  values: Values,
): string {
  return dialect.rowsIn(values.text(JSON.stringify(rows)), columns)
}

/**
 * The messages of a lane behind what is done, to stand in FROM and WHERE.
 *
 * @param lane The alias of the lane.
 */
export function behind(
  { message, inbox }: MessageTables,
  reads: Reader['reads'],
  lane: string,
): { readonly from: string; readonly where: string } {
  const where = `m.key = ${lane}.key AND (m.epoch, m.number) > (${lane}.epoch, ${lane}.number)`
  return reads === 'outbox'
    ? { from: `${message} AS m`, where }
    : { from: `${inbox} AS m`, where: `m.reader = ${lane}.reader AND ${where}` }
}
