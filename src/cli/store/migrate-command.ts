// `reprise migrate`: brings Reprise's tables up to date, or prints the SQL that does.

import { defined } from '../../kernel/index.js'
import type { Io } from '../io.js'
import type { Command, GivenOptions } from '../option-table.js'
import { type CommandStore, storeOptions, withStore } from './open-store.js'
import { jsonOption, writeAnswer } from './output.js'

/** The command `reprise migrate`. */
export const migrateCommand: Command = {
  summary: 'makes or extends Reprise’s tables in a database',
  about: `reprise migrate --url URL [options]

Makes or extends the tables that Reprise keeps: the records of keys, their audit notes, and which migrations
have run. It only goes forward, waits for another one that migrates, and does nothing where nothing is to be
done.

  reprise migrate --url sqlite:data/app.db
  reprise migrate --url postgres://app@db.example/app --print > reprise.sql
`,
  options: [
    storeOptions,
    {
      title: 'Options',
      options: [
        { name: 'print', kind: 'flag', text: 'print the SQL, and change nothing' },
        {
          name: 'rename',
          kind: 'flag',
          text: 'bring records that are there under the pepper in REPRISE_PEPPER; stop whoever works on them first',
        },
        jsonOption,
      ],
    },
  ],
  exitCodes: '0 up to date, 1 it failed, 2 used wrongly.',
  run: runMigrate,
}

async function runMigrate(given: GivenOptions, io: Io): Promise<void> {
  const migrate = async (store: CommandStore): Promise<void> => {
    if (given.has('print')) {
      const sql = store.migrationSql()
      writeAnswer(given, io, { json: { sql }, text: sql })
      return
    }
    const { from, to, renamed } = await store.migrate({ rename: given.has('rename') })
    const moved = from === to ? `up to date, at migration ${to}\n` : `migrated from ${from} to ${to}\n`
    const text = renamed === undefined ? moved : `${moved}under a new pepper, with ${renamed} records renamed\n`
    writeAnswer(given, io, { json: { from, to, ...defined({ renamed }) }, text })
  }
  await withStore(given, io, migrate, { create: true })
}
