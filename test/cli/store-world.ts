// A database in a file for commands to work on, with operations whose outcomes are as a test wants them.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommandLine } from '../../src/cli/index.js'
import { hold, leased, operationId } from '../../src/idempotency/index.js'
import { type Key, scope } from '../../src/identity/index.js'
import { type SqliteClient, type SqliteDomain, sqlite } from '../../src/stores/sqlite/index.js'
import { ioInMemory, type Seen } from './io-in-memory.js'

/** What a test gets. */
export interface StoreWorld {
  /** A folder of its own. */
  readonly folder: string
  /** The file of the database. */
  readonly file: string
  /** The same, as the commands take it. */
  readonly url: string
  /** The database, migrated. */
  readonly db: SqliteDomain<SqliteClient>
  /** Runs a command with `--url`. */
  run(words: readonly string[], io?: Seen): Promise<Seen>
  /** Makes an unknown outcome of the operation `charge` in the scope `tenant-7`. */
  makeUnknown(key: string): Promise<void>
  /** Makes a finished operation `note` in the scope `tenant-7`, whose window is over if that is wanted. */
  makeFinished(key: string, isForgotten?: boolean): Promise<void>
}

/** The words that name an unknown outcome. */
export const chargeOf = (key: string): readonly string[] => [
  '--operation',
  'charge',
  '--scope',
  'tenant-7',
  '--key',
  key,
]

/** Runs a test on a database of its own. */
export async function withStoreWorld(test: (world: StoreWorld) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-commands-'))
  const file = join(folder, 'app.db')
  const db = sqlite({ file, name: 'app' })
  const scopeOf = () => scope('tenant-7')
  const charge = leased('charge', {
    store: db,
    scope: scopeOf,
    key: (key: string) => key as Key,
    window: '1h',
    lease: '1s',
    recover: hold(),
    run: (lease) => lease.effect('capture', () => Promise.reject(new Error('the answer got lost'))),
  })
  const note = db.operation('note', {
    scope: scopeOf,
    key: (key: string) => key as Key,
    window: '1h',
    run: () => ({ secret: 'for the caller only' }),
  })
  try {
    await db.migrate()
    await test({
      folder,
      file,
      db,
      url: `sqlite:${file}`,
      run: async (words, io = ioInMemory()) => {
        const [command = '', ...rest] = words
        await runCommandLine([command, '--url', `sqlite:${file}`, ...rest], io)
        return io
      },
      makeUnknown: async (key) => {
        await charge(key).catch((error) => {
          if (error.code !== 'OPERATION_UNKNOWN') throw error
        })
      },
      makeFinished: async (key, isForgotten = false) => {
        await note(key)
        if (!isForgotten) return
        const ended = 'update reprise_marker set expires_at_ms = 1 where id = ?'
        await db.transact((tx) => tx.query(ended, [operationId('note', scopeOf(), key as Key)]))
      },
    })
  } finally {
    await db.close()
    rmSync(folder, { recursive: true })
  }
}
