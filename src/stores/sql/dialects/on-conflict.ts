// What SQLite took over from PostgreSQL: ON CONFLICT, RETURNING, and names in double quotes.

import type { SqlDialect } from '../dialect.js'
import { quoteName } from '../identifier.js'

/** The part of a dialect that PostgreSQL and SQLite share. */
export const onConflict: Pick<SqlDialect, 'quoteName' | 'insertNew' | 'insertOrSet' | 'returning'> = {
  quoteName,
  insertNew: (table, columns, source, by) =>
    `INSERT INTO ${table} (${columns}) ${source} ON CONFLICT (${by}) DO NOTHING`,
  insertOrSet: (table, columns, source, by, set) =>
    `INSERT INTO ${table} (${columns}) ${source} ON CONFLICT (${by}) DO ` +
    (set.length === 0 ? 'NOTHING' : `UPDATE SET ${set.map((column) => `${column} = excluded.${column}`).join(', ')}`),
  returning: (columns) => ` RETURNING ${columns}`,
}
