// The number of the newest migration of each engine, for tests that ask how far the tables are: a new migration changes
// none of them.

import { postgresSchema } from '../../src/stores/postgres/migrations.js'
import { sqliteMigrations } from '../../src/stores/sqlite/migrations.js'

const last = (migrations: readonly { readonly number: number }[]): number =>
  Math.max(...migrations.map(({ number }) => number))

export const newestMigration: { readonly postgres: number; readonly sqlite: number } = {
  postgres: last(postgresSchema().plan.migrations),
  sqlite: last(sqliteMigrations('reprise_').migrations),
}
