// `reprise migrate`: brings Reprise's tables up to date, or prints the SQL that does.

import type { Io } from '../io.js'
import { type GivenOptions, type OptionGroup, optionHelp } from '../option-table.js'
import { storeOptions, withStore } from './open-store.js'
import { jsonOption, writeJson } from './output.js'

/** The options of the command. */
export const migrateOptions: readonly OptionGroup[] = [
  storeOptions,
  {
    title: 'Options',
    options: [{ name: 'print', kind: 'flag', text: 'print the SQL, and change nothing' }, jsonOption],
  },
]

/** The help of the command. */
export function migrateHelp(): string {
  return `reprise migrate --url URL [options]

Makes or extends the tables that Reprise keeps: the records of keys, their audit notes, and which migrations have run.
It only goes forward, waits for another one that migrates, and does nothing where nothing is to be done.

  reprise migrate --url sqlite:data/app.db
  reprise migrate --url postgres://app@db.example/app --print > reprise.sql

${optionHelp(migrateOptions)}
Exit codes: 0 up to date, 1 it failed, 2 used wrongly.
`
}

/** Runs the command. */
export async function migrateCommand(given: GivenOptions, io: Io): Promise<void> {
  const print = given.flag('print') === true
  await withStore(
    given,
    io,
    async (store) => {
      if (print) {
        const sql = store.migrationSql()
        if (given.has('json')) writeJson(io, { sql })
        else io.write(sql)
        return
      }
      const { from, to } = await store.migrate()
      if (given.has('json')) writeJson(io, { from, to })
      else io.write(from === to ? `up to date, at migration ${to}\n` : `migrated from ${from} to ${to}\n`)
    },
    { create: true },
  )
}
