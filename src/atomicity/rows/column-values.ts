// Values of columns, checked before a store sees them: drivers differ in what they make of others, down to a silent
// NULL.

import { isWellFormed, RepriseError } from '../../kernel/index.js'
import { checkName } from './names.js'
import type { Match } from './rows.js'

/** What is asked of columns. */
export interface ColumnDemands {
  /** Whether there may be none. */
  readonly none: boolean
  /** Whether a value may be null. */
  readonly nulls: boolean
}

/** Columns that name one row by a unique key. */
export const oneRow: ColumnDemands = { none: false, nulls: false }

/** Columns that name any number of rows, or what is set on them. */
export const someRows: ColumnDemands = { none: false, nulls: true }

/** Columns of which there may be none. */
export const anyColumns: ColumnDemands = { none: true, nulls: true }

/**
 * A copy of columns and their values, every one of them sound: what was looked at is what is used. Refuses with
 * ARGUMENT_INVALID.
 *
 * @param what What they are, for the message: `the row`, `the match`.
 */
export function soundColumns(given: Match, what: string, { none, nulls }: ColumnDemands): Match {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new RepriseError('ARGUMENT_INVALID', `${capital(what)} must be an object of columns and values.`)
  }
  const entries = Object.entries(given)
  if (entries.length === 0 && !none) {
    throw new RepriseError('ARGUMENT_INVALID', `${capital(what)} names no column.`)
  }
  for (const [position, [column, value]] of entries.entries()) {
    checkName(column)
    const kind = kindOf(value)
    if (kind !== undefined) throw unfit(what, position, kind)
    if (value === null && !nulls) {
      const message = `${capital(what)} names one row by a unique key, and NULL is never unique.`
      throw new RepriseError('ARGUMENT_INVALID', message, { details: { position } })
    }
  }
  return Object.fromEntries(entries)
}

// What a value is that no column holds; undefined: it is one that a column holds.
function kindOf(value: unknown): string | undefined {
  switch (typeof value) {
    case 'string':
      // Half a surrogate pair has no UTF-8 form; drivers store another character in its place.
      return isWellFormed(value) ? undefined : 'text with half a character'
    case 'number':
      return Number.isNaN(value) ? 'not a number' : undefined
    case 'bigint':
    case 'boolean':
      return undefined
    case 'object':
      if (value === null || value instanceof Uint8Array) return undefined
      return Object.prototype.toString.call(value) === '[object Date]' ? 'a Date' : 'an object'
    default:
      return typeof value
  }
}

function unfit(what: string, position: number, kind: string): RepriseError {
  const message =
    `${capital(what)} has a value in column ${position + 1} that no column holds (${kind}). It takes text, numbers, bigint, booleans, null and bytes; ` +
    'a date goes as text or as a number, and JSON as text.'
  return new RepriseError('ARGUMENT_INVALID', message, { details: { position, kind } })
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
