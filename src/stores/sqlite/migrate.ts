// Migrating a file: inside the lock of the file, so that of two processes one waits and then finds the work done.

import type { Clock, Random } from '../../kernel/index.js'
import {
  applyMigrations,
  type MigrationOptions,
  type MigrationResult,
  type MigrationTarget,
  whileBusy,
} from '../sql/index.js'
import { isBusy, rowsOf, type SqliteHandle } from './connection/driver.js'
import type { SqliteEngine } from './engine.js'
import { sqliteMigrations } from './migrations.js'

/** How long to wait for the lock, in ms. */
const waitMs = 30_000

/** Brings the tables up to date. */
export async function migrate(
  { connections, prefix, records }: Pick<SqliteEngine<unknown>, 'connections' | 'prefix' | 'records'>,
  clock: Clock,
  random: Random,
  options: MigrationOptions,
): Promise<MigrationResult> {
  const taken = await connections.take({ waitMs, readOnly: false })
  const { handle } = taken
  let committing = false
  let fate: 'keep' | 'drop' | 'condemn' = 'drop'
  try {
    await whileBusy({ waitMs, clock, random }, isBusy, () => handle.exec('BEGIN IMMEDIATE'))
    const result = await applyMigrations(targetOf(handle), sqliteMigrations(prefix, records.pepper), options)
    committing = true
    await whileBusy({ waitMs, clock, random }, isBusy, () => handle.exec('COMMIT'))
    fate = 'keep'
    return result
  } catch (error) {
    // Migrating again finds out what became of it; the log is healed first.
    if (committing) fate = 'condemn'
    throw error
  } finally {
    taken.giveBack(fate)
  }
}

/** Statements of a migration on a connection. */
export function targetOf(handle: SqliteHandle): MigrationTarget {
  return {
    run: async (text) => {
      const statement = handle.prepare(text)
      // Only a statement with rows can be asked for them, whatever the driver.
      if (/^select/i.test(text)) return rowsOf(statement, [])
      statement.run()
      return []
    },
  }
}
