// What a purge forgets, as conditions that every SQL store shares.

import { isOver } from './rows.js'

/** Rows that are forgotten by their age. */
export interface Forgettable {
  /** The time that their age is counted from, in ms since 1970, as an SQL expression. */
  readonly since: string
  /** Which rows they are. */
  readonly where: string
}

/** Outcomes past their window. */
export const finishedRecords: Forgettable = { since: 'expires_at_ms', where: isOver }

/** Keys of transactions: they have no window. An index on `claimed_at_ms` of those without `operation` and `expires_at_ms` serves it, where there are many. */
export const oldMarkers: Forgettable = {
  since: 'claimed_at_ms',
  where: `${isOver} AND operation IS NULL AND expires_at_ms IS NULL`,
}

/** Outcomes that nobody has found out. */
export const unknownRecords: Forgettable = {
  since: 'coalesce(first_claimed_at_ms, claimed_at_ms)',
  where: "state = 'unknown'",
}
