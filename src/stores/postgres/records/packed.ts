// A record in four columns in place of twenty: what describes and decodes so many columns costs a driver more than everything else about reading one row.

import type { Seen } from '../../../atomicity/index.js'
import { recordCell, recordColumns, recordIn } from '../../sql/index.js'

// What may be long is not written twice; by their places in a record, the first one first.
const long = recordColumns.flatMap((name, place) => (name === 'value' || name === 'input' ? [{ name, place }] : []))
const packed = recordColumns.filter((name) => !long.some((one) => one.name === name))

/** What to select of a record in a table of this name. As text, since drivers can be told to read JSON in other ways. */
export function packedSelection(table: string): string {
  const cells = packed.map((name) => recordCell(table, name))
  return `json_build_array(${cells.join(', ')})::text AS packed, ${table}.value, ${table}.input`
}

/** The record of a row with {@link packedSelection} and `now_ms`. */
export function packedSeen(row: Readonly<Record<string, unknown>> | undefined): Seen {
  const nowMs = Number(row?.['now_ms'])
  const text = row?.['packed']
  if (row === undefined || typeof text !== 'string') return { record: undefined, nowMs }
  const cells = JSON.parse(text) as unknown[]
  for (const { name, place } of long) cells.splice(place, 0, row[name])
  return { record: recordIn(cells), nowMs }
}
