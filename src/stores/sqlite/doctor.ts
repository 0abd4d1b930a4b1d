// What could go wrong with a file of SQLite, found before it does: looked at on the connection that writes.

import type { Finding } from '../../atomicity/index.js'
import type { Pepper } from '../../identity/index.js'
import type { Clock } from '../../kernel/index.js'
import { examineSqlite, fileFinding, migrationFindings, quoteName, schemaState, sqliteDialect } from '../sql/index.js'
import type { Taken } from './connection/connections.js'
import { isOpen, rowsOf, type SqliteHandle, signsOf } from './connection/driver.js'
import type { SqliteEngine } from './engine.js'
import { targetOf } from './migrate.js'
import { sqliteMigrations } from './migrations.js'

const connectionWaitMs = 2_000

/** Looks at file, settings and tables. Throws where no connection can be had, and the file is not the reason. */
export async function doctor(
  { connections, prefix, records }: Pick<SqliteEngine<unknown>, 'connections' | 'prefix' | 'records'>,
  clock: Clock,
): Promise<readonly Finding[]> {
  let taken: Taken
  try {
    taken = await connections.take({ waitMs: connectionWaitMs, readOnly: false })
  } catch (error) {
    const finding = fileFinding(signsOf(error))
    if (finding === undefined) throw error
    return [finding]
  }
  const { handle } = taken
  let fate: 'keep' | 'drop' = 'drop'
  try {
    const patient = {
      dialect: sqliteDialect,
      prefix,
      pepper: records.pepper,
      named: (table: string) => quoteName(prefix + table),
      clock,
      ownConnection: true,
      ask: async (text: string, values: readonly string[] = []) => rowsOf(handle.prepare(text), values),
      tryOut: async (text: string) => tryOut(handle, text),
      signsOf,
    }
    const findings = await examineSqlite(patient, () => migrationsOf(handle, prefix, records.pepper))
    fate = 'keep'
    return findings
  } finally {
    taken.giveBack(fate)
  }
}

function tryOut(handle: SqliteHandle, text: string): void {
  try {
    handle.exec('BEGIN IMMEDIATE')
    handle.exec(text)
  } finally {
    if (isOpen(handle)) handle.exec('ROLLBACK')
  }
}

async function migrationsOf(
  handle: SqliteHandle,
  prefix: string,
  pepper: Pepper | undefined,
): Promise<readonly Finding[]> {
  const plan = sqliteMigrations(prefix)
  const there = rowsOf(handle.prepare('SELECT 1 AS there FROM sqlite_schema WHERE name = ?'), [`${prefix}migration`])
  const state = there.length === 0 ? undefined : await schemaState(targetOf(handle), plan)
  return migrationFindings(state, plan.migrations.length, pepper)
}
