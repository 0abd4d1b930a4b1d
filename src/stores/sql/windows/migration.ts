// The tables of dedupe windows, as every SQL store makes them.

import type { ColumnTypes } from '../records/migration.js'
import { noPepper } from './seen.js'

/** What the migration is for. */
export const windowMigrationName = 'dedupe windows'

/** The columns of the heads: one row for each window, with the last number that it gave out. */
export function windowColumns({ text, bigint }: ColumnTypes): readonly string[] {
  return [
    `name ${text} NOT NULL PRIMARY KEY`,
    `pepper ${text} NOT NULL DEFAULT '${noPepper}'`,
    `last ${bigint} NOT NULL`,
  ]
}

/** The columns of what was accepted. */
export function seenColumns({ text, bigint }: ColumnTypes): readonly string[] {
  return [
    `id ${text} NOT NULL PRIMARY KEY`,
    `window_name ${text} NOT NULL`,
    `number ${bigint} NOT NULL`,
    `at_ms ${bigint} NOT NULL`,
  ]
}

/** The statements of the migration, by the quoted names of tables and of the index. */
export function windowStatements(
  types: ColumnTypes,
  { window, seen }: { readonly window: string; readonly seen: string },
  order: string,
): readonly string[] {
  return [
    `CREATE TABLE ${window} (${windowColumns(types).join(', ')})`,
    `CREATE TABLE ${seen} (${seenColumns(types).join(', ')})`,
    `CREATE INDEX ${order} ON ${seen} (window_name, number)`,
  ]
}
