// SQLite: one file that all workers write, whose lock somebody else takes, and whose COMMITs end in errors that say
// nothing.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import Database from 'libsql'
import { type SqliteHandle, sqlite } from '../../../src/stores/sqlite/index.js'
import { drawMs, type EngineFault, type TortureEngine } from './engine.js'

/** How many of the workers' COMMITs end in an error that says nothing, of a thousand. */
const lostCommits = 15

/** Makes a file with these tables. */
export async function startSqliteEngine(tables: readonly string[]): Promise<TortureEngine> {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-torture-'))
  const file = join(folder, 'torture.db')
  const db = sqlite({ name: 'torture', open: () => new Database(file) as unknown as SqliteHandle })
  await db.migrate()
  await db.close()
  const stranger = new Database(file)
  stranger.exec('PRAGMA busy_timeout = 0')
  for (const table of tables) stranger.exec(table)
  const lock: EngineFault = {
    kind: 'lock',
    alone: true,
    weight: 2,
    async strike(random) {
      const heldMs = drawMs(random, 50, 700)
      for (let tries = 0; tries < 200; tries += 1) {
        try {
          stranger.exec('BEGIN IMMEDIATE')
        } catch {
          await wait(5)
          continue
        }
        await wait(heldMs)
        stranger.exec('ROLLBACK')
        return true
      }
      return false
    },
  }
  return {
    name: 'sqlite',
    address: { sqlite: file, lostCommits },
    points: ['sqlite.sharing', 'sqlite.shared'],
    faults: [lock],
    heal: () => Promise.resolve(),
    rows: async <Row>(text: string) => stranger.prepare(text).all([]) as Row[],
    async dispose() {
      stranger.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
